"""The middle of the docker phase, and something goes wrong: resuming ends where an uncut run does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.plane import Plane

pytestmark = [pytest.mark.lab, pytest.mark.long]
VICTIM = "spark-c"


def kill_runner(plane: Plane, run: Any) -> None:
    os.kill(run.pid, signal.SIGKILL)


def kill_ssh_session(plane: Plane, run: Any) -> None:
    """Kill the ssh clients to one host, the shared connection among them."""
    marks = (f"labs/{plane.lab.name}/".encode(), VICTIM.encode())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(b"ssh") and all(mark in words for mark in marks):
                os.kill(int(entry.name), signal.SIGKILL)


def power_off_host(plane: Plane, run: Any) -> None:
    plane.lab.power_off(VICTIM)


FAULTS: list[Callable[[Plane, Any], None]] = [kill_runner, kill_ssh_session, power_off_host]


@pytest.fixture(scope="module")
def uncut(spark: Plane) -> dict[str, Any]:
    """What a run leaves that nothing disturbed."""
    for host in spark.hosts:
        spark.lab.reset(host)
    spark.run()
    return spark.end_state()


@pytest.mark.parametrize("delay", [0.0, 3.0], ids=["at-the-start", "later"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__))
def test_resume_ends_where_an_uncut_run_does(
    spark: Plane, uncut: dict[str, Any], fault: Callable[[Plane, Any], None], delay: float
) -> None:
    for host in spark.hosts:
        spark.lab.reset(host)
    run = spark.start()
    assert run.stdout is not None
    assert any(line.startswith("docker: starts") for line in run.stdout), "the docker phase never started"
    time.sleep(delay)
    cut = run.poll() is None
    fault(spark, run)
    said = run.stdout.read()
    code = run.wait(timeout=300)
    assert cut, "the run was over before it could be disturbed"
    # A lost session may be opened again by the next task: then the run goes on to its end.
    assert code in {-signal.SIGKILL, 0, 2, 4}, said
    if fault is power_off_host:
        assert code == 4, said
        spark.lab.power_on(VICTIM)
    spark.run("--resume")
    assert spark.end_state() == uncut
