"""The guard leaves nothing of its command alive, whoever ends first. The command is a shell that acts as Ansible does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.process import Process
from tests.runner.fake_project import PACKAGE

GUARD = PACKAGE / "provision" / "guard.py"
# A worker in a session of its own, as Ansible starts them, with a child that ignores every polite signal.
FAMILY = """
import os, signal, subprocess, sys, time
note = open(sys.argv[1], "a", buffering=1)
if os.fork() == 0:
    os.setsid()
    child = subprocess.Popen(["sh", "-c", "trap '' INT TERM HUP; for i in $(seq 400); do sleep 0.05; done"])
    note.write(f"{os.getpid()}\\n{child.pid}\\n")
    time.sleep(60)
try:
    time.sleep(60)
except KeyboardInterrupt:
    note.write("asked\\n")
    sys.exit(99)
"""


class Started:
    """A guard under way."""

    def __init__(self, tmp_path: Path, command: list[str], runner: int | None = None) -> None:
        self.record, self.scratch = tmp_path / "run.child", tmp_path / "scratch"
        self.scratch.mkdir()
        (self.scratch / "secret").write_text("x")
        words = [sys.executable, "-I", "-S", str(GUARD), str(runner or os.getpid())]
        self.process = subprocess.Popen([*words, str(self.record), str(self.scratch), "--", *command])

    def wait_for(self, condition: Callable[[], object], seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)


def pids(note: Path) -> list[int]:
    return [int(word) for word in note.read_text().split() if word.isdigit()] if note.exists() else []


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_exit_code_and_record(tmp_path: Path, command: str, code: int) -> None:
    seen = tmp_path / "seen"
    started = Started(tmp_path, ["sh", "-c", f"cp {tmp_path}/run.child {seen}; {command}"])
    assert started.process.wait(10) == code
    record = json.loads(seen.read_text())
    assert record["pid"] == started.process.pid
    assert record["scratch"] == str(started.scratch)
    assert not started.record.exists()
    assert started.scratch.exists(), "it belongs to the runner, which is alive"


def test_what_a_command_leaves_running_at_its_own_end_is_left(tmp_path: Path) -> None:
    # ssh's shared connections outlive Ansible on purpose: the next run is faster by them.
    note = tmp_path / "note"
    started = Started(tmp_path, ["sh", "-c", f"setsid sleep 5 & echo $! > {note}"])
    assert started.process.wait(10) == 0
    (left,) = pids(note)
    assert Process.of(left) is not None
    os.kill(left, signal.SIGKILL)


def test_sigterm_asks_then_kills_everything(tmp_path: Path) -> None:
    note = tmp_path / "note"
    started = Started(tmp_path, [sys.executable, "-c", FAMILY, str(note)])
    started.wait_for(lambda: len(pids(note)) == 2)
    started.process.terminate()
    assert started.process.wait(15) == 99
    assert "asked" in note.read_text()
    assert [pid for pid in pids(note) if Process.of(pid)] == []


def test_a_second_sigterm_does_not_wait(tmp_path: Path) -> None:
    note = tmp_path / "note"
    stubborn = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    stubborn += "open(sys.argv[1], 'w').write('1'); time.sleep(60)"
    started = Started(tmp_path, [sys.executable, "-c", stubborn, str(note)])
    started.wait_for(lambda: note.exists() and note.read_text())
    started.process.terminate()
    time.sleep(0.3)
    assert started.process.poll() is None
    started.process.terminate()
    assert started.process.wait(5) == 137


def test_kill_9_of_the_runner_ends_everything_and_sweeps(tmp_path: Path) -> None:
    note = tmp_path / "note"
    runner_code = (
        "import os, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-I', '-S', sys.argv[1], str(os.getpid()), *sys.argv[2:]])\n"
        "time.sleep(60)\n"
    )
    record, scratch = tmp_path / "run.child", tmp_path / "scratch"
    scratch.mkdir()
    words = [str(GUARD), str(record), str(scratch), "--", sys.executable, "-c", FAMILY, str(note)]
    runner = subprocess.Popen([sys.executable, "-c", runner_code, *words])
    end = time.monotonic() + 10
    while len(pids(note)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    guard = json.loads(record.read_text())
    everyone = [guard["pid"], *pids(note)]
    assert all(Process.of(pid) for pid in everyone)
    runner.kill()
    runner.wait()
    while any(Process.of(pid) for pid in everyone) and time.monotonic() < end + 10:
        time.sleep(0.02)
    assert [pid for pid in everyone if Process.of(pid)] == []
    assert not record.exists()
    assert not scratch.exists()


def test_a_runner_that_is_gone_already_starts_nothing(tmp_path: Path) -> None:
    started = Started(tmp_path, ["touch", str(tmp_path / "ran")], runner=2**22 - 1)
    assert started.process.wait(10) == 1
    assert not (tmp_path / "ran").exists()
    assert not started.scratch.exists()
