"""A daemon.json that others wrote: kept, or refused by name before anything changes."""

from __future__ import annotations

import json

import pytest

from tests.e2e.plane import Plane

pytestmark = pytest.mark.lab
FILE = "/etc/docker/daemon.json"
DROPIN = "/etc/systemd/system/docker.service.d/override.conf"


def test_broken_json_is_refused_by_name(spark: Plane) -> None:
    spark.write("spark-b", FILE, '{\n  "debug": true,\n}')
    before = spark.written()
    ran = spark.run("--limit", "spark-b", expect=3)
    said = ran.stdout + ran.stderr
    assert f"spark-b: {FILE} is not JSON" in said and "line " in said and "column " in said
    assert spark.written() == before


def test_a_key_that_a_drop_in_sets_too_is_refused_by_name(spark: Plane) -> None:
    spark.write("spark-b", FILE, '{"debug": true}')
    spark.write("spark-b", DROPIN, "[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// --log-driver=journald\n")
    before = spark.written()
    said = spark.run("--limit", "spark-b", expect=3).stdout
    assert "spark-b" in said and "'log-driver'" in said and f"{DROPIN}:3" in said
    assert spark.written() == before
    spark.lab.exec("spark-b", ["rm", DROPIN], check=True)


def test_foreign_keys_are_kept(spark: Plane) -> None:
    spark.write("spark-b", FILE, json.dumps({"debug": True, "log-opts": {"tag": "mine"}, "labels": ["rack=1"]}))
    spark.run("--limit", "spark-b")
    written = json.loads(spark.read("spark-b", "cat", FILE))
    assert written["debug"] is True and written["labels"] == ["rack=1"]
    assert written["log-opts"] == {"max-file": "3", "max-size": "50m", "tag": "mine"}
    assert spark.read("spark-b", "docker", "info", "--format", "{{.Debug}} {{.LiveRestoreEnabled}}").strip() == "true true"


def test_running_containers_outlive_the_first_restart(spark: Plane) -> None:
    """live-restore was off when the container started: a reload turns it on before the daemon restarts."""
    host = "spark-c"
    spark.lab.reset(host)
    parts = "bin lib lib64 usr/bin/sleep usr/lib/*-linux-gnu/libc.so.6 usr/lib/*-linux-gnu/ld-linux-*.so.* usr/lib64"
    image = f"cd / && tar -c --ignore-failed-read {parts} 2>/dev/null | docker import - sleeper:1"
    spark.lab.exec(host, ["sh", "-c", image], check=True)
    name = spark.read(host, "docker", "run", "--detach", "--pull", "never", "sleeper:1", "/usr/bin/sleep", "1000").strip()
    before = spark.read(host, "docker", "inspect", "--format", "{{.State.Pid}}", name)
    daemon = spark.read(host, "systemctl", "show", "--property=MainPID", "docker")
    spark.run("--limit", host)
    assert spark.read(host, "systemctl", "show", "--property=MainPID", "docker") != daemon
    assert spark.read(host, "docker", "inspect", "--format", "{{.State.Pid}}", name) == before
