"""Starts Ansible and answers for its end: `python guard.py RUNNER_PID RECORD SCRATCH -- COMMAND...`.

Ansible puts each worker into a session of its own, so that neither a signal to its process group nor its own end
reaches them all. This process stands between the runner and Ansible:

- it is the parent that orphaned workers and ssh clients fall back to, so it can find every one of them;
- the kernel sends it SIGTERM when the runner ends, however it ends; the runner sends the same to interrupt;
- on SIGTERM it asks Ansible to end (SIGINT, which Ansible passes on to its workers), and kills whatever is left after
  GRACE_S; on a second SIGTERM at once;
- it writes RECORD (pid and start) before Ansible starts, and removes it, with SCRATCH, when nothing is left.

Standard library only, started with `-I -S`: about 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

GRACE_S = 10
# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None)


def parents() -> dict[int, int]:
    """Return the parent of every process of this machine."""
    found: dict[int, int] = {}
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        return {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(entry, "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found[int(entry.name)] = int(fields[1])
    return found


def descendants(root: int) -> list[int]:
    """Return the living children of *root*, their children, and so on."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _before_exec() -> None:
    """Let SIGINT act on Ansible as usual (the guard ignores it), and end Ansible should the guard itself be killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LINUX:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Guard:
    """Runs one command and, when told to stop, ends it and everything it started."""

    def __init__(self, runner: int) -> None:
        self._runner = runner
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def watch_runner(self) -> None:
        """Arrange for SIGTERM when the runner ends, also when that has already happened."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGALRM, self._kill_all)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if _LINUX:
            _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        else:
            threading.Thread(target=self._poll_runner, daemon=True).start()

    def run(self, command: list[str]) -> int:
        """Run *command* and return its exit code (128 + signal where a signal ended it)."""
        if os.getppid() != self._runner:
            return 1
        self._child = subprocess.Popen(command, preexec_fn=_before_exec)
        if self._stopping:
            self._ask_to_end()
        code = self._wait(self._child.pid)
        if self._stopping:
            signal.alarm(0)
            self._end_rest()
        return code

    def _wait(self, pid: int) -> int:
        # As the parent of orphans this process collects them too; only the one command's end counts.
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._stopping and self._child is not None:
            self._kill_all(signal.SIGALRM, None)
            return
        self._stopping = True
        self._ask_to_end()

    def _ask_to_end(self) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGINT)
            signal.alarm(GRACE_S)

    def _kill_all(self, _number: int, _frame: FrameType | None) -> None:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_rest(self) -> None:
        deadline = time.monotonic() + GRACE_S
        while descendants(os.getpid()) and time.monotonic() < deadline:
            self._kill_all(signal.SIGALRM, None)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.05)

    def _poll_runner(self) -> None:
        while os.getppid() == self._runner:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: list[str]) -> int:
    """Run the command after `--` under guard."""
    runner, record, scratch = int(arguments[0]), Path(arguments[1]), Path(arguments[2])
    guard = Guard(runner)
    guard.watch_runner()
    # This directory's parent holds the package; the import waits until here because `-I` leaves it out of the path.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from provision.process import Process

    me = {"pid": os.getpid(), "started": Process.current().started, "scratch": str(scratch)}
    me["since"] = datetime.now(UTC).isoformat(timespec="seconds")
    temporary = record.with_name(f".{record.name}.{os.getpid()}")
    temporary.write_text(json.dumps(me) + "\n", encoding="utf-8")
    temporary.replace(record)
    try:
        return guard.run(arguments[4:])
    finally:
        record.unlink(missing_ok=True)
        if os.getppid() != runner:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
