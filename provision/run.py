"""One run, from options to receipt. `plane` and `model` differ in the group of phases alone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from provision import receipt as rc
from provision.command_line import RunOptions
from provision.engine import Engine, Event, Request, signals_to
from provision.errors import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_UNREACHABLE,
)
from provision.events import Progress
from provision.labsite import is_the_lab, lab_ready
from provision.lock import site_lock
from provision.notices import Notice, Output, PhaseEnded, PhaseStarted
from provision.phases import Phase, select
from provision.prepare import Prepared, prepare
from provision.process import Process
from provision.project import Project
from provision.report import LOG, report
from provision.resume import plan
from provision.store import new_run
from provision.views import View, make_view

EXIT_CODES = {
    rc.DONE: EXIT_DONE,
    rc.FAILED: EXIT_FAILED,
    rc.BAD_INPUT: EXIT_BAD_INPUT,
    rc.UNREACHABLE: EXIT_UNREACHABLE,
    rc.INTERRUPTED: EXIT_INTERRUPTED,
}


def run_phases(project: Project, verb: str, options: RunOptions) -> int:
    """Run the phases of *verb* as *options* say, show and record it, and return the exit code.

    Raises:
        ProvisionError: the run was refused before its first phase.

    """
    view = make_view(json_output=options.json, verbosity=options.verbosity)
    ready = prepare(project, options)
    chosen: list[Phase] = []
    if not options.resume:
        chosen = select(ready.phases, verb, first=options.first, last=options.last, only=options.only)
    with site_lock(ready.site, options.shown(verb), view.say):
        limit, resumed_from = options.limit, None
        if options.resume:
            left = plan(project, ready.site, verb, ready.phases, ready.inputs, options.limit)
            if not left.phases:
                view.say(f"nothing to resume: run {left.receipt.id} passed every phase it had")
                if options.json:
                    print(left.receipt.to_json(), end="")
                return EXIT_DONE
            chosen, limit, resumed_from = left.phases, left.limit, left.receipt.id
        standins = lab_ready(view.say) if is_the_lab(ready.site, ready.inventory) else []
        directory = new_run(project)
        receipt = new_receipt(project, verb, options, ready, chosen)
        receipt.id, receipt.limit = directory.name, limit
        receipt.resumed_from, receipt.standins = resumed_from, standins
        receipt.write(directory)
        whole = not (options.resume or options.first or options.last or options.only)
        request = Request(
            project,
            ready.site,
            tags=(verb,) if whole else tuple(phase.name for phase in chosen),
            limit=limit,
            check=options.check,
            diff=options.diff,
            verbosity=options.verbosity,
            extra_vars=ready.extra_vars,
            vault_password_file=options.vault_password_file,
        )
        progress = Progress(receipt, ready.phases, ready.redactor, str(project.root))
        _follow(request, progress, view, directory, ready.inventory.chosen)
    report(project, verb, options, receipt, directory, view.console, len(ready.inventory.chosen))
    return EXIT_CODES[receipt.status]


def new_receipt(project: Project, verb: str, options: RunOptions, ready: Prepared, chosen: Sequence[Phase]) -> rc.Receipt:
    """Return the receipt of a run that begins now."""
    me = Process.current()
    return rc.Receipt(
        id="",
        verb=verb,
        command=options.words(verb),
        site=rc.SiteRecord(ready.site.name, project.shown(ready.site.path), ready.inventory.lab, ready.site.instance),
        mode="check" if options.check else "apply",
        limit=options.limit,
        selection=[phase.name for phase in chosen],
        process=rc.RunProcess(me.pid, me.started),
        git=ready.git,
        versions=project.versions(),
        inputs=ready.inputs,
        phases=[rc.PhaseRecord(phase.name, phase.title) for phase in chosen],
    )


def _follow(request: Request, progress: Progress, view: View, directory: Path, hosts: list[str]) -> None:
    """Run Ansible to its end, and keep receipt, log and view up with it."""
    receipt = progress.receipt
    engine = Engine(request, on_interrupt=lambda: view.say("interrupted: waiting for Ansible to end (again: kill it)"))
    begun = time.monotonic()

    def on_event(event: Event) -> None:
        gates = len(progress.current.gates) if progress.current else 0
        with view.lock:
            notices = list(progress.handle(event))
        _log(log, notices)
        turned = any(isinstance(notice, (PhaseStarted, PhaseEnded)) for notice in notices)
        if turned or (progress.current and len(progress.current.gates) != gates):
            receipt.write(directory)
        view.tell(notices)

    with os.fdopen(os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as log:
        view.begin(progress, hosts)
        try:
            with signals_to(engine):
                code = engine.run(on_event)
            with view.lock:
                notices = list(progress.conclude(code, interrupted=engine.interrupted))
            view.tell(notices)
        finally:
            view.end()
            if receipt.status == rc.RUNNING:
                receipt.status = rc.FAILED
            receipt.ended = rc.now()
            receipt.seconds = round(time.monotonic() - begun, 3)
            receipt.exit_code = EXIT_CODES[receipt.status]
            receipt.write(directory)


def _log(log: TextIO, notices: list[Notice]) -> None:
    for notice in notices:
        if isinstance(notice, Output):
            log.write(notice.text + "\n")
    log.flush()
