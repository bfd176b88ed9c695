"""One run per site; what a killed run left behind is seen."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from provision import lock
from provision.errors import BadInput
from provision.lock import SCRATCH_PREFIX, child_record, site_lock
from provision.process import Process
from provision.site import Site, resolve
from tests.runner.fake_project import FakeProject


@pytest.fixture
def site(fake: FakeProject) -> Site:
    return resolve(fake.project, "fake")


def test_the_second_is_refused_with_the_firsts_pid_start_and_command(site: Site) -> None:
    with site_lock(site, "plane --only host", print), pytest.raises(BadInput) as caught, site_lock(site, "plane", print):
        pass
    (line,) = caught.value.lines
    assert re.fullmatch(
        rf"site fake: another run is at work \(pid {os.getpid()}, started 20\d\d-.*Z: plane --only host\)", line
    )
    with site_lock(site, "plane", print):
        pass


def test_free_again_after_an_error(site: Site) -> None:
    with pytest.raises(ZeroDivisionError), site_lock(site, "plane", print):
        raise ZeroDivisionError
    with site_lock(site, "plane", print):
        pass


def test_state_is_private_and_never_committed(site: Site) -> None:
    with site_lock(site, "plane", print):
        pass
    assert stat.S_IMODE(site.state.stat().st_mode) == 0o700
    assert (site.state / ".gitignore").read_text() == "*\n"


def _left_behind(site: Site, process: Process, scratch: Path) -> None:
    site.state.mkdir(mode=0o700, exist_ok=True)
    record = {"pid": process.pid, "started": process.started, "scratch": str(scratch), "since": "then"}
    child_record(site).write_text(json.dumps(record))


def test_the_ansible_of_a_killed_run_is_waited_for_then_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "CHILD_PATIENCE_S", 0.3)
    child = subprocess.Popen(["sleep", "60"])
    try:
        process = Process.of(child.pid)
        assert process is not None
        _left_behind(site, process, Path("/nowhere"))
        said: list[str] = []
        with (
            pytest.raises(BadInput, match=rf"still works on the hosts \(pid {child.pid}, since then\)"),
            site_lock(site, "plane", said.append),
        ):
            pass
        assert said == [f"site fake: waiting for the Ansible of a killed run to end (pid {child.pid})"]
    finally:
        child.kill()
        child.wait()
    with site_lock(site, "plane", print):
        assert not child_record(site).exists()


def test_what_a_dead_guard_left_is_swept_and_nothing_else(site: Site, tmp_path: Path) -> None:
    ours = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    (ours / "extra-vars-0.json").write_text("{}")
    gone = Process(2**22 - 1, "never")
    _left_behind(site, gone, ours)
    with site_lock(site, "plane", print):
        assert not ours.exists()
    for other in (tmp_path / "precious", Path(tempfile.mkdtemp(prefix="not-ours-"))):
        other.mkdir(exist_ok=True)
        _left_behind(site, gone, other)
        with site_lock(site, "plane", print):
            assert other.exists()
        other.rmdir()


def test_a_process_is_told_from_a_later_one_with_its_pid() -> None:
    child = subprocess.Popen(["sleep", "60"])
    process = Process.of(child.pid)
    assert process is not None and process.alive
    assert not Process(child.pid, process.started + "0").alive
    child.kill()
    while process.alive:
        pass
    assert Process.of(child.pid) is None, "a zombie counts as none"
    child.wait()
    assert Process.of(child.pid) is None
