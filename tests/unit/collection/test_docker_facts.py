"""`spark.plane.docker_facts`: dockerd's flags by their `daemon.json` key, a broken file by line, a hung daemon in time.

Each file under cases/dockerd/ is one set of unit files with the flags wanted.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.module_utils import dockerapi, dockerd, systemd, unitfile
from ansible_collections.spark.plane.plugins.modules import docker_facts

CASES = sorted(Path(__file__).parent.glob("cases/dockerd/*.json"))


def put(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("case", CASES, ids=[path.stem for path in CASES])
def test_flags(case: Path, tmp_path: Path) -> None:
    given = json.loads(case.read_text())
    for path, lines in given["files"].items():
        put(tmp_path, path, "\n".join(lines) + "\n")
    paths = unitfile.find("docker.service", tmp_path)
    flags, config = dockerd.flags(unitfile.command(unitfile.service_lines(paths, tmp_path), tmp_path))
    places = {key: entry["where"].replace("/etc/systemd/system/docker.service", "@") for key, entry in flags.items()}
    assert {key: [entry["value"], places[key]] for key, entry in flags.items()} == given["flags"]
    assert config == given.get("config", dockerd.CONFIG)
    for key, entry in flags.items():
        assert entry["flag"].startswith("--")
        assert entry["merged"] == (key == "runtimes")


@pytest.mark.parametrize(
    ("text", "content", "error"),
    [
        (None, None, None),
        ("", {}, None),
        (" \n", {}, None),
        ('{"a": {"b": [1]}}', {"a": {"b": [1]}}, None),
        (
            '{\n  "a": 1\n  "b": 2\n}',
            None,
            "daemon.json is not JSON: Expecting ',' delimiter at line 3 column 3",
        ),
        ("{", None, "at line 1 column 2"),
        ("[1]", None, "holds a list; wanted an object"),
    ],
)
def test_daemon_json(tmp_path: Path, text: str | None, content: Any, error: str | None) -> None:
    if text is not None:
        put(tmp_path, dockerd.CONFIG, text)
    seen = dockerd.daemon_json(dockerd.CONFIG, tmp_path)
    assert seen["content"] == content
    assert (error in seen["error"]) if error else seen["error"] is None
    assert seen["exists"] == (text is not None) == (seen["sha256"] is not None)


def test_daemon_json_of_another_encoding_is_named(tmp_path: Path) -> None:
    put(tmp_path, dockerd.CONFIG, "")
    (tmp_path / dockerd.CONFIG.lstrip("/")).write_bytes(b'{"a": "\xff"}')
    assert "is not UTF-8 text" in dockerd.daemon_json(dockerd.CONFIG, tmp_path)["error"]
    (tmp_path / dockerd.CONFIG.lstrip("/")).write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert dockerd.daemon_json(dockerd.CONFIG, tmp_path)["content"] == {"a": 1}


@contextmanager
def daemon(path: Path, answer: Callable[[socket.socket, str], None]) -> Iterator[list[str]]:
    """A unix socket on which `answer` serves each request."""
    requests: list[str] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    request = connection.recv(4096).decode()
                    requests.append(request.split("\r\n")[0])
                    answer(connection, request.split()[1] if request.split() else "")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield requests
        server.shutdown(socket.SHUT_RDWR)
    thread.join(2)


VERSION = {"Version": "26.1.5", "ApiVersion": "1.45", "MinAPIVersion": "1.24"}
INFO = {
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "LiveRestoreEnabled": True,
    "Runtimes": {"runc": {}, "nvidia": {}},
    "RegistryConfig": {"Mirrors": ["https://mirror.example/"]},
    "Warnings": None,
}


def docker(connection: socket.socket, path: str) -> None:
    body = json.dumps({"/version": VERSION, "/info": INFO}[path]).encode()
    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body[:10])
    time.sleep(0.01)
    connection.sendall(body[10:])


def test_a_running_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(1, "no systemd"))
    with daemon(tmp_path / "s", docker) as requests:
        facts = docker_facts.collect(tmp_path / "s", tmp_path)
    assert requests == ["GET /version HTTP/1.0", "GET /info HTTP/1.0"]
    assert (facts["running"], facts["server_version"], facts["api_version"], facts["min_api_version"]) == (
        True,
        "26.1.5",
        "1.45",
        "1.24",
    )
    assert facts["info"]["driver_status"] == {"driver-type": "io.containerd.snapshotter.v1"}
    assert facts["info"]["runtimes"] == ["nvidia", "runc"]
    assert facts["info"]["registry_mirrors"] == ["https://mirror.example/"]
    assert facts["info"]["warnings"] == []
    assert "no systemd" in facts["error"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "not an HTTP answer"),
        (b"garbage\r\n\r\n", "not an HTTP answer: 'garbage'"),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", "GET /version: 200 OK: <html>"),
        (b"HTTP/1.0 200 OK\r\n\r\n[]", "GET /version: 200 OK: []"),
        (b'HTTP/1.0 503 Service Unavailable\r\n\r\n{"message":"starting"}', "503 Service Unavailable: starting"),
    ],
)
def test_a_strange_answer_is_an_error(tmp_path: Path, sent: bytes, said: str) -> None:
    with daemon(tmp_path / "s", lambda connection, _: connection.sendall(sent)):
        with pytest.raises(dockerapi.ApiError) as caught:
            dockerapi.get("/version", tmp_path / "s")
        assert said in str(caught.value)


def test_a_hung_or_dripping_daemon_is_given_up_in_time(tmp_path: Path) -> None:
    def drip(connection: socket.socket, _: str) -> None:
        for _step in range(50):
            time.sleep(0.02)
            try:
                connection.sendall(b"x")
            except OSError:
                return

    def hang(*_: Any) -> None:
        time.sleep(0.5)

    for number, answer in enumerate((drip, hang)):
        with daemon(tmp_path / str(number), answer):
            begun = time.monotonic()
            with pytest.raises(dockerapi.ApiError, match=r"no answer to GET /version within 0.2 s"):
                dockerapi.get("/version", tmp_path / str(number), timeout=0.2)
            assert time.monotonic() - begun < 0.4


def test_a_dead_socket_is_an_error(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
    with pytest.raises(dockerapi.ApiError, match="Connection refused"):
        dockerapi.get("/version", tmp_path / "s")


def show(service: str, listener: str) -> Callable[..., systemd.Output]:
    text = (
        f"Id=docker.service\nLoadState=loaded\nActiveState={service}\nMainPID=12\nInvocationID=i\nFragmentPath=/u\n"
        "DropInPaths=/a /b\nExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// ; ignore_errors=no }\n\n"
        f"Id=docker.socket\nLoadState=loaded\nActiveState={listener}\n"
    )
    return lambda *_: systemd.Output(0, text)


@pytest.mark.parametrize(
    ("service", "listener", "asked"),
    [
        ("active", "active", True),
        ("active", "inactive", True),
        ("inactive", "active", False),
        ("failed", "active", False),
        ("activating", "active", False),
        ("inactive", "inactive", True),
    ],
)
def test_reading_does_not_wake_a_stopped_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str, listener: str, asked: bool
) -> None:
    """Connecting to docker.socket would start docker.service; without that unit, whatever listens may be asked."""
    monkeypatch.setattr(systemd, "run", show(service, listener))
    with daemon(tmp_path / "s", docker) as requests:
        facts = docker_facts.collect(tmp_path / "s", tmp_path)
    assert bool(requests) == facts["running"] == asked
    assert facts["unit"]["exec_start"] == "/usr/bin/dockerd -H fd://"
    assert (facts["unit"]["fragment"], facts["unit"]["dropins"], facts["unit"]["main_pid"]) == ("/u", ["/a", "/b"], 12)
    assert facts["error"] is None


def test_a_host_without_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = "Id=docker.service\nLoadState=not-found\nActiveState=inactive\n\nId=docker.socket\nLoadState=not-found\n"
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(0, absent))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    facts = docker_facts.collect(tmp_path / "s", tmp_path)
    assert (facts["installed"], facts["running"], facts["snap"], facts["binary"]) == (False, False, False, None)
    assert (facts["packages"], facts["flags"], facts["info"], facts["error"]) == ({}, {}, None, None)


def test_docker_from_a_snap_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(1, ""))
    (tmp_path / "snap/docker/current").mkdir(parents=True)
    facts = docker_facts.collect(tmp_path / "s", tmp_path)
    assert (facts["snap"], facts["installed"]) == (True, True)
    assert facts["daemon_json"]["path"] == "/var/snap/docker/current/config/daemon.json"


def test_packages_are_the_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(1, ""))
    put(tmp_path, "var/lib/dpkg/status", "Package: docker-ce\nStatus: install ok installed\nVersion: 5:28.3.3\n")
    assert docker_facts.collect(tmp_path / "s", tmp_path)["packages"] == {"docker-ce": "5:28.3.3"}
