"""A project per test, and one finished run that several tests look at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.fake_project import Ended, FakeProject


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeProject]:
    fake = FakeProject.make(tmp_path / "project")
    yield fake
    shutil.rmtree(fake.scratch, ignore_errors=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeProject, Ended]]:
    """A run that ended well, with a change in docker and a picture; read only."""
    fake = FakeProject.make(tmp_path_factory.mktemp("finished") / "project")
    fake.world("change-docker")
    yield fake, fake.run("plane", "-i", "fake", "--diff", "--svg", str(fake.root / "run.svg"))
    shutil.rmtree(fake.scratch, ignore_errors=True)
