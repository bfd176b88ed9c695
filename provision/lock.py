"""One run per site at a time.

The lock is an flock on `<site>/.state/run.lock`: the kernel drops it with its holder, however that ends. The file's
text says who holds it. Ansible is a process of its own, and the guard that starts it (guard.py) leaves its own record
beside the lock: after a `kill -9` of a runner the next one sees whether that Ansible has ended yet.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from provision.errors import BadInput
from provision.files import private_dir
from provision.process import Process
from provision.receipt import now
from provision.site import Site

# The guard gives Ansible 10 s to end cleanly when its runner is gone, then kills: twice that is enough.
CHILD_PATIENCE_S = 20.0
SCRATCH_PREFIX = "spark-plane-run-"


def child_record(site: Site) -> Path:
    """Return the file in which the guard of a running Ansible names itself."""
    return site.run_state / "run.child"


@contextlib.contextmanager
def site_lock(site: Site, command: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold *site* for one run.

    Raises:
        BadInput: another run holds it, or the Ansible of a killed run does not end.

    """
    # A site outside this checkout may lie in a repository of its own: its state is never committed.
    ignore = private_dir(site.state) / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    private_dir(site.run_state)
    descriptor = os.open(site.run_state / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(_held(site, _read(site.run_state / "run.lock"))) from None
        _outlive_child(site, say)
        holder = {"pid": os.getpid(), "started": now(), "command": command}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (json.dumps(holder) + "\n").encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _held(site: Site, holder: dict[str, Any]) -> str:
    who = f"pid {holder['pid']}, started {holder['started']}: {holder['command']}" if holder else "its pid is not known yet"
    return f"site {site.name}: another run is at work ({who})"


def _outlive_child(site: Site, say: Callable[[str], None]) -> None:
    record = child_record(site)
    left = _read(record)
    if not left:
        return
    child = Process(int(left["pid"]), str(left["started"]))
    deadline = time.monotonic() + CHILD_PATIENCE_S
    if child.alive:
        say(f"site {site.name}: waiting for the Ansible of a killed run to end (pid {child.pid})")
    while child.alive:
        if time.monotonic() > deadline:
            raise BadInput(
                f"site {site.name}: the Ansible of a killed run still works on the hosts "
                f"(pid {child.pid}, since {left['since']}); end it, or wait"
            )
        time.sleep(0.1)
    # A guard that was itself killed leaves its scratch directory, which may hold variables.
    scratch = Path(str(left["scratch"]))
    if scratch.parent == Path(tempfile.gettempdir()) and scratch.name.startswith(SCRATCH_PREFIX):
        shutil.rmtree(scratch, ignore_errors=True)
    record.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
