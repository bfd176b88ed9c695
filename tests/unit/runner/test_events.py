"""Ansible's events, as ansible-runner 2.4 hands them over, become counts, gates, failures and notices."""

from __future__ import annotations

from typing import Any

import pytest

from provision import receipt as rc
from provision.events import Progress
from provision.notices import Diff, HostFailed, Notice, Output, PhaseEnded, PhaseStarted, TaskEnded
from provision.phases import Phase, Phases
from provision.redact import Redactor
from tests.unit.runner.samples import event, receipt_of

PHASES = Phases(
    tuple(
        Phase(name, f"{name} is true", ("plane",), name == "preflight", False, (f"The {name} play", f"More {name}"))
        for name in ("preflight", "host", "docker")
    )
)
STATS: dict[str, Any] = {"failures": {}, "dark": {}, "ok": {}, "changed": {}}


def play(name: str) -> dict[str, Any]:
    return event("playbook_on_play_start", play=name)


def task(name: str = "The task", *hosts: str) -> list[dict[str, Any]]:
    return [event("playbook_on_task_start", task=name), *(event("runner_on_start", host, task=name) for host in hosts)]


def ok(host: str, task: str = "The task", **result: Any) -> dict[str, Any]:
    return event("runner_on_ok", host, task=task, res=result)


def failed(host: str, task: str = "The task", *, ignore: bool = False, **result: Any) -> dict[str, Any]:
    return event("runner_on_failed", host, task=task, res=result, ignore_errors=ignore)


def stats(**counts: Any) -> dict[str, Any]:
    return event("playbook_on_stats", **(STATS | counts))


class Run:
    """A run of the given events."""

    def __init__(self, *events: dict[str, Any], code: int = 0, interrupted: bool = False) -> None:
        self.receipt = receipt_of()
        redactor = Redactor()
        redactor.add("value of token", ["CANARY-9"])
        self.progress = Progress(self.receipt, PHASES, redactor, "/root")
        self.notices: list[Notice] = []
        for one in (event("playbook_on_start"), *events):
            self.notices += self.progress.handle(one)
        self.notices += self.progress.conclude(code, interrupted=interrupted)

    def of(self, kind: type) -> list[Any]:
        return [notice for notice in self.notices if isinstance(notice, kind)]

    @property
    def failure(self) -> rc.Failure:
        assert self.receipt.failure is not None
        return self.receipt.failure

    def statuses(self) -> list[str]:
        return [phase.status for phase in self.receipt.phases]


def test_a_run_that_ends_well() -> None:
    run = Run(
        play("The preflight play"),
        *task("A", "h1", "h2"),
        ok("h1", "A"),
        ok("h2", "A"),
        play("The host play"),
        *task("B", "h1", "h2"),
        ok("h2", "B", changed=True),
        ok("h1", "B", changed=True),
        *task("C", "h1", "h2"),
        event("runner_on_skipped", "h1", task="C"),
        ok("h2", "C"),
        play("More host"),
        *task("D", "h1"),
        ok("h1", "D"),
        play("The docker play"),
        event("playbook_on_no_hosts_matched"),
        stats(),
    )
    assert run.receipt.status == rc.DONE
    assert run.statuses() == [rc.DONE] * 3
    host = run.receipt.phases[1]
    assert host.hosts == {"h1": rc.Counts(ok=2, changed=1, skipped=1), "h2": rc.Counts(ok=2, changed=1)}
    assert host.hosts_with("changed") == ["h1", "h2"] or host.hosts_with("changed") == ["h2", "h1"]
    assert [notice.phase.name for notice in run.of(PhaseStarted)] == ["preflight", "host", "docker"]
    assert [notice.phase.name for notice in run.of(PhaseEnded)] == ["preflight", "host", "docker"]
    assert [(ended.task, ended.results) for ended in run.of(TaskEnded)] == [
        ("A", {"h1": "ok", "h2": "ok"}),
        ("B", {"h1": "changed", "h2": "changed"}),
        ("C", {"h1": "skipped", "h2": "ok"}),
        ("D", {"h1": "ok"}),
    ]


def test_a_task_that_fails() -> None:
    run = Run(
        play("The preflight play"),
        *task("A", "h1"),
        ok("h1", "A"),
        play("The host play"),
        *task("B", "h1", "h2"),
        failed("h2", "B", msg="Module failed: no such CANARY-9"),
        ok("h1", "B"),
        stats(failures={"h2": 1}),
        code=2,
    )
    assert run.receipt.status == rc.FAILED
    assert run.statuses() == [rc.DONE, rc.FAILED, rc.PENDING]
    assert run.failure == rc.Failure(
        rc.FAILED, "no such <value of token>", "host", "h2", ["h2"], "B", "roles/x/tasks/main.yml:1"
    )
    assert [(notice.host, notice.unreachable) for notice in run.of(HostFailed)] == [("h2", False)]


def test_ignored_and_rescued_failures_are_none() -> None:
    run = Run(
        play("The host play"),
        *task("A", "h1"),
        failed("h1", "A", ignore=True, msg="x"),
        *task("B", "h1"),
        failed("h1", "B", msg="y"),
        *task("C", "h1"),
        ok("h1", "C"),
        stats(rescued={"h1": 1}),
    )
    assert run.receipt.status == rc.DONE
    assert run.receipt.failure is None
    assert run.receipt.phases[1].status == rc.DONE
    assert run.receipt.phases[1].hosts["h1"] == rc.Counts(ok=3)


def test_a_rescued_failure_is_not_taken_for_the_one_that_ended_the_run() -> None:
    run = Run(
        play("The host play"),
        *task("A", "h1"),
        failed("h1", "A", msg="mended"),
        *task("B", "h1"),
        failed("h1", "B", msg="final"),
        stats(failures={"h1": 1}),
        code=2,
    )
    assert (run.failure.task, run.failure.message) == ("B", "final")


def test_the_failure_is_one_of_a_host_that_is_failed_at_the_end() -> None:
    run = Run(
        play("The host play"), *task("A", "h1", "h2"), failed("h2", "A", msg="final"),
        *task("B", "h1"), failed("h1", "B", msg="rescued after that"), stats(failures={"h2": 1}), code=2,
    )  # fmt: skip
    assert (run.failure.host, run.failure.message) == ("h2", "final")


def test_an_ignored_failure_counts_as_ok_also_where_the_run_fails_later() -> None:
    run = Run(
        play("The host play"), *task("A", "h1"), failed("h1", "A", ignore=True, msg="x"),
        *task("B", "h2"), failed("h2", "B", msg="y"), stats(failures={"h2": 1}), code=2,
    )  # fmt: skip
    assert run.receipt.phases[1].hosts == {"h1": rc.Counts(ok=1), "h2": rc.Counts(failed=1)}
    assert [notice.host for notice in run.of(HostFailed)] == ["h2"]


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ({"h1": "same", "h2": "same"}, "same"),
        ({"h1": "h1: same", "h2": "h2: same"}, "same"),
        ({"h1": "one", "h2": "other"}, "h1: one\nh2: other"),
    ],
)
def test_several_hosts_at_one_task(messages: dict[str, str], wanted: str) -> None:
    events = [failed(host, "B", msg=message) for host, message in messages.items()]
    run = Run(play("The host play"), *task("B", "h1", "h2"), *events, stats(failures={"h1": 1, "h2": 1}), code=2)
    assert (run.failure.hosts, run.failure.message) == (["h1", "h2"], wanted)


def test_unreachable_in_the_words_of_ssh() -> None:
    reason = "ssh: connect to host x port 1: Connection refused"
    words = f"Task failed: Failed to connect to the host via ssh: Warning: Permanently added 'x'.\n{reason}"
    lost = event("runner_on_unreachable", "h2", res={"unreachable": True, "msg": words})
    run = Run(play("The host play"), *task("The task", "h1", "h2"), lost, ok("h1"), stats(dark={"h2": 1}), code=4)
    assert run.receipt.status == rc.UNREACHABLE
    assert run.failure.message == reason
    assert run.receipt.phases[1].hosts["h2"] == rc.Counts(unreachable=1)


@pytest.mark.parametrize(
    "result", [{"bad_input": True, "msg": "hosts.yml: x"}, {"argument_errors": ["x is wrong"], "msg": "y"}]
)
def test_bad_input(result: dict[str, Any]) -> None:
    run = Run(play("The preflight play"), *task(), failed("h1", **result), stats(failures={"h1": 1}), code=2)
    assert run.receipt.status == rc.BAD_INPUT
    assert run.failure.message in ("hosts.yml: x", "x is wrong")


def test_gates() -> None:
    gate = {
        "name": "host",
        "status": "not provable",
        "checks": [{"what": "a", "status": "passed", "seen": "CANARY-9", "junk": 1}],
    }
    again = {"name": "host", "status": "passed", "checks": []}
    run = Run(
        play("The host play"),
        *task(),
        ok("h1", gate=gate),
        ok("h2", gate=gate),
        *task("again"),
        ok("h1", "again", gate=again),
        stats(),
    )
    gates = {gate.host: gate for gate in run.receipt.phases[1].gates}
    assert gates["h1"] == rc.Gate("host", "h1", "passed", [])
    assert gates["h2"] == rc.Gate("host", "h2", "not provable", [rc.Check("a", "passed", "<value of token>")])


def test_a_failed_gate_is_recorded_too() -> None:
    gate = {"name": "host", "status": "failed", "checks": [{"what": "a", "status": "failed"}]}
    run = Run(play("The host play"), *task(), failed("h1", msg="gate", gate=gate), stats(failures={"h1": 1}), code=2)
    assert run.receipt.phases[1].gates[0].status == "failed"
    assert not run.receipt.phases[1].settled


def test_hidden_results_stay_hidden() -> None:
    # What ansible-core 2.19 prints of a failed task with no_log: its banner holds the message.
    text = '[ERROR]: Task failed: Action failed: CANARY-NOLOG\r\nfatal: [h1]: FAILED! => {"censored": "..."}'
    censored = {"censored": "the output has been hidden"}
    for result in (censored, {"results": [censored], "msg": "One or more items failed"}):
        run = Run(
            play("The host play"),
            *task(),
            event("runner_on_failed", "h1", res=result, _stdout=text),
            stats(failures={"h1": 1}),
            code=2,
        )
        assert "CANARY-NOLOG" not in str(run.notices) + run.receipt.to_json()
        assert "no_log" in run.of(Output)[-1].text


def test_output_and_diffs_without_secrets() -> None:
    run = Run(
        play("The host play"),
        *task(),
        event("runner_on_file_diff", "h1", diff=[], _stdout="\r\nTASK [x] ***\r\n--- a\r\n+++ b\r\n+CANARY-9"),
        ok("h1"),
        stats(),
    )
    assert [(diff.host, diff.text) for diff in run.of(Diff)] == [("h1", "--- a\n+++ b\n+<value of token>")]
    assert "CANARY-9" not in str(run.notices)


def test_interrupted() -> None:
    run = Run(play("The preflight play"), *task(), ok("h1"), play("The host play"), *task("B"), code=99, interrupted=True)
    assert run.receipt.status == rc.INTERRUPTED
    assert run.statuses() == [rc.DONE, rc.INTERRUPTED, rc.PENDING]


def test_a_play_announced_after_the_last_host_was_lost_is_no_phase() -> None:
    lost = event("runner_on_unreachable", "h1", res={"msg": "gone"})
    run = Run(play("The host play"), *task("A", "h1"), lost, play("The docker play"), stats(dark={"h1": 1}), code=4)
    assert run.statuses() == [rc.PENDING, rc.FAILED, rc.PENDING]
    assert [notice.phase.name for notice in run.of(PhaseStarted)] == ["host"]


def test_a_play_without_tasks_is_done() -> None:
    assert Run(play("The host play"), stats()).statuses() == [rc.DONE] * 3


def test_an_interrupt_that_came_too_late_is_none() -> None:
    assert Run(play("The preflight play"), stats(), code=0, interrupted=True).receipt.status == rc.DONE


def test_ansible_that_ends_before_the_first_play() -> None:
    lines = ["[ERROR]: YAML parsing failed: no CANARY-9 here.", "Origin: /x/roles/y.yml:14:1", "", "14 x: ["]
    progress = Progress(receipt := receipt_of(), PHASES, Redactor(), "/x")
    for line in lines:
        list(progress.handle(event("verbose", _stdout=line)))
    list(progress.conclude(4, interrupted=False))
    assert receipt.failure is not None
    assert receipt.failure.message == "roles/y.yml:14:1: YAML parsing failed: no CANARY-9 here."
    assert receipt.status == rc.BAD_INPUT


def test_ansible_that_is_killed() -> None:
    run = Run(play("The host play"), *task(), code=137)
    assert run.receipt.status == rc.FAILED
    assert run.failure.message == "Ansible was killed (signal 9)"
    assert run.failure.phase == "host"


def test_who_is_still_at_work() -> None:
    progress = Progress(receipt_of(), PHASES, Redactor(), "/x")
    for one in (play("The host play"), *task("A", "h1", "h2"), ok("h1", "A")):
        list(progress.handle(one))
    assert progress.task is not None
    assert (progress.task.name, progress.task.running, progress.task.hosts) == ("A", {"h2"}, {"h1", "h2"})
    assert progress.task.tries is None
    list(progress.handle(event("runner_retry", "h2", task="A", res={"attempts": 1, "retries": 20})))
    assert progress.task.tries == (2, 20)
    assert progress.current is not None
    assert progress.seconds(progress.current) is not None
