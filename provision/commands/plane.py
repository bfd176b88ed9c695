"""`plane`: the phases of the plane."""

from __future__ import annotations

from typing import Any

import click

from provision.commands.options import options_from, run_options
from provision.project import Project
from provision.run import run_phases


@click.command()
@run_options
@click.pass_obj
def plane(project: Project, /, **given: Any) -> int:
    """Take the hosts of a site through the phases of the plane.

    Without -i that is the lab, brought up when it is down. The preflight phase always runs. Ctrl-C ends the run
    cleanly; --resume goes on.
    """
    return run_phases(project, "plane", options_from(given))
