"""Waiting until freshly started hosts take a login."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from provision.lab import kernel
from provision.lab.paths import LabPaths

Run = Callable[[str, Sequence[str], float], "subprocess.CompletedProcess[str]"]

BANNER_SECONDS = 45.0
SYSTEM_SECONDS = 60.0


def wait_until_ready(paths: LabPaths, hosts: list[str], run: Run, running: Callable[[str], bool]) -> dict[str, str]:
    """Wait for all hosts at once; returns a problem for each host that did not get there.

    Ready means: sshd answers, the lab's key is taken, and systemd has finished starting units. Units that failed are
    no problem here: roles find and report them.
    """
    problems: dict[str, str] = {}

    def wait(host: str) -> None:
        problem = _banner(paths, host, running) or _system(host, run)
        if problem:
            problems[host] = problem

    # Threads, each in the namespace of its host: setns(2) moves only the calling thread.
    threads = [threading.Thread(target=wait, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def _banner(paths: LabPaths, host: str, running: Callable[[str], bool]) -> str | None:
    """Wait for sshd's greeting on the host's loopback."""
    kernel.enter_netns(paths.host(host).netns_path)
    deadline = time.monotonic() + BANNER_SECONDS
    seen = "nothing"
    while time.monotonic() < deadline:
        if not running(host):
            return "it ended while it booted"
        try:
            with socket.create_connection(("127.0.0.1", 22), timeout=2) as connection:
                greeting = connection.recv(64)
            if greeting.startswith(b"SSH-"):
                return None
            seen = repr(greeting)
        except OSError as error:
            seen = str(error)
        time.sleep(0.05)
    return f"no ssh greeting within {BANNER_SECONDS:.0f} s (last: {seen})"


def _system(host: str, run: Run) -> str | None:
    """Log in and wait for the end of the boot."""
    try:
        done = run(host, ["systemctl", "is-system-running", "--wait"], SYSTEM_SECONDS)
    except subprocess.TimeoutExpired:
        return f"units were still starting after {SYSTEM_SECONDS:.0f} s"
    if done.stdout.strip() in ("running", "degraded"):
        return None
    return f"systemd says {done.stdout.strip()!r}; ssh says {done.stderr.strip()!r} (exit {done.returncode})"
