"""`phases`: the order, as `site.yml` has it."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from provision.commands.options import json_option
from provision.phases import read_phases
from provision.project import Project
from provision.views import print_block


@click.command()
@json_option
@click.pass_obj
def phases(project: Project, json: bool) -> None:
    """List the phases in their order, with what is true after each."""
    known = read_phases(project)
    if json:
        click.echo(json_format.dumps([asdict(phase) for phase in known.all], indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("phase", no_wrap=True)
    table.add_column("verb", no_wrap=True)
    table.add_column("what is true after it")
    for phase in known.all:
        verbs = ", ".join(phase.groups) if not phase.never else "status"
        table.add_row(phase.name, verbs, phase.title + (" (always runs)" if phase.always else ""))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 110
    print_block(console, table)
