"""Starting and stopping hosts: their supervisors, and the wait until they take a login."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from provision.errors import EXIT_UNREACHABLE
from provision.lab.errors import LabError
from provision.lab.paths import PROJECT_ROOT, LabPaths
from provision.lab.process import Process, read_json, try_lock, wait_for, write_json
from provision.lab.ready import Run, wait_until_ready

START_SECONDS = 10
_CONSOLE_LINES = 15


class Power:
    """The power switches of one lab's hosts. `run` runs a command on a host by ssh, with a limit in seconds."""

    def __init__(self, paths: LabPaths, run: Run, say: Callable[[str], None]) -> None:
        self._paths = paths
        self._run = run
        self._say = say

    def record(self, host: str, key: str) -> Process | None:
        """The recorded `supervisor` or `init` of a host, dead or alive; None when there is no record."""
        data = (read_json(self._paths.host(host).supervisor) or {}).get(key)
        return Process(**data) if data else None

    def running(self, host: str) -> bool:
        """Whether a host's init runs (it may still be booting)."""
        supervisor, init = self.record(host, "supervisor"), self.record(host, "init")
        return bool(supervisor and supervisor.alive and init and init.alive)

    def start(self, names: Sequence[str], fresh: set[str]) -> None:
        """Start supervisors for hosts that are off, all at once, and wait until each takes a login."""
        for host in names:
            self.stop(host)
        if names:
            self._say(f"booting {', '.join(names)}")
        for host in names:
            self._supervise(host, host in fresh)
        for host in names:
            wait_for(functools.partial(self._settled, host), START_SECONDS)
            if not self.running(host):
                raise LabError(f"{host} did not start:\n{self._console(host)}")
        self.await_login(names)

    def await_login(self, names: Sequence[str]) -> None:
        """Wait for a login on hosts not yet seen to take one in this boot; an interrupted `up` may have left such."""
        inits = {host: self.record(host, "init") for host in names}
        waited = [host for host, init in inits.items() if init and read_json(self._paths.host(host).ready) != init.as_json()]
        problems = wait_until_ready(self._paths, waited, self._run, self.running)
        if problems:
            host, problem = next(iter(problems.items()))
            raise LabError(f"{host} does not take a login: {problem}\n{self._console(host)}", exit_code=EXIT_UNREACHABLE)
        for host in waited:
            init = inits[host]
            if init:
                write_json(self._paths.host(host).ready, init.as_json())

    def _settled(self, host: str) -> bool:
        """Whether a host just started either runs or has failed to."""
        record = read_json(self._paths.host(host).supervisor)
        return self.running(host) or bool(record and "ended" in record)

    def _supervise(self, host: str, fresh: bool) -> None:
        files = self._paths.host(host)
        files.supervisor.unlink(missing_ok=True)
        lock = os.open(files.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not wait_for(lambda: try_lock(lock), START_SECONDS):
                raise LabError(f"{host}: another supervisor holds {files.lock}")
            with files.console.open("ab") as console:
                subprocess.run(
                    [sys.executable, "-m", "provision.lab.supervise", str(files.config), str(lock), str(int(fresh))],
                    cwd=PROJECT_ROOT,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    pass_fds=[lock],
                    check=True,
                )
        finally:
            os.close(lock)

    def stop(self, host: str) -> None:
        """Kill a host's supervisor, and with it the host. A supervisor that is only just starting is waited for."""
        files = self._paths.host(host)
        if not files.root.is_dir():
            return
        lock = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:

            def ended() -> bool:
                supervisor, init = self.record(host, "supervisor"), self.record(host, "init")
                for process in (supervisor, init):
                    if process:
                        process.kill()
                return try_lock(lock) and not (init and init.alive)

            if not wait_for(ended, START_SECONDS):
                raise LabError(f"{host}: its processes would not end within {START_SECONDS} s")
        finally:
            os.close(lock)

    def _console(self, host: str) -> str:
        try:
            return "\n".join(self._paths.host(host).console.read_text(errors="replace").splitlines()[-_CONSOLE_LINES:])
        except OSError:
            return ""
