"""From freshly booted hosts to a plane: check, a cut-off run that heals, an uncut one with the same end, nothing to do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.e2e.plane import ROOT, Plane

pytestmark = pytest.mark.lab
PHASES = ["preflight", "host", "docker"]


def cut_off_in_docker(plane: Plane) -> subprocess.Popen[str]:
    """Start a run and kill -9 its runner in the middle of the docker phase."""
    run = plane.start()
    assert run.stdout is not None
    for line in run.stdout:
        if line.startswith("docker: starts"):
            break
    else:
        pytest.fail("the docker phase never started")
    time.sleep(2)
    assert run.poll() is None, "the run was over before it could be cut off"
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    return run


def test_check_on_freshly_booted_hosts_changes_no_file(spark: Plane) -> None:
    before = spark.written()
    ran = spark.run("--check", "--diff")
    assert spark.written() == before
    assert "/etc/docker/daemon.json" in ran.stdout and "live-restore" in ran.stdout


def test_a_killed_runner_resumes_to_the_end_of_an_uncut_run(spark: Plane) -> None:
    cut_off_in_docker(spark)
    resumed = spark.receipt(spark.run("--resume", "--json"))
    assert resumed["status"] == "done"
    # Preflight always runs; the phases whose gates passed are not run again.
    assert [phase["name"] for phase in resumed["phases"] if phase["status"] == "done"] == ["preflight", "docker"]
    healed = spark.end_state()

    for host in spark.hosts:
        spark.lab.reset(host)
    ran = spark.run("--json")
    receipt = spark.receipt(ran)
    assert receipt["status"] == "done" and [phase["name"] for phase in receipt["phases"]] == PHASES
    assert spark.end_state() == healed


def test_a_run_with_nothing_to_do_changes_and_restarts_nothing(spark: Plane) -> None:
    """The bench runs the plane twice more: once for whatever was left, once measured."""
    before, files = spark.services(), steady(spark)
    ran = subprocess.run(
        [sys.executable, "-m", "bench.noop", "--json", "-i", "lab"],
        cwd=ROOT, env=spark.environment, text=True, capture_output=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = json.loads(ran.stdout)
    assert {"tasks_per_host", "cpu_seconds", "wall_seconds", "ping_ratio", "changed", "restarts"} <= set(figures)
    assert figures["tasks_per_host"] <= 11 and figures["changed"] == 0 and figures["restarts"] == 0
    assert spark.services() == before
    assert steady(spark) == files


def steady(plane: Plane) -> dict[str, dict[str, str]]:
    """Files of all hosts but for those that running services keep writing."""
    moving = re.compile(r"var/lib/(systemd|chrony|private|logrotate|dbus)/")
    return {
        host: {name: digest for name, digest in files.items() if not moving.match(name)}
        for host, files in plane.written().items()
    }


def test_the_lab_has_no_way_out(spark: Plane) -> None:
    """Nothing was fetched from a network: there is none."""
    assert set(spark.everywhere("ip", "route", "show", "default").values()) == {""}


def test_gates_say_what_the_lab_cannot_prove(spark: Plane) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "provision", "status", "-i", str(spark.site), "--json"],
        cwd=ROOT, env=spark.environment, text=True, capture_output=True, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert '"not provable"' in ran.stdout and "br_netfilter" in ran.stdout and '"failed"' not in ran.stdout


def test_ansible_alone_does_what_the_runner_does(spark: Plane) -> None:
    ran = spark.playbook("--tags", "docker")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(re.findall(r"changed=0 .*failed=0", ran.stdout)) == 5
    assert "docker_engine : Docker passes its gate" in ran.stdout and "host : The host passes its gate" not in ran.stdout
