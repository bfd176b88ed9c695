"""Ansible's events become the receipt, and notices for whoever shows the run.

Nothing a task marks `no_log` passes: its result arrives censored, but the text that goes with the event may still hold
the error's own words (ansible-core 2.19 prints them), so that text is dropped.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from provision.engine import Event
from provision.failure import HIDDEN, start_message, task_message, unreachable_message
from provision.notices import Diff, HostFailed, Notice, Output, PhaseEnded, PhaseStarted, TaskEnded, TaskNow
from provision.phases import Phases
from provision.receipt import (
    BAD_INPUT,
    DONE,
    FAILED,
    INTERRUPTED,
    RUNNING,
    UNREACHABLE,
    Check,
    Counts,
    Failure,
    Gate,
    PhaseRecord,
    Receipt,
    now,
)
from provision.redact import Redactor

_LOOSE_LINES = 60
# Ansible prints a task's name over its first result; a diff's own head says it again.
_BANNER = re.compile(r"\A\s*(TASK|RUNNING HANDLER) \[.*\n")


@dataclass
class _Candidate:
    task_uuid: str
    failure: Failure


class Progress:
    """Follows one run; the receipt is its state."""

    def __init__(self, receipt: Receipt, phases: Phases, redactor: Redactor, root: str) -> None:
        self.receipt = receipt
        self.task: TaskNow | None = None
        self._phases = phases
        self._redactor = redactor
        self._root = root.rstrip("/") + "/"
        self._current: PhaseRecord | None = None
        self._play = ""
        self._clock: dict[str, float] = {}
        self._candidates: list[_Candidate] = []
        self._loose: deque[str] = deque(maxlen=_LOOSE_LINES)
        self._started = False
        self._failed_hosts: set[str] = set()

    @property
    def current(self) -> PhaseRecord | None:
        """The phase now running."""
        return self._current

    def seconds(self, phase: PhaseRecord) -> float | None:
        """Return how long *phase* has taken so far, or took."""
        if phase.seconds is None and phase.name in self._clock:
            return time.monotonic() - self._clock[phase.name]
        return phase.seconds

    def handle(self, event: Event) -> Iterator[Notice]:
        """Take one event in, and yield what is worth telling."""
        kind = event.get("event", "")
        data = event.get("event_data") or {}
        text = self._output(event, data)
        if text:
            yield Output(text)
        if kind == "playbook_on_start":
            self._started = True
        elif kind == "playbook_on_play_start":
            yield from self._end_task()
            self._play = str(data.get("play") or data.get("name") or "")
        elif kind == "playbook_on_no_hosts_matched":
            yield from self._begin_phase()
        elif kind == "playbook_on_task_start":
            yield from self._end_task()
            yield from self._begin_phase()
            name = str(data.get("task") or data.get("name") or "")
            self.task = TaskNow(self._redactor.text(name), str(data.get("role") or ""))
        elif kind == "runner_on_start" and self.task:
            self.task.running.add(str(data["host"]))
            self.task.hosts.add(str(data["host"]))
        elif kind == "runner_retry" and self.task:
            result = data.get("res") or {}
            self.task.tries = (int(result.get("attempts", 0)) + 1, int(result.get("retries", 0)))
        elif kind == "runner_on_file_diff" and text and self._current and self.task:
            yield Diff(self._current, self.task.name, str(data["host"]), _BANNER.sub("", text))
        elif kind in ("runner_on_ok", "runner_on_failed", "runner_on_unreachable", "runner_on_skipped"):
            yield from self._result(kind.removeprefix("runner_on_"), data)
        elif kind == "playbook_on_stats":
            yield from self._end_task()
            self._failed_hosts = {*(data.get("failures") or {}), *(data.get("dark") or {})}
        elif kind in ("verbose", "error"):
            self._loose.extend(str(event.get("stdout") or "").splitlines())

    def conclude(self, code: int, *, interrupted: bool) -> Iterator[Notice]:
        """Judge the run by Ansible's exit code and what was seen, and close the receipt's phases."""
        yield from self._end_task()
        receipt = self.receipt
        if code == 0:
            receipt.status = DONE
            for phase in receipt.phases:
                self._settle(phase)
        elif interrupted:
            receipt.status = INTERRUPTED
            where = self._current.name if self._current else None
            receipt.failure = Failure(INTERRUPTED, "stopped on request", phase=where)
        else:
            receipt.failure = self._failure() or self._silent_failure(code)
            receipt.status = receipt.failure.kind
        if self._current:
            ends = {DONE: DONE, INTERRUPTED: INTERRUPTED}
            yield self._close(self._current, ends.get(receipt.status, FAILED))
            self._current = None

    def _output(self, event: Event, data: dict[str, Any]) -> str:
        text = str(event.get("stdout") or "").replace("\r\n", "\n").strip("\r\n")
        if text and _censored(data.get("res")):
            outcome = str(event.get("event", "")).rpartition("_")[2]
            return f"{outcome}: [{data.get('host')}] ({HIDDEN})"
        return self._redactor.text(text)

    def _begin_phase(self) -> Iterator[Notice]:
        """Begin the phase of the play at hand, unless it is under way.

        Not at the play's start: Ansible announces one more play after the one in which the last host was lost.
        """
        known = self._phases.of_play(self._play)
        record = self.receipt.phase(known.name) if known else None
        if record is None or record is self._current:
            return
        if self._current:
            yield self._close(self._current, DONE)
        record.status, record.started = RUNNING, now()
        self._clock[record.name] = time.monotonic()
        self._current = record
        yield PhaseStarted(record)

    def _close(self, record: PhaseRecord, status: str) -> Notice:
        failed = status == DONE and self.receipt.status != DONE and record.hosts_with("failed")
        record.status, record.ended = FAILED if failed else status, now()
        record.seconds = round(time.monotonic() - self._clock[record.name], 3)
        return PhaseEnded(record)

    def _end_task(self) -> Iterator[Notice]:
        task, self.task = self.task, None
        if task and task.results and self._current:
            yield TaskEnded(self._current, task.name, dict(sorted(task.results.items())))

    def _result(self, outcome: str, data: dict[str, Any]) -> Iterator[Notice]:
        phase, host, result = self._current, str(data.get("host")), data.get("res") or {}
        if phase is None:
            return
        counts = phase.hosts.setdefault(host, Counts())
        if outcome == "ok" and result.get("changed"):
            counts.changed += 1
        if outcome == "failed" and data.get("ignore_errors"):
            outcome = "ignored"
        counted = "ok" if outcome == "ignored" else outcome
        setattr(counts, counted, getattr(counts, counted) + 1)
        self._gate(phase, host, result)
        if self.task:
            self.task.running.discard(host)
            self.task.hosts.add(host)
            self.task.results[host] = "changed" if outcome == "ok" and result.get("changed") else outcome
        if outcome in ("failed", "unreachable"):
            yield self._note_failure(phase, host, outcome, data, result)

    def _note_failure(
        self, phase: PhaseRecord, host: str, outcome: str, data: dict[str, Any], result: dict[str, Any]
    ) -> Notice:
        lost = outcome == "unreachable"
        message = self._redactor.text(unreachable_message(result) if lost else task_message(result))
        bad_input = result.get("bad_input") is True or bool(result.get("argument_errors"))
        kind = UNREACHABLE if lost else BAD_INPUT if bad_input else FAILED
        task = self._redactor.text(str(data.get("task") or ""))
        where = str(data.get("task_path") or "").removeprefix(self._root) or None
        failure = Failure(kind, message, phase.name, host, [host], task, where)
        self._candidates.append(_Candidate(str(data.get("task_uuid")), failure))
        return HostFailed(phase, task, host, message, lost)

    def _gate(self, phase: PhaseRecord, host: str, result: dict[str, Any]) -> None:
        gate = result.get("gate")
        if not isinstance(gate, dict) or "status" not in gate:
            return
        gate = self._redactor.data(gate)
        names = Check.__dataclass_fields__.keys()
        checks = [Check(**{key: check[key] for key in names if key in check}) for check in gate.get("checks") or []]
        phase.set_gate(Gate(str(gate.get("name", phase.name)), host, str(gate["status"]), checks))

    def _failure(self) -> Failure | None:
        """Return the failure that ended the run: the last task that failed on a host which is failed at the end."""
        final = [one for one in self._candidates if not self._failed_hosts or one.failure.host in self._failed_hosts]
        if not final:
            return None
        same = [one.failure for one in final if one.task_uuid == final[-1].task_uuid]
        # A host that fails a task tells more than one that was not reached meanwhile.
        first = min(same, key=lambda failure: failure.kind == UNREACHABLE)
        alike = [failure for failure in same if failure.kind == first.kind]
        first.hosts = sorted({str(failure.host) for failure in alike})
        first.message = _joined(alike)
        return first

    def _silent_failure(self, code: int) -> Failure:
        message = self._redactor.text(start_message(list(self._loose))).replace(self._root, "")
        if not self._started:
            return Failure(BAD_INPUT, message)
        if code > 128:
            message = f"Ansible was killed (signal {code - 128})"
        return Failure(FAILED, message, phase=self._current.name if self._current else None)

    def _settle(self, phase: PhaseRecord) -> None:
        """Trust Ansible's word that all went well: a rescued failure is none, and a play without tasks is done."""
        for counts in phase.hosts.values():
            counts.ok, counts.failed = counts.ok + counts.failed, 0
        if phase is not self._current:
            phase.status = DONE


def _joined(failures: list[Failure]) -> str:
    """Return the messages of several hosts as one, each different one once, with the hosts it holds for."""
    hosts: dict[str, list[str]] = {}
    for failure in sorted(failures, key=lambda failure: str(failure.host)):
        lines = [line.removeprefix(f"{failure.host}: ") for line in failure.message.splitlines()]
        hosts.setdefault("\n".join(lines), []).append(str(failure.host))
    if len(hosts) == 1:
        return next(iter(hosts))
    return "\n".join(f"{', '.join(names)}: {message}" for message, names in hosts.items())


def _censored(result: Any) -> bool:
    if not isinstance(result, dict):
        return False
    return "censored" in result or any(_censored(item) for item in result.get("results") or [])
