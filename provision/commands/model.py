"""`model`: the phases of the model, on a plane that stands."""

from __future__ import annotations

from typing import Any

import click

from provision.commands.options import options_from, run_options
from provision.project import Project
from provision.run import run_phases


@click.command()
@run_options
@click.pass_obj
def model(project: Project, /, **given: Any) -> int:
    """Take a site whose plane stands through the phases of the model."""
    return run_phases(project, "model", options_from(given))
