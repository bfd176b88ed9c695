"""What a person sees of a run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from provision import receipt as rc
from provision.events import Progress
from provision.notices import Diff, HostFailed, Output, PhaseEnded, PhaseStarted, TaskEnded, TaskNow
from provision.phases import Phases
from provision.redact import Redactor
from provision.render import duration, not_provable, phase_table, save_picture, summary
from provision.views import LiveView, PlainView
from tests.unit.runner.samples import receipt_of


def text_of(renderable: object, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(None, ""), (0.04, "0.0 s"), (12.34, "12.3 s"), (125, "2 min 05 s"), (3720, "1 h 02 min")]
)
def test_duration(seconds: float | None, wanted: str) -> None:
    assert duration(seconds) == wanted


def test_table_counts_hosts_by_outcome_and_names_the_gate() -> None:
    receipt = receipt_of(gate="not provable", preflight="done", host="failed")
    receipt.phases[1].hosts["h1"].failed = 1
    lines = text_of(phase_table(receipt, ascii_only=True)).splitlines()
    assert lines[1].split()[:7] == ["*", "preflight", "1", "1", "0", "1.5", "s"]
    assert "1 not provable" in lines[1]
    assert lines[2].split()[:5] == ["x", "host", "0", "1", "1"]
    assert lines[3].split() == [".", "docker", "docker", "is", "true"]


def test_summary_of_a_failure_names_host_task_reason_and_the_way_on() -> None:
    receipt = receipt_of(gate="failed", host="failed")
    receipt.seconds = 3
    shown = text_of(summary(receipt, 2, files={"log": "runs/x/ansible.log"}, then=["python -m provision plane --resume"]))
    for words in ("phase host on h1, after 3.0 s", "The task", "broken", "x.yml:1", "runs/x/ansible.log", "plane --resume"):
        assert words in shown


def test_summary_of_a_run_that_ended_well() -> None:
    receipt = receipt_of(preflight="done", host="done", docker="done")
    receipt.status, receipt.seconds = rc.DONE, 61
    receipt.standins = [rc.Standin("k3s", "a stand-in")]
    shown = text_of(summary(receipt, 2))
    assert "done in 1 min 01 s: 3 task results changed, on 1 host" in shown
    assert "stand-ins" in shown and "k3s" in shown
    receipt.mode = "check"
    assert "3 task results would change" in text_of(summary(receipt, 2))
    for phase in receipt.phases:
        phase.hosts["h2"].changed = 0
    receipt.mode = "apply"
    assert "nothing changed" in text_of(summary(receipt, 2))


def test_not_provable_is_told_once_with_all_its_hosts() -> None:
    receipt = receipt_of(gate="not provable", host="done")
    receipt.phases[1].gates += [
        rc.Gate("host", name, "not provable", [rc.Check("it runs", "not provable", reason="because")])
        for name in ("h3", "h2")
    ]
    assert not_provable(receipt, 5) == ["host: it runs (because) on h1, h2, h3"]
    assert not_provable(receipt, 3) == ["host: it runs (because) on all 3 hosts"]


def test_a_picture_loads_nothing(tmp_path: Path) -> None:
    save_picture(tmp_path / "x.svg", summary(receipt_of(), 2), "python -m provision plane")
    picture = (tmp_path / "x.svg").read_text()
    assert "python&#160;-m&#160;provision&#160;plane" in picture or "python -m provision plane" in picture
    assert "preflight" in picture
    assert "url(http" not in picture and "@font-face" not in picture


def plain(verbosity: int) -> tuple[PlainView, io.StringIO]:
    out = io.StringIO()
    view = PlainView(Console(file=out, width=80, color_system=None), verbosity)
    view.begin(Progress(receipt_of(), Phases(()), Redactor(), "/"), ["h1", "h2", "h3"])
    return view, out


def test_plain_lines() -> None:
    view, out = plain(0)
    phase = receipt_of(gate="passed", host="done").phases[1]
    results = {"h1": "changed", "h2": "ok", "h3": "changed"}
    view.tell(
        [
            PhaseStarted(phase),
            Output("raw"),
            TaskEnded(phase, "It is so", results),
            TaskEnded(phase, "Nothing", {"h1": "ok"}),
            Diff(phase, "It is so", "h1", "-a\n+b"),
            HostFailed(phase, "It is so", "h2", "broken", False),
            PhaseEnded(phase),
        ]
    )
    assert out.getvalue().splitlines() == [
        "host: starts (host is true)",
        "host: changed: It is so (h1, h3)",
        "host: h1: It is so",
        "-a",
        "+b",
        "host: failed: h2: It is so: broken",
        "host: done in 1.5 s: hosts 1 ok, 1 changed, 0 failed; gate 1 passed",
    ]


def test_more_words_with_v() -> None:
    phase = receipt_of().phases[1]
    for verbosity, wanted in ((1, ["host: ok: T (all 3 hosts)"]), (2, ["raw", "host: ok: T (all 3 hosts)"])):
        view, out = plain(verbosity)
        view.tell([Output("raw"), TaskEnded(phase, "T", dict.fromkeys(("h1", "h2", "h3"), "ok"))])
        assert out.getvalue().splitlines() == wanted


def test_the_live_table_shows_task_hosts_and_time() -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, width=110, force_terminal=True, color_system=None), 0)
    receipt = receipt_of(preflight="done", host="running")
    progress = Progress(receipt, Phases(()), Redactor(), "/")
    progress.task = TaskNow("Docker runs", running={"h1", "h2", "h3"}, hosts={"h1", "h2", "h3", "h4"}, tries=(2, 20))
    view.begin(progress, ["h1", "h2", "h3", "h4"])
    view.say("a note")
    shown = text_of(view._render(), 110)
    view.tell([PhaseEnded(receipt.phases[0]), HostFailed(receipt.phases[1], "T", "h2", "broken", True)])
    view.end()
    assert "Docker runs  3 of 4 hosts  try 2 of 20" in shown
    assert "a note" in shown
    assert "preflight: done" not in out.getvalue()
    assert "unreachable: h2: T: broken" in out.getvalue()
