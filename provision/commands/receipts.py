"""`receipts`: the runs on record."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from provision.commands.options import json_option, svg_option
from provision.project import Project
from provision.receipt import DONE, INTERRUPTED, RUNNING, Receipt
from provision.render import duration, site_words
from provision.report import draw, outcome
from provision.store import all_runs, find_run
from provision.views import plain_marks, print_block

_STYLES = {DONE: "green", RUNNING: "cyan", INTERRUPTED: "yellow"}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def receipts(context: click.Context, json: bool) -> None:
    """List the runs on record, the newest first."""
    if context.invoked_subcommand is not None:
        return
    runs = [run.receipt for run in all_runs(context.find_root().obj)]
    if json:
        click.echo(json_format.dumps([_line(receipt) for receipt in runs], indent=2))
        return
    if not runs:
        click.echo("no runs yet")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("run", "site", "command", "status", "time", "phases", "why"):
        table.add_column(column, no_wrap=True, max_width={"command": 40, "why": 30}.get(column), overflow="ellipsis")
    for receipt in runs:
        done = sum(phase.status == DONE for phase in receipt.phases)
        why = f"{receipt.failure.phase or ''} {receipt.failure.host or ''}".strip() if receipt.failure else ""
        table.add_row(
            receipt.id,
            site_words(receipt.site),
            " ".join(_shown_words(receipt.command)),
            Text(receipt.status, _STYLES.get(receipt.status, "red")),
            duration(receipt.seconds),
            f"{done}/{len(receipt.phases)}",
            why,
        )
    print_block(_console(), table)


@receipts.command()
@click.argument("run")
@json_option
@svg_option
@click.pass_obj
def show(project: Project, run: str, json: bool, svg: Path | None) -> None:
    """Show one RUN: its id, the beginning of one, or `last`."""
    found = find_run(project, run)
    console = _console()
    hosts = len({host for phase in found.receipt.phases for host in phase.hosts})
    whole = outcome(project, found.receipt, found.directory, hosts, ascii_only=plain_marks(console))
    if svg:
        draw(svg, whole, found.receipt)
    if json:
        click.echo(found.receipt.to_json(), nl=False)
    else:
        print_block(console, whole)


def _shown_words(command: list[str]) -> list[str]:
    """Return *command* from its verb on, without the site, which has a column of its own."""
    words = command[3:]
    if "-i" in words:
        at = words.index("-i")
        del words[at : at + 2]
    return words


def _line(receipt: Receipt) -> dict[str, object]:
    keys = ("id", "verb", "command", "mode", "status", "exit_code", "started", "ended", "seconds")
    phases = {phase.name: phase.status for phase in receipt.phases}
    failure = asdict(receipt.failure) if receipt.failure else None
    return {key: getattr(receipt, key) for key in keys} | {
        "site": receipt.site.name,
        "phases": phases,
        "failure": failure,
    }


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    return console
