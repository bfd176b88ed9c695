"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from provision.command_line import DEFAULT_SITE, RunOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

site_option: Decorator = click.option(
    "-i",
    "--inventory",
    "site",
    metavar="SITE",
    default=DEFAULT_SITE,
    show_default=True,
    help="The site: a name under inventory/, or the path of a directory with a hosts.yml.",
)
json_option: Decorator = click.option("--json", "json", is_flag=True, help="Machine-readable output on stdout.")
vault_option: Decorator = click.option(
    "--vault-password-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Opens what the site keeps encrypted.",
)
extra_vars_option: Decorator = click.option(
    "-e",
    "--extra-vars",
    "extra_vars",
    metavar="VAR",
    multiple=True,
    help="key=value, JSON or @file; may be repeated. Values reach neither an argument list nor the receipt.",
)
limit_option: Decorator = click.option("--limit", metavar="HOSTS", help="Only these hosts (Ansible's pattern).")
svg_option: Decorator = click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also draw the final table as SVG.",
)

_RUN_OPTIONS: tuple[Decorator, ...] = (
    site_option,
    click.option("--from", "first", metavar="PHASE", help="Start at this phase."),
    click.option("--to", "last", metavar="PHASE", help="End with this phase."),
    click.option("--only", metavar="PHASE", multiple=True, help="Run this phase alone; may be repeated."),
    limit_option,
    click.option("--check", is_flag=True, help="Change nothing; show what would change."),
    click.option("--diff", is_flag=True, help="Show what changes inside files."),
    click.option("--resume", is_flag=True, help="Go on at the first phase of the last run whose gate has not passed."),
    extra_vars_option,
    json_option,
    click.option("-v", "--verbose", "verbosity", count=True, help="Every task; -vv: Ansible's own output."),
    vault_option,
    svg_option,
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* the options of a run, handed over as keyword arguments that `options_from` takes."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def options_from(given: dict[str, Any]) -> RunOptions:
    """Return the run options that click collected."""
    only = tuple(name for entry in given.pop("only") for name in entry.split(",") if name)
    password = given.pop("vault_password_file")
    return RunOptions(only=only, vault_password_file=password.expanduser().absolute() if password else None, **given)
