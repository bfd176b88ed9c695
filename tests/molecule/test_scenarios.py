"""Every scenario: syntax, check on a bare host, converge, idempotence, a refusal, a heal, verify."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))


@pytest.mark.lab
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str) -> None:
    argv = [str(Path(sys.executable).with_name("molecule")), "test", "-s", scenario]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    ran = subprocess.run(argv, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=600)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-6000:]
    # The verdict is molecule's exit code; this only proves that nothing was left out.
    assert "0 passed" not in ran.stdout + ran.stderr


def test_every_role_that_acts_has_a_scenario() -> None:
    acting = {path.parent.parent.name for path in (ROOT / "roles").glob("*/tasks/main.yml")} - {"pins", "preflight"}
    assert acting <= set(SCENARIOS)
