"""Carrying out what was decided about units, and seeing that it took hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.spark.plane.plugins.module_utils import systemd, unitcontent
from ansible_collections.spark.plane.plugins.module_utils.unitplan import PROPERTIES, Decision, Now

SETTLE = 1.0
"""Seconds a unit without a readiness protocol is watched before it counts as started: a daemon that refuses its
configuration exits within that."""

JOURNAL_LINES = 15
_POLL = 0.5
_COMMAND_TIMEOUT = 60
_NO_READINESS = frozenset({"simple", "exec", "idle"})


class UnitsError(Exception):
    """A unit could not be brought to the wanted state. `units` names them."""

    def __init__(self, message: str, units: Sequence[str] = ()) -> None:
        """Keep the names beside the message."""
        super().__init__(message)
        self.units = list(units)


@dataclass
class Done:
    """What one call has done so far; reported also when it fails half-way."""

    started: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    enabled: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)
    unmasked: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    reloaded: bool = False

    @property
    def changed(self) -> bool:
        """Whether the host was changed. Reading unit files again and stamping are not changes."""
        return any((
            self.started, self.restarted, self.stopped, self.enabled, self.disabled, self.masked, self.unmasked,
        ))  # fmt: skip

    def expect(self, decisions: Sequence[Decision]) -> None:
        """Record everything decided as if it were done (check mode)."""
        for decision in decisions:
            for flag, yes, no in (
                (decision.enable, self.enabled, self.disabled),
                (decision.mask, self.masked, self.unmasked),
            ):
                if flag is not None:
                    (yes if flag else no).append(decision.spec.name)
            if decision.verb:
                self.verb(decision)
            if decision.adopt:
                self.adopted.append(decision.spec.name)

    def verb(self, decision: Decision) -> None:
        """Record one start, restart or stop."""
        lists = {"start": self.started, "restart": self.restarted, "stop": self.stopped}
        lists[decision.verb or ""].append(decision.spec.name)
        self.reasons[decision.spec.name] = decision.reason


def clocks() -> Now:
    """Both clocks now."""
    return Now(time.time(), time.monotonic())


def show(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Everything the decisions need, in one process; wall-clock times as whole seconds since the epoch."""
    return systemd.show(names, PROPERTIES, "--timestamp=unix")


def systemctl(*arguments: str, timeout: float = _COMMAND_TIMEOUT) -> systemd.Output:
    """Run systemctl without questions."""
    return systemd.run(["systemctl", "--no-ask-password", "--no-pager", *arguments], timeout)


def required(*arguments: str) -> None:
    """Run systemctl and insist.

    Raises:
        UnitsError: it failed, with its own words.
    """
    output = systemctl(*arguments)
    if output.code != 0:
        said = output.text.strip() or f"no answer within {_COMMAND_TIMEOUT} s"
        raise UnitsError(f"`systemctl {' '.join(arguments)}` failed: {said}")


def act(decisions: Sequence[Decision], done: Done, root: Path = Path("/")) -> None:
    """Do it: mask and enable, stop, restart, start, then look once and stamp.

    Restarts come before starts: a unit that is started may need the restarted one, and would be restarted with it.

    Raises:
        UnitsError: something did not take hold; `done` says what was acted on.
    """
    _files(decisions, done)
    stops = [decision for decision in decisions if decision.verb == "stop"]
    if stops:
        _jobs("stop", stops, done)
    for verb in ("restart", "start"):
        group = [decision for decision in decisions if decision.verb == verb]
        if group:
            if verb == "start":
                # A unit that hit its start limit refuses to start until its failures are forgotten.
                systemctl("reset-failed", "--", *[decision.id for decision in group])
            _jobs(verb, group, done)
    _confirm(decisions, done, root)


def _files(decisions: Sequence[Decision], done: Done) -> None:
    for flag, value, command, record in (
        ("mask", True, "mask", done.masked),
        ("enable", True, "enable", done.enabled),
        ("enable", False, "disable", done.disabled),
    ):
        names = [decision.spec.name for decision in decisions if getattr(decision, flag) is value]
        if names:
            required(command, "--", *names)
            record += names


def _jobs(verb: str, group: Sequence[Decision], done: Done) -> None:
    for decision in group:
        done.verb(decision)
    # The client is given up at the timeout, the job is not: systemd's own TimeoutStartSec ends it.
    names = [decision.spec.name for decision in group]
    output = systemctl(verb, "--", *names, timeout=max(decision.spec.timeout for decision in group))
    for decision in group:
        decision.said = output.text.strip()


def _confirm(decisions: Sequence[Decision], done: Done, root: Path) -> None:
    watched = [decision for decision in decisions if decision.verb or decision.wait]
    states = show([decision.spec.name for decision in watched])
    starts = [decision for decision in watched if decision.verb in ("start", "restart")]
    if any(states[decision.spec.name].get("Type") in _NO_READINESS for decision in starts):
        time.sleep(SETTLE)
        states = show([decision.spec.name for decision in watched])
    waiting = [decision for decision in watched if decision.wait and not decision.verb]
    deadline = time.monotonic() + max((decision.spec.timeout for decision in waiting), default=0)
    while any(_starting(states[d.spec.name]) for d in waiting) and time.monotonic() < deadline:
        time.sleep(_POLL)
        states |= show([decision.spec.name for decision in waiting])
    failed: list[str] = []
    lines: list[str] = []
    for decision in watched:
        state = states[decision.spec.name]
        problem = _problem(decision, state)
        if problem:
            failed.append(decision.spec.name)
            lines.append(problem)
        elif decision.verb in ("start", "restart"):
            stamp(decision, state, root)
    for decision in decisions:
        if decision.adopt and decision.spec.name not in failed:
            done.adopted.append(decision.spec.name)
            stamp(decision, None, root)
    if failed:
        raise UnitsError("\n".join(lines), failed)


def stamp(decision: Decision, state: Mapping[str, str] | None, root: Path = Path("/")) -> None:
    """Record that the running invocation was started with the content seen before it was started."""
    invocation = state.get("InvocationID", "") if state is not None else decision.invocation
    if decision.content is not None and invocation:
        unitcontent.save(decision.id, unitcontent.Stamp(invocation, decision.content, time.time_ns()), root)


def _starting(state: Mapping[str, str]) -> bool:
    return state.get("ActiveState") == "activating" and not state.get("SubState", "").startswith("auto-restart")


def _problem(decision: Decision, state: Mapping[str, str], journal: Callable[[str], str] | None = None) -> str | None:
    active, sub = state.get("ActiveState", ""), state.get("SubState", "")
    name, verb = decision.spec.name, decision.verb or "start"
    if verb == "stop":
        if active in ("inactive", "failed"):
            return None
        return f"{name} did not stop within {decision.spec.timeout:g} s (it is {active}/{sub})"
    if active in ("active", "reloading", "refreshing"):
        if verb == "restart" and decision.verb and state.get("InvocationID") == decision.invocation:
            # Refused before a job was made: the old process still runs, and must not be stamped as the new one.
            return f"{name} did not restart: {decision.said or 'systemctl gave no reason'}"
        return None
    if state.get("ConditionResult") == "no" and active == "inactive":
        why = "a Condition of its unit file is not met"
    elif _starting(state):
        why = f"it was still {active}/{sub} after {decision.spec.timeout:g} s"
    else:
        why = f"it is {active}/{sub}, result {state.get('Result')}, exit status {state.get('ExecMainStatus')}"
        if state.get("StatusText"):
            why += f', status "{state["StatusText"]}"'
    said = (journal or last_lines)(decision.id)
    return f"{name} did not {verb}: {why}.\n{said}"


def last_lines(unit: str) -> str:
    """The unit's last journal lines, indented."""
    try:
        argv = ["journalctl", f"--unit={unit}", f"--lines={JOURNAL_LINES}", "--no-pager", "--quiet", "--no-hostname"]
        output = systemd.run([*argv, "--output=short-iso"], 10)
    except systemd.SystemdError as err:
        return f"  (no journal: {err})"
    text = output.text.strip()
    return "\n".join(f"  {line}" for line in text.splitlines()[-JOURNAL_LINES:]) or "  (its journal is empty)"
