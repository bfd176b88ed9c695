"""`status`: the gates of every phase, read again on the running hosts. Changes nothing and records nothing."""

from __future__ import annotations

import json as json_format
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from provision import receipt as rc
from provision.command_line import RunOptions
from provision.commands.options import extra_vars_option, json_option, limit_option, site_option, vault_option
from provision.engine import Engine, Request, signals_to
from provision.errors import EXIT_DONE, EXIT_FAILED, BadInput
from provision.events import Progress
from provision.labsite import is_the_lab, lab_must_run
from provision.notices import HostFailed
from provision.prepare import Prepared, prepare
from provision.project import Project
from provision.render import failed_checks, failure_block, not_provable
from provision.run import EXIT_CODES, new_receipt
from provision.views import make_view, print_block

VERIFY = "verify"
_WORDS = {
    rc.PASSED: ("passed", "green"),
    rc.FAILED: ("failed", "bold red"),
    rc.NOT_PROVABLE: ("not provable", "magenta"),
}


@click.command()
@site_option
@limit_option
@extra_vars_option
@json_option
@vault_option
@click.pass_obj
def status(project: Project, /, **given: Any) -> int:
    """Read the gates of all phases again, on the running hosts; nothing is changed.

    Exit code 0: every gate passed, or is not provable in the lab; 2: one failed; 4: a host was not reached.
    """
    options = RunOptions(**given)
    view = make_view(json_output=options.json, verbosity=0)
    ready = prepare(project, options, recorded=False)
    if is_the_lab(ready.site, ready.inventory):
        lab_must_run()
    verify = [phase for phase in ready.phases.all if phase.name == VERIFY]
    if not verify:
        raise BadInput(f"site.yml lists no phase {VERIFY}: there are no gates to read")
    receipt = new_receipt(project, "status", options, ready, verify)
    progress = Progress(receipt, ready.phases, ready.redactor, str(project.root))
    # A record of its own, outside the site's lock: to look is allowed while a run is at work.
    with tempfile.TemporaryDirectory(prefix="spark-plane-status-") as directory:
        request = Request(
            project,
            ready.site,
            tags=(VERIFY,),
            # The gates alone: preflight judges inputs for a run that is to change something.
            skip_tags=tuple(phase.name for phase in ready.phases.all if phase.always),
            limit=options.limit,
            extra_vars=ready.extra_vars,
            vault_password_file=options.vault_password_file,
        )
        engine = Engine(request, record=Path(directory, "child"))

        # Hosts go on one by one here, so that several may fail at different tasks: each is to be heard.
        failures: list[HostFailed] = []

        def on_event(event: dict[str, Any]) -> None:
            with view.lock:
                failures.extend(notice for notice in progress.handle(event) if isinstance(notice, HostFailed))

        view.begin(progress, ready.inventory.chosen)
        try:
            with signals_to(engine):
                code = engine.run(on_event)
            with view.lock:
                list(progress.conclude(code, interrupted=engine.interrupted))
        finally:
            view.end()
    return _show(ready, receipt, failures, options, view.console)


def _show(ready: Prepared, receipt: rc.Receipt, failures: list[HostFailed], options: RunOptions, console: Console) -> int:
    gates = [gate for phase in receipt.phases for gate in phase.gates]
    # A failed gate says so itself, check by check.
    judged = {gate.host for gate in gates if gate.status == rc.FAILED}
    told = [one for one in failures if one.host not in judged]
    code = EXIT_CODES[receipt.status]
    if code == EXIT_DONE and any(gate.status == rc.FAILED for gate in gates):
        code = EXIT_FAILED
    if options.json:
        answer = {
            "site": ready.site.name,
            "exit_code": code,
            "gates": [asdict(gate) for gate in gates],
            "failures": [{"host": one.host, "task": one.task, "message": one.message} for one in told],
            "failure": asdict(receipt.failure) if receipt.failure else None,
        }
        click.echo(json_format.dumps(answer, indent=2, default=str))
        return code
    names = list(dict.fromkeys(gate.name for gate in gates))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("host", no_wrap=True)
    for name in names:
        table.add_column(name, no_wrap=True)
    answers = {(gate.host, gate.name): gate.status for gate in gates}
    for host in ready.inventory.chosen:
        words = [_WORDS.get(answers.get((host, name), ""), ("no answer", "yellow")) for name in names]
        table.add_row(host, *(Text(word, style) for word, style in words))
    print_block(console, table)
    for line in failed_checks(receipt):
        console.print(Text.assemble(("failed  ", "red"), line), soft_wrap=True)
    for line in not_provable(receipt, len(ready.inventory.chosen)):
        console.print(Text.assemble(("not provable here  ", "magenta"), line), soft_wrap=True)
    for one in told:
        word = "unreachable" if one.unreachable else "stopped"
        console.print(Text.assemble((f"{word}  ", "red"), f"{one.host}: {one.task}: {one.message}"), soft_wrap=True)
    # Nothing above has told of a stop, or of an Ansible that ended before the first task.
    if receipt.failure and not failures:
        print_block(console, failure_block(receipt))
    return code
