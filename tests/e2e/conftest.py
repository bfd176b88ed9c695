"""Labs for the end-to-end tests, taken down whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.lab import Lab
from provision.lab.paths import home
from tests.e2e.plane import Plane, copy_site


def _sweep(name: str) -> None:
    """Take down labs of earlier sessions that were killed: their names end with a pid that is gone."""
    labs = home() / "labs"
    for path in labs.iterdir() if labs.is_dir() else []:
        prefix, _, pid = path.name.rpartition("-")
        if prefix == name and pid.isdigit() and not Path("/proc", pid).exists():
            Lab(path.name).down()


def _plane(name: str, flavour: str, factory: pytest.TempPathFactory) -> Iterator[Plane]:
    _sweep(name)
    lab = Lab(f"{name}-{os.getpid()}")
    lab.up(hosts=5, flavour=flavour)
    try:
        yield Plane(lab, copy_site(factory.mktemp(name)))
    finally:
        lab.down()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Five hosts as DGX OS ships them: Docker is there."""
    yield from _plane("e2es", "spark", tmp_path_factory)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Five hosts with nothing but a system."""
    yield from _plane("e2eb", "bare", tmp_path_factory)
