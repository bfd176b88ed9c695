"""A bare project to read from: one site, four phases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.fake_project import FakeProject


@pytest.fixture
def fake(tmp_path: Path) -> FakeProject:
    return FakeProject.make(tmp_path / "project")
