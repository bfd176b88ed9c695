"""Labs for the end-to-end tests, taken down whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from provision.lab import Lab
from tests.e2e.plane import Plane, copy_site


def _plane(name: str, flavour: str, factory: pytest.TempPathFactory) -> Iterator[Plane]:
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
