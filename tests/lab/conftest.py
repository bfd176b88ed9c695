"""One lab for the whole session, and small ones for what must not disturb it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from provision.lab import Lab, needs
from provision.lab.paths import home


def _name(suffix: str) -> str:
    """Names of their own per test process: several may run on one machine."""
    return f"{os.environ.get('SPARK_PLANE_TEST_LAB', f't{os.getpid()}')}{suffix}"


@pytest.fixture(scope="session", autouse=True)
def _machine(request: pytest.FixtureRequest) -> None:
    """Skip what needs a lab where none can run, with the reason."""
    for need in needs.missing(home()):
        pytest.skip(f"{need.name}: {need.seen}")


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Five spark hosts. A test that changes a host takes back what it did."""
    made = Lab(_name("s"))
    made.up(5, "spark")
    yield made
    made.down()


@pytest.fixture(scope="session")
def bare() -> Iterator[Lab]:
    """One bare host, for what is installed in it."""
    made = Lab(_name("b"))
    made.up(1, "bare")
    yield made
    made.down()


@pytest.fixture
def small() -> Iterator[Lab]:
    """The name of a lab that is down before and after the test."""
    made = Lab(_name("x"))
    made.down()
    yield made
    made.down()
