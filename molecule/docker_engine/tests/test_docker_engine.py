"""What the engine looks like from inside the host."""

from __future__ import annotations

import json
from typing import Any


def info(host: Any) -> dict[str, Any]:
    shown = host.check_output("docker info --format '{{json .}}'")
    return dict(json.loads(shown))


def test_daemon_runs_at_boot(host: Any) -> None:
    docker = host.service("docker")
    assert docker.is_running and docker.is_enabled


def test_the_running_daemon_has_the_merged_configuration(host: Any) -> None:
    seen = info(host)
    assert seen["Driver"] == "overlay2"
    assert seen["LoggingDriver"] == "json-file"
    assert seen["LiveRestoreEnabled"] is True
    assert seen["CgroupDriver"] == "systemd"


def test_containerd_image_store_is_off(host: Any) -> None:
    assert ["driver-type", "io.containerd.snapshotter.v1"] not in (info(host).get("DriverStatus") or [])


def test_version_and_api(host: Any) -> None:
    version = json.loads(host.check_output("docker version --format '{{json .Server}}'"))
    assert 25 <= int(version["Version"].split(".")[0]) <= 29
    lowest, highest = (tuple(map(int, version[key].split("."))) for key in ("MinAPIVersion", "ApiVersion"))
    assert lowest <= (1, 44) <= highest


def test_log_limits_stand_in_daemon_json(host: Any) -> None:
    written = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert written["log-opts"] == {"max-file": "3", "max-size": "50m"}


def test_a_later_configuration_was_healed_into_the_daemon(host: Any) -> None:
    """The side effect wrote a mirror and was cut off before the restart; the next run made it live."""
    assert "https://mirror.example.org/" in info(host)["RegistryConfig"]["Mirrors"]
