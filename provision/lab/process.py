"""Processes by pid and start time, file locks, and files written in one step."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from provision.lab.errors import LabError


def machine_boot_id() -> str:
    """The machine's boot id: pids and namespaces recorded under another one mean nothing any more."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (proc(5), stat field 22); None when gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same pid."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Process:
        """Describe a living process. Raises LabError when there is none."""
        found = cls.find(pid)
        if found is None:
            raise LabError(f"process {pid} ended before it could be recorded")
        return found

    @classmethod
    def find(cls, pid: int) -> Process | None:
        """Describe a process; None when it is gone."""
        start = start_time(pid)
        return None if start is None else cls(pid, start, machine_boot_id())

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return self.boot == machine_boot_id() and start_time(self.pid) == self.start

    def kill(self) -> None:
        """SIGKILL it, unless it is gone. The pidfd pins the process between the check and the signal."""
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:
            return
        try:
            if self.alive:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(fd)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False when it outlives `seconds`."""
        return wait_for(lambda: not self.alive, seconds)

    def as_json(self) -> dict[str, Any]:
        """Plain data for a state file."""
        return asdict(self)


def wait_for(condition: Callable[[], bool], seconds: float, step: float = 0.02) -> bool:
    """Poll `condition` until it holds; False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file in one step: a reader, or a kill at any point, sees the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "w") as stream:
        stream.write(text)
    temporary.chmod(mode)
    temporary.replace(path)


def write_json(path: Path, data: Any) -> None:
    """`write_text` for JSON."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None when there is no such file or it is not one."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


@contextlib.contextmanager
def locked(path: Path, what: str, seconds: float) -> Iterator[int]:
    """Hold an exclusive lock on `path`, waiting up to `seconds`; yields the descriptor. Raises LabError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not wait_for(lambda: try_lock(fd), seconds, step=0.1):
            raise LabError(f"{what}: another process has held {path} for {seconds:.0f} s")
        yield fd
    finally:
        os.close(fd)


def try_lock(fd: int) -> bool:
    """Take an exclusive flock on `fd` if nobody holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
