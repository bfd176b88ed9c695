"""Ways in through a real ssh and sshd: one lab host, reached as the lab's inventory says."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.lab import Lab, needs
from provision.lab.paths import home
from provision.project import Project
from provision.site import resolve
from provision.transport import AuthFailed, HostKeyRefused, Unreachable, Way, Ways
from tests.runner.fake_project import PACKAGE

pytestmark = pytest.mark.lab
HOST = "spark-a"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    for need in needs.missing(home()):
        pytest.skip(f"{need.name}: {need.seen}")
    made = Lab(f"w{os.getpid()}")
    made.up(1)
    yield made
    made.down()


@pytest.fixture
def way(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Way:
    monkeypatch.setenv("SPARK_PLANE_LAB", lab.name)
    project = Project(PACKAGE)
    return Ways.of(project, resolve(project, "lab")).to(HOST)


def test_words_arrive_whole(way: Way) -> None:
    done = way.run(["sh", "-c", 'cat; echo "$1"; exit 3', "x", "a 'b' $c"], stdin="in ")
    assert (done.returncode, done.stdout) == (3, "in a 'b' $c\n")


def test_a_port_and_a_socket_of_the_host(way: Way, lab: Lab) -> None:
    with way.forward(22) as near, socket.create_connection(("127.0.0.1", near.port or 0), timeout=10) as connection:
        assert connection.recv(64).startswith(b"SSH-2.0-")
    with way.forward(Path("/run/docker.sock"), to_socket=True) as near, socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(near.path))
        client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
        assert b"200 OK" in client.recv(4096)


def test_what_goes_wrong_has_a_type(way: Way, lab: Lab, tmp_path: Path) -> None:
    command = way._command
    stranger = tmp_path / "key"
    lab.exec(HOST, ["true"])
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    with pytest.raises(AuthFailed, match="Permission denied"):
        Way(HOST, [word.replace(str(lab.paths.key), str(stranger)) for word in command]).run(["true"])
    with pytest.raises(HostKeyRefused, match="Host key verification failed"):
        Way(HOST, [word.replace(str(lab.paths.known_hosts), str(tmp_path / "none")) for word in command]).run(["true"])
    with pytest.raises(Unreachable):
        Way(HOST, [word.replace("TCP:127.0.0.1:22", "TCP:127.0.0.1:1") for word in command]).run(["true"])
