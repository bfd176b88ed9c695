"""Which process is meant: a pid alone is reused, a pid with its start is not."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process by pid and an opaque token of its start (boot id and clock ticks on Linux)."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """Return the process now running under *pid*, or None when there is none (a zombie counts as none)."""
        token = _start_token(pid)
        return cls(pid, token) if token else None

    @classmethod
    def current(cls) -> Process:
        """Return this very process."""
        return cls(os.getpid(), _start_token(os.getpid()) or "")

    @property
    def alive(self) -> bool:
        """True while this process, and not a later one under the same pid, runs."""
        return bool(self.started) and _start_token(self.pid) == self.started


def _start_token(pid: int) -> str | None:
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return _start_token_by_ps(pid)
    try:
        # The command name may hold spaces and parentheses: fields count from the last ")". State is the first there,
        # the start time the 20th (field 22 of proc(5)).
        fields = stat.read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except (OSError, UnicodeDecodeError):
        return None
    return None if fields[0] in "ZX" else f"{boot}-{fields[19]}"


def _start_token_by_ps(pid: int) -> str | None:
    # A controller without /proc (macOS).
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, start = done.stdout.strip().partition(" ")
    return None if not start or state.startswith("Z") else start.strip()
