"""What `spark.plane.units` runs, in which order, and what it says when something does not take hold.

A small systemd stands in for the real one: it answers `systemctl` as far as the module asks. The real one is met in
tests/lab_modules.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.module_utils import systemd, unitact, unitcontent, unitplan
from ansible_collections.spark.plane.plugins.modules.units import converge, diff


@dataclass
class Unit:
    """One unit of the stand-in. `becomes` is its state after a start."""

    path: str = ""
    load: str = "loaded"
    state: str = "active/running"
    enabled: str = "enabled"
    type: str = "notify"
    invocation: str = "old"
    stale: str = "no"
    becomes: str = "active/running"
    refuses: bool = False


@dataclass
class FakeSystemd:
    """Units by name, and every command that was run."""

    units: dict[str, Unit]
    calls: list[str] = field(default_factory=list)
    after_reload: dict[str, Unit] = field(default_factory=dict)
    starts: int = 0

    def run(self, argv: list[str], timeout: float) -> systemd.Output:
        words = [word for word in argv if not word.startswith("-")]
        if words[0] == "journalctl":
            return systemd.Output(0, "2026-01-01T00:00:00 x[1]: bad key in configuration\n" * 40)
        verb, names = words[1], words[2:]
        self.calls.append(" ".join(words[1:]) if verb != "show" else "show")
        if verb == "show":
            assert "--timestamp=unix" in argv
            return systemd.Output(0, "\n".join(self._show(name) for name in names))
        if verb == "daemon-reload":
            self.units.update(self.after_reload)
            for unit in self.units.values():
                unit.stale = "no"
        for name in names:
            self._job(verb, self.units[name])
        return systemd.Output(0 if not any(self.units[n].refuses for n in names) else 1, "Job refused by policy.\n")

    def _job(self, verb: str, unit: Unit) -> None:
        if unit.refuses:
            return
        if verb in ("start", "restart"):
            self.starts += 1
            unit.state, unit.invocation = unit.becomes, f"new{self.starts}"
        elif verb == "stop":
            unit.state = "inactive/dead"
        elif verb in ("enable", "disable"):
            unit.enabled = f"{verb}d"
        elif verb == "unmask":
            unit.load = "loaded"

    def _show(self, name: str) -> str:
        unit = self.units[name]
        active, _, sub = unit.state.partition("/")
        started = int(time.monotonic() * 1e6)
        return (
            f"Id={name}\nLoadState={unit.load}\nActiveState={active}\nSubState={sub}\nUnitFileState={unit.enabled}\n"
            f"FragmentPath={unit.path}\nType={unit.type}\nRemainAfterExit=no\nInvocationID={unit.invocation}\n"
            f"NeedDaemonReload={unit.stale}\nResult=exit-code\nExecMainStatus=1\nConditionResult=yes\n"
            f"ExecMainStartTimestampMonotonic={started}\n"
        )


@pytest.fixture
def stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(unitcontent, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(unitact, "SETTLE", 0.01)
    monkeypatch.setattr(unitact, "_POLL", 0.01)
    return tmp_path / "stamps"


def call(
    monkeypatch: pytest.MonkeyPatch, fake: FakeSystemd, *entries: dict[str, Any], check: bool = False
) -> tuple[unitact.Done, list[unitplan.Decision]]:
    monkeypatch.setattr(systemd, "run", fake.run)
    specs, problems = unitplan.parse(entries)
    assert not problems
    done = unitact.Done()
    try:
        return done, converge(specs, done, check=check, pending=[])
    except unitact.UnitsError as err:
        err.args = (*err.args, done)
        raise


def started(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": "started", "enabled": True, **more}


def stamp_of(stamps: Path, name: str) -> str:
    return str(json.loads((stamps / f"{name}.service.json").read_text())["invocation_id"])


def test_a_quiet_call_is_one_process(stamps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("1")
    time.sleep(0.05)
    fake = FakeSystemd({"a.service": Unit(), "b.service": Unit()})
    entries = (started("a", content=[str(tmp_path / "conf")]), started("b"))
    done, _ = call(monkeypatch, fake, *entries)
    assert (done.changed, done.adopted, fake.calls) == (False, ["a.service", "b.service"], ["show"])
    fake.calls.clear()
    done, decisions = call(monkeypatch, fake, *entries)
    assert (done.changed, done.adopted, fake.calls) == (False, [], ["show"])
    assert diff(decisions) == {"before": "", "after": ""}


def test_changed_content_restarts_once_and_is_stamped(stamps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text("1")
    time.sleep(0.05)
    fake = FakeSystemd({"a.service": Unit()})
    entry = started("a", content=[str(conf)])
    call(monkeypatch, fake, entry)
    conf.write_text("2")
    done, decisions = call(monkeypatch, fake, entry)
    assert done.restarted == ["a.service"]
    assert done.reasons == {"a.service": f"content of {conf} differs from what it was started with"}
    assert stamp_of(stamps, "a") == "new1"
    assert diff(decisions)["before"] == f"a.service: content of {conf} differs from what it was started with\n"
    fake.calls.clear()
    done, _ = call(monkeypatch, fake, entry)
    assert (done.changed, fake.calls) == (False, ["show"])


def test_a_run_killed_between_write_and_restart_is_healed(
    stamps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The restart itself is cut short: systemd has done it or not, the next run ends in the same state."""
    conf = tmp_path / "conf"
    conf.write_text("1")
    time.sleep(0.05)
    fake = FakeSystemd({"a.service": Unit()})
    entry = started("a", content=[str(conf)])
    call(monkeypatch, fake, entry)
    conf.write_text("2")
    with monkeypatch.context() as patch:
        patch.setattr(unitact, "_jobs", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            call(patch, fake, entry)
    assert call(monkeypatch, fake, entry)[0].restarted == ["a.service"]
    conf.write_text("3")
    with monkeypatch.context() as patch:
        patch.setattr(unitact, "_confirm", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            call(patch, fake, entry)
    time.sleep(0.05)
    done, _ = call(monkeypatch, fake, entry)
    assert (done.restarted, done.adopted) == ([], ["a.service"])


def test_the_order_of_commands(stamps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    newer = tmp_path / "u"
    newer.write_text("")
    fake = FakeSystemd(
        {
            "a.service": Unit(state="inactive/dead", enabled="disabled"),
            "b.service": Unit(state="failed/failed", enabled="disabled"),
            "c.service": Unit(path=str(newer), stale="yes"),
            "d.service": Unit(),
            "e.service": Unit(load="masked", state="inactive/dead", enabled="disabled"),
        }
    )
    monkeypatch.setattr(unitplan, "started_at", lambda *_: time.time() - 3600)
    done, _ = call(
        monkeypatch,
        fake,
        started("a"),
        started("b"),
        started("c"),
        {"name": "d", "state": "stopped", "enabled": False},
        {**started("e"), "masked": False},
    )
    assert fake.calls == [
        "show",
        "unmask e.service",
        "daemon-reload",
        "show",
        "enable a.service b.service e.service",
        "disable d.service",
        "stop d.service",
        "restart c.service",
        "reset-failed a.service b.service e.service",
        "start a.service b.service e.service",
        "show",
    ]
    assert (done.started, done.restarted, done.stopped) == (
        ["a.service", "b.service", "e.service"],
        ["c.service"],
        ["d.service"],
    )
    assert (done.enabled, done.disabled, done.unmasked, done.reloaded) == (
        ["a.service", "b.service", "e.service"],
        ["d.service"],
        ["e.service"],
        True,
    )


def test_check_mode_runs_one_show_and_stamps_nothing(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSystemd(
        {
            "a.service": Unit(load="not-found", state="inactive/dead", enabled="", stale="yes"),
            "b.service": Unit(),
        }
    )
    done, decisions = call(monkeypatch, fake, started("a"), started("b"), check=True)
    assert fake.calls == ["show"]
    assert (done.started, done.enabled, done.adopted) == (["a.service"], ["a.service"], ["b.service"])
    assert "not installed" in decisions[0].notes[0]
    assert not stamps.exists()


def test_an_unknown_unit_file_is_looked_for_again(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Unit(load="not-found", state="inactive/dead", enabled="")
    fake = FakeSystemd({"a.service": missing}, after_reload={"a.service": Unit(state="inactive/dead")})
    assert call(monkeypatch, fake, started("a"))[0].started == ["a.service"]
    fake = FakeSystemd({"a.service": missing, "b.service": Unit(state="inactive/dead")})
    with pytest.raises(unitact.UnitsError, match=r"a\.service is not installed on this host"):
        call(monkeypatch, fake, started("b"), started("a"))
    # Nothing was done to b: all is decided before anything is acted on.
    assert fake.calls == ["show", "daemon-reload", "show"]


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Unit(state="inactive/dead", becomes="failed/failed"), "did not start: it is failed/failed, result exit-code, exit"),
        (Unit(state="inactive/dead", becomes="activating/auto-restart"), "did not start: it is activating/auto-restart"),
        (Unit(state="inactive/dead", becomes="activating/start"), "still activating/start after 0.05 s"),
        (Unit(state="inactive/dead", refuses=True), "did not start: it is inactive/dead"),
    ],
)
def test_a_failed_start_says_why_and_what_was_done(
    stamps: Path, monkeypatch: pytest.MonkeyPatch, unit: Unit, said: str
) -> None:
    fake = FakeSystemd({"a.service": Unit(state="inactive/dead"), "b.service": unit})
    with pytest.raises(unitact.UnitsError, match=said) as caught:
        call(monkeypatch, fake, started("a"), started("b", timeout=0.05))
    assert caught.value.units == ["b.service"]
    assert caught.value.args[-1].started == ["a.service", "b.service"]
    lines = str(caught.value.args[0]).splitlines()
    assert len(lines) == 1 + unitact.JOURNAL_LINES
    assert "bad key in configuration" in lines[-1]
    # The good one is stamped, the bad one is not: the next run tries it again.
    assert stamp_of(stamps, "a").startswith("new")
    assert not (stamps / "b.service.json").exists()


def test_a_refused_restart_is_not_taken_for_one(stamps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Systemd may refuse a job while the old process goes on: active, but on the old content."""
    conf = tmp_path / "conf"
    conf.write_text("1")
    time.sleep(0.05)
    fake = FakeSystemd({"a.service": Unit()})
    entry = started("a", content=[str(conf)])
    call(monkeypatch, fake, entry)
    conf.write_text("2")
    fake.units["a.service"].refuses = True
    with pytest.raises(unitact.UnitsError, match="did not restart: Job refused by policy"):
        call(monkeypatch, fake, entry)
    fake.units["a.service"].refuses = False
    assert call(monkeypatch, fake, entry)[0].restarted == ["a.service"]


def test_a_unit_that_is_still_starting_is_waited_for(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSystemd({"a.service": Unit(state="activating/start")})
    shows = 0
    real = fake._show

    def show(name: str) -> str:
        nonlocal shows
        shows += 1
        if shows == 4:
            fake.units[name].state = "active/running"
        return real(name)

    monkeypatch.setattr(fake, "_show", show)
    done, _ = call(monkeypatch, fake, started("a", timeout=5))
    assert (done.changed, done.adopted, shows) == (False, ["a.service"], 4)
    fake = FakeSystemd({"b.service": Unit(state="activating/start")})
    with pytest.raises(unitact.UnitsError, match=r"did not start: it was still activating/start after 0.05 s") as caught:
        call(monkeypatch, fake, started("b", timeout=0.05))
    assert caught.value.args[-1].adopted == []
    assert not (stamps / "b.service.json").exists()


def test_a_unit_without_readiness_is_looked_at_twice(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSystemd({"a.service": Unit(state="inactive/dead", type="simple")})
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        fake.units["a.service"].state = "failed/failed"

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(unitact.UnitsError, match="failed/failed"):
        call(monkeypatch, fake, started("a"))
    assert slept == [unitact.SETTLE]


def test_a_unit_that_does_not_stop_is_named(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSystemd({"a.service": Unit(refuses=True)})
    with pytest.raises(unitact.UnitsError, match=r"a.service did not stop within 3 s \(it is active/running\)"):
        call(monkeypatch, fake, {"name": "a", "state": "stopped", "timeout": 3})


def test_output_of_show_is_read() -> None:
    text = "Id=a.service\nExecStart={ path=/a ; argv[]=/a -x; y ; ignore_errors=no ; start_time=[n/a] }\nEnv=A=1\n\nId=b\n"
    first, second = systemd.parse_show(text)
    assert (first["Env"], second) == ("A=1", {"Id": "b"})
    assert systemd.argv(first["ExecStart"]) == "/a -x; y"
    assert systemd.argv("") == ""
    assert systemd.parse_show("E=/a (x)\nE=/b (y)\n") == [{"E": "/a (x)\n/b (y)"}]
    assert [systemd.full_name(name) for name in ("a", "a.b", "a.socket", "a@b.c")] == [
        "a.service",
        "a.b.service",
        "a.socket",
        "a@b.c.service",
    ]


def test_a_host_without_systemd_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(1, "System has not been booted with systemd"))
    with pytest.raises(systemd.SystemdError, match=r"cannot be asked about a.service: System has not been booted"):
        systemd.show(["a"], ["Id"])
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(None, ""))
    with pytest.raises(systemd.SystemdError, match="no answer within 20 s"):
        systemd.show(["a"], ["Id"])
