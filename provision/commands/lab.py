"""`provision lab`: bring the lab up and down, look at it, and get into its hosts."""

from __future__ import annotations

import json
import os

import click
from rich.console import Console
from rich.table import Table

from provision.lab import Lab, LabStatus
from provision.lab.layers import FLAVOURS, Cache
from provision.lab.needs import check as check_needs
from provision.lab.paths import MAX_HOSTS, default_lab, home

_name = click.option("--name", default=default_lab, show_default="$SPARK_PLANE_LAB or lab", help="Which lab.")


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.group()
def lab() -> None:
    """Five real hosts on this machine, for trying everything without a DGX Spark."""


@lab.command()
@_name
@click.option("--hosts", type=click.IntRange(1, MAX_HOSTS), help="How many; the first four form the ring.  [5]")
@click.option("--flavour", type=click.Choice(sorted(FLAVOURS)), help="What the hosts ship.  [spark]")
def up(name: str, hosts: int | None, flavour: str | None) -> None:
    """Make the lab if need be, and boot every host that is off."""
    there = Lab(name, say=_say)
    there.up(hosts, flavour)
    click.echo(f"lab {name}: {len(there.hosts())} hosts take a login")


@lab.command()
@_name
def down(name: str) -> None:
    """Take the lab away: processes, namespaces, control groups, files. The cache stays."""
    Lab(name).down()
    click.echo(f"lab {name} is down")


@lab.command()
@_name
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(name: str, as_json: bool) -> None:
    """Show the hosts, and which components are real and which stand in."""
    state = Lab(name).status()
    if as_json:
        click.echo(json.dumps(state.as_json(), indent=2))
        return
    _print_status(state)


def _print_status(state: LabStatus) -> None:
    console = Console()
    if not state.hosts:
        console.print(f"lab {state.name} is down (home {state.home})")
    else:
        title = f"lab {state.name}: {state.flavour}, cgroups {state.cgroups}"
        hosts = Table("host", "name at the factory", "state", "rank", "management", "boots", title=title)
        for host in state.hosts:
            rank = "off the ring" if host.rank is None else str(host.rank)
            hosts.add_row(host.host, host.hostname, host.state, rank, f"{host.management} {host.address}", str(host.boots))
        console.print(hosts)
    parts = Table("component", "kind", "how", title="what is real")
    for component in state.components:
        parts.add_row(component.name, "real" if component.real else "stand-in", component.detail)
    console.print(parts)


@lab.command()
@_name
@click.argument("host")
def ssh(name: str, host: str) -> None:
    """Open a login shell on HOST."""
    command = Lab(name).ssh(host)
    os.execvp(command[0], command)


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@_name
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(name: str, host: str, command: tuple[str, ...]) -> None:
    """Run a command on HOST: exec HOST -- CMD."""
    argv = Lab(name).command(host, command)
    os.execvp(argv[0], argv)


@lab.group()
def power() -> None:
    """Pull a host's plug, or put it back."""


@power.command("off")
@_name
@click.argument("host")
def power_off(name: str, host: str) -> None:
    """Kill every process of HOST at once."""
    Lab(name).power_off(host)
    click.echo(f"{host} is off")


@power.command("on")
@_name
@click.argument("host")
def power_on(name: str, host: str) -> None:
    """Boot HOST and wait until it takes a login."""
    Lab(name).power_on(host)
    click.echo(f"{host} takes a login")


@lab.command()
@_name
@click.argument("host")
def reset(name: str, host: str) -> None:
    """Give HOST a fresh root file system and boot it."""
    Lab(name).reset(host)
    click.echo(f"{host} is as new and takes a login")


@lab.command()
@click.option("--flavour", type=click.Choice(sorted(FLAVOURS)), multiple=True, help="Only these.  [all]")
@click.option("--prune", is_flag=True, help="Remove old ones that no lab uses.")
def rootfs(flavour: tuple[str, ...], prune: bool) -> None:
    """Build the root file systems and the package repository, without starting anything."""
    check_needs(home())
    cache = Cache(home() / "cache", _say)
    for name in flavour or sorted(FLAVOURS):
        click.echo(f"{name}: {cache.layers(name)[0]}")
    click.echo(f"packages: {cache.repository()}")
    if prune:
        for path in cache.prune(home() / "labs"):
            click.echo(f"removed {path}")
