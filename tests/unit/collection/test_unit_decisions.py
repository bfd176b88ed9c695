"""A unit is restarted exactly when the content it runs on differs from what it was started with.

Each file under cases/units/ is one situation: the unit's properties, its stamp, the files with their age against the
start, and the decision wanted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.module_utils import hostfacts, unitcontent, unitplan

CASES = sorted(Path(__file__).parent.glob("cases/units/*.json"))
START = 1_700_000_000.0
"""When the unit under test began, in seconds since the epoch; 1000 s monotonic."""

NOW = unitplan.Now(real=START + 5000, monotonic=6000.0)
LOADED = {
    "Id": "x.service",
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "UnitFileState": "enabled",
    "FragmentPath": "/etc/systemd/system/x.service",
    "Type": "notify",
    "RemainAfterExit": "no",
    "InvocationID": "live",
    "ExecMainStartTimestamp": f"@{START:.0f}",
    "ExecMainStartTimestampMonotonic": "1000000000",
    "InactiveExitTimestamp": f"@{START:.0f}",
    "InactiveExitTimestampMonotonic": "1000000000",
}


def write(root: Path, path: str, text: str, age: float) -> None:
    """Make a file whose times stand `age` seconds before (or, negative, after) the start."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (START - age, START - age))


@pytest.fixture(autouse=True)
def _change_time_follows_modification_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test cannot set a file's change time, so it is taken from the modification time; see the ctime test below."""
    real = os.stat_result

    def aged(method: str) -> Any:
        original = getattr(Path, method)

        def read(self: Path, **options: Any) -> os.stat_result:
            seen = original(self, **options)
            names = {"st_mtime_ns": seen.st_mtime_ns, "st_ctime_ns": seen.st_mtime_ns}
            return real(tuple(seen), names)

        return read

    monkeypatch.setattr(Path, "stat", aged("stat"))
    monkeypatch.setattr(Path, "lstat", aged("lstat"))


@pytest.mark.parametrize("case", CASES, ids=[path.stem for path in CASES])
def test_decision(case: Path, tmp_path: Path) -> None:
    given = json.loads(case.read_text())
    files = {"/etc/systemd/system/x.service": ["[Service]", 100], **given.get("stamped_files", {})}
    properties = {**LOADED, **given.get("properties", {})}
    for path, (text, age) in files.items():
        write(tmp_path, path, text, age)
    if "stamp" in given:
        listed = given.get("stamped_properties", properties)
        units = unitcontent.unit_files({**properties, **listed})
        content = unitcontent.read(units, given.get("stamped_content", given.get("content", [])), None, tmp_path)
        unitcontent.save("x.service", unitcontent.Stamp(given["stamp"], content, 0), tmp_path)
    for path, entry in given.get("files", {}).items():
        if entry is None:
            (tmp_path / path.lstrip("/")).unlink()
        else:
            write(tmp_path, path, entry[0], entry[1])
    entry = {"name": "x", "content": given.get("content", []), **given.get("unit", {"state": "started", "enabled": True})}
    (spec,), problems = unitplan.parse([entry])
    assert not problems
    decision = unitplan.decide(
        spec,
        properties,
        NOW,
        check=given.get("check", False),
        stale=given.get("stale", False),
        pending=given.get("pending", []),
        root=tmp_path,
    )
    wanted = given["wanted"]
    for key in ("verb", "enable", "mask", "adopt", "wait"):
        assert getattr(decision, key) == wanted.get(key, {"adopt": False, "wait": False}.get(key)), key
    for key in ("reason", "problem"):
        assert wanted.get(key, "") in getattr(decision, key), key
        assert bool(wanted.get(key)) == bool(getattr(decision, key)), key
    assert any(wanted.get("note", "") in note for note in decision.notes) == ("note" in wanted)


def test_a_rename_keeps_the_modification_time_but_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "old").write_text("x")
    os.utime(tmp_path / "old", (START, START))
    (tmp_path / "old").rename(tmp_path / "conf")
    content = unitcontent.read([], ["/conf"], None, tmp_path)
    assert unitcontent.newer(content, START + 100) == ["/conf is newer than its start"]


def test_a_link_pointed_elsewhere_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "a").write_text("x")
    os.utime(tmp_path / "a", (START, START))
    (tmp_path / "conf").symlink_to("a")
    content = unitcontent.read([], ["/conf"], None, tmp_path)
    assert content.files["/conf"].mtime_ns > (START + 100) * 1e9


@pytest.mark.parametrize(
    ("properties", "started"),
    [
        # Monotonic 1000 s of 6000 s: 5000 s before now.
        ({"ExecMainStartTimestampMonotonic": "1000000000", "ExecMainStartTimestamp": f"@{START:.0f}"}, START),
        # The clock was stepped an hour forward since: the recorded start is earlier than the computed one, and counts.
        ({"ExecMainStartTimestampMonotonic": "1000000000", "ExecMainStartTimestamp": f"@{START - 3600:.0f}"}, START - 3599),
        # Stepped back: the computed one is earlier.
        ({"ExecMainStartTimestampMonotonic": "1000000000", "ExecMainStartTimestamp": f"@{START + 3600:.0f}"}, START),
        # ExecStartPre ran for 60 s before the main process.
        (
            {"ExecMainStartTimestampMonotonic": "1000000000", "InactiveExitTimestampMonotonic": "940000000"},
            START - 60,
        ),
        # A target has no process.
        ({"ExecMainStartTimestampMonotonic": "0", "InactiveExitTimestampMonotonic": "1000000000"}, START),
    ],
)
def test_the_earliest_reading_of_the_start_counts(properties: dict[str, str], started: float) -> None:
    assert unitplan.started_at(properties, NOW) == pytest.approx(started - 0.02, abs=0.001)


def test_a_unit_whose_start_is_unknown_is_never_adopted() -> None:
    assert unitplan.started_at({}, NOW) == 0.0
    assert unitplan.started_at({"ExecMainStartTimestamp": "", "InactiveExitTimestampMonotonic": "0"}, NOW) == 0.0


def test_large_files_are_hashed_again_only_when_they_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    big = tmp_path / "big"
    big.write_bytes(b"a" * (1 << 20))
    first = unitcontent.read([], ["/big"], None, tmp_path)
    changed = first.files["/big"].changed_ns
    hashed: list[Path] = []
    real = hostfacts.sha256

    def sha256(path: Path) -> str | None:
        hashed.append(path)
        return real(path)

    monkeypatch.setattr(hostfacts, "sha256", sha256)
    settled = unitcontent.Stamp("i", first, changed + 3_000_000_000)
    assert unitcontent.read([], ["/big"], settled, tmp_path) == first
    assert hashed == []
    # Stamped within the same timer tick as the write: the times cannot be trusted yet.
    assert unitcontent.read([], ["/big"], unitcontent.Stamp("i", first, changed + 1), tmp_path) == first
    assert len(hashed) == 1
    big.write_bytes(b"b" * (1 << 20))
    assert unitcontent.read([], ["/big"], settled, tmp_path).digest != first.digest


def test_a_directory_stands_for_its_files(tmp_path: Path) -> None:
    directory = tmp_path / "conf.d"
    directory.mkdir()
    (directory / "a").write_text("1")
    (directory / "up").symlink_to("..")
    os.mkfifo(directory / "pipe")

    def read() -> str:
        return unitcontent.read([], ["/conf.d"], None, tmp_path).digest

    seen = {read()}
    (directory / "a").write_text("2")
    seen.add(read())
    (directory / "b").write_text("")
    seen.add(read())
    (directory / "up").unlink()
    (directory / "up").symlink_to("../..")
    seen.add(read())
    assert len(seen) == 4


def test_stamps_are_private_and_broken_ones_are_no_stamps(tmp_path: Path) -> None:
    content = unitcontent.Content(("/u",), {"/u": unitcontent.FileState("aa", 1, 2, 3, 4)})
    stamp = unitcontent.Stamp("live", content, 5)
    unitcontent.save("x.service", stamp, tmp_path)
    path = tmp_path / unitcontent.STAMPS / "x.service.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert unitcontent.load("x.service", tmp_path) == stamp
    good = json.loads(path.read_text())
    assert (good["invocation_id"], len(good["digest"])) == ("live", 64)
    for broken in ("", "{", "[]", "null", json.dumps({**good, "version": 9}), json.dumps({**good, "files": {"/u": 1}})):
        path.write_text(broken)
        assert unitcontent.load("x.service", tmp_path) is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "x", "masked": True, "state": "started"}, "masked and started"),
        ({"name": "x", "masked": True, "enabled": True}, "exclude each other"),
        ({"name": "x", "content": ["etc/x"]}, "content must be absolute paths, seen 'etc/x'"),
        ({"name": "x", "timeout": -1}, "timeout must be more than 0"),
    ],
)
def test_contradictions_are_named(entry: dict[str, Any], said: str) -> None:
    assert said in unitplan.parse([entry])[1][0]


def test_a_unit_listed_twice_is_named() -> None:
    assert unitplan.parse([{"name": "x"}, {"name": "x.service"}])[1] == ["x.service is listed twice"]


@pytest.mark.parametrize(
    ("state", "properties", "reload"),
    [
        ("started", {"NeedDaemonReload": "yes", "LoadState": "loaded"}, True),
        ("started", {"NeedDaemonReload": "no", "LoadState": "loaded"}, False),
        ("started", {"NeedDaemonReload": "no", "LoadState": "not-found"}, True),
        ("stopped", {"NeedDaemonReload": "no", "LoadState": "not-found"}, False),
    ],
)
def test_when_unit_files_are_read_again(state: str, properties: dict[str, str], reload: bool) -> None:
    assert unitplan.needs_reload(unitplan.UnitSpec("x.service", state), properties) is reload
