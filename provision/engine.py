"""One Ansible process through ansible-runner's Python interface.

ansible-runner's defaults that are set otherwise here, each with its reason:

- a fresh private directory per run, `suppress_env_files`: files of an earlier call would win over this one's
  (ansible/ansible-runner#493, #203);
- the inventory as a list of absolute paths: a string is looked up, and may be rewritten, below the private directory
  (ansible/ansible-runner#1144);
- settings as a file: those given as an argument are lost where no `env/settings` exists (config/_base.py);
- no passwords file: with one, output is held back (ansible/ansible-runner#421);
- no fact cache of its own: it lies in the directory of the one run, so every run would start cold;
- host key checking as `ansible.cfg` has it: it is turned off otherwise;
- no event files: they hold raw results (ansible/ansible-runner#191, #1418). Everything lies in a scratch directory
  that is gone after the run; what is kept is made by the caller.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from provision.extravars import ExtraVars
from provision.guard import GRACE_S
from provision.lock import SCRATCH_PREFIX, child_record
from provision.process import Process
from provision.project import Project
from provision.site import Site

Event = dict[str, Any]
# How often the wait for Ansible's output is interrupted to look for a signal that came before Ansible had started.
_PULSE_S = 0.5


@dataclass(frozen=True)
class Request:
    """What Ansible is to run: the *tags* of `site.yml` on *site*."""

    project: Project
    site: Site
    tags: tuple[str, ...]
    skip_tags: tuple[str, ...] = ()
    limit: str | None = None
    check: bool = False
    diff: bool = False
    verbosity: int = 0
    extra_vars: ExtraVars = field(default_factory=ExtraVars)
    vault_password_file: Path | None = None


class Engine:
    """Runs one request; `interrupt()` may be called from a signal handler while it does."""

    def __init__(
        self, request: Request, *, record: Path | None = None, on_interrupt: Callable[[], None] = lambda: None
    ) -> None:
        self._request = request
        self._record = record or child_record(request.site)
        self._on_interrupt = on_interrupt
        self._signals_due = 0
        self._told = False
        self.interrupted = False

    def run(self, on_event: Callable[[Event], None]) -> int:
        """Run Ansible to its end and return its exit code; *on_event* is called with every event, in order."""
        from ansible_runner.interface import init_runner

        def handle(event: Event) -> bool:
            on_event(event)
            return False

        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
        try:
            (scratch / "env").mkdir()
            settings = {"pexpect_timeout": _PULSE_S, "suppress_output_file": True}
            (scratch / "env" / "settings").write_text(json.dumps(settings), encoding="utf-8")
            request = self._request
            runner = init_runner(
                private_data_dir=str(scratch),
                project_dir=str(request.project.root),
                playbook=request.project.site_yml.name,
                inventory=[str(request.site.inventory)],
                tags=",".join(request.tags),
                skip_tags=",".join(request.skip_tags) or None,
                limit=request.limit,
                cmdline=shlex.join(self._arguments(scratch)),
                verbosity=request.verbosity,
                envvars=self._environment(),
                fact_cache_type="",
                suppress_env_files=True,
                quiet=True,
                event_handler=handle,
                # Given, so that ansible-runner installs no signal handlers and never kills on its own.
                cancel_callback=self._pulse,
            )
            guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))]
            guard += [str(os.getpid()), str(self._record), str(scratch), "--"]
            runner.config.command[:0] = guard
            try:
                runner.run()
            except BaseException:
                self._abandon()
                raise
            # No exit code: the guard itself was killed.
            return 128 + signal.SIGKILL if runner.rc is None else int(runner.rc)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def interrupt(self) -> None:
        """Have Ansible end cleanly; called again, have it killed. Safe in a signal handler: the next pulse acts."""
        self.interrupted = True
        self._signals_due += 1

    def _abandon(self) -> None:
        """End Ansible before an error of the runner's own goes up: nothing works on hosts unseen."""
        self.interrupt()
        self._deliver()
        deadline = time.monotonic() + 2 * GRACE_S
        while self._record.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _pulse(self) -> bool:
        # Told from here, not from the signal handler, which may come in the middle of another line.
        if self.interrupted and not self._told:
            self._told = True
            self._on_interrupt()
        self._deliver()
        return False

    def _deliver(self) -> None:
        while self._signals_due:
            try:
                data = json.loads(self._record.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return
            if Process(data["pid"], data["started"]).alive:
                os.kill(data["pid"], signal.SIGTERM)
            self._signals_due -= 1

    def _arguments(self, scratch: Path) -> list[str]:
        request = self._request
        arguments = request.extra_vars.arguments(scratch)
        if request.vault_password_file:
            arguments += ["--vault-password-file", str(request.vault_password_file)]
        if request.check:
            arguments.append("--check")
        if request.diff:
            arguments.append("--diff")
        return arguments

    def _environment(self) -> dict[str, str]:
        # ansible-runner puts its own callback before this one, which it extends.
        plain = {"ANSIBLE_STDOUT_CALLBACK": "default", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        return self._request.project.environment() | plain


@contextmanager
def signals_to(engine: Engine) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into `engine.interrupt()` for as long as the block runs."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        engine.interrupt()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
