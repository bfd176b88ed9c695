"""Ways in: the inventory's settings become ssh's options, and nothing is left running."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision import transport
from provision.errors import EXIT_UNREACHABLE, BadInput
from provision.inventory import Inventory
from provision.process import Process
from provision.transport import AuthFailed, ForwardRefused, HostKeyRefused, Unreachable, Way, Ways, ssh_command
from tests.runner.fake_project import FakeProject


@pytest.fixture
def way(tmp_path: Path) -> Way:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("fake_ssh.py").read_text())
    ssh.chmod(0o755)
    return Way("h1", [str(ssh), "-o", "BatchMode=yes", "h1"])


@pytest.fixture
def echo() -> Iterator[int]:
    """A service on this machine's loopback that says everything twice; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _serve(server)
        yield server.getsockname()[1]


def _serve(server: socket.socket) -> None:
    def answer() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            data = client.recv(100)
            client.sendall(data * 2)
            client.close()

    threading.Thread(target=answer, daemon=True).start()


def ask(connection: socket.socket) -> bytes:
    with connection:
        connection.settimeout(5)
        connection.sendall(b"hi")
        return connection.recv(100)


def test_options_stand_in_ansibles_order_with_ours_first() -> None:
    settings = {
        "ansible_host": "10.0.0.1",
        "ansible_port": 2222,
        "ansible_user": "spark",
        "ansible_ssh_private_key_file": "~/key file",
        "ansible_ssh_common_args": "-o ProxyCommand='ssh -W %h:%p jump'",
        "ansible_ssh_extra_args": "-o UserKnownHostsFile=/x",
    }
    command = ssh_command("h1", settings, "-o ControlMaster=auto -o ControlPersist=15m", "True")
    ours = ["BatchMode=yes", "ControlMaster=no", "ControlPath=none", "ConnectTimeout=10"]
    key = f'IdentityFile="{Path("~/key file").expanduser()}"'
    theirs = ["ControlMaster=auto", "ControlPersist=15m", "Port=2222", key, "User=spark"]
    proxy = ["ProxyCommand=ssh -W %h:%p jump", "UserKnownHostsFile=/x"]
    assert command == ["ssh", *(word for value in (*ours, *theirs, *proxy) for word in ("-o", value)), "10.0.0.1"]


@pytest.mark.parametrize(
    ("settings", "checking", "off"),
    [
        ({}, "True", False),
        ({}, "False", True),
        ({"ansible_host_key_checking": False}, "True", True),
        ({"ansible_ssh_host_key_checking": True}, "no", False),
    ],
)
def test_host_keys_are_checked_unless_ansible_would_not(settings: dict[str, object], checking: str, off: bool) -> None:
    assert ("StrictHostKeyChecking=no" in ssh_command("h1", settings, None, checking)) is off


def test_run_keeps_words_whole_and_gives_code_and_output(way: Way) -> None:
    done = way.run(["sh", "-c", 'cat; echo "$1" >&2; exit 3', "x", "a b'c"], stdin="given")
    assert (done.returncode, done.stdout, done.stderr) == (3, "given", "a b'c\n")


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("denied", AuthFailed, r"h1: root@h1: Permission denied \(publickey\)\."),
        ("refused", Unreachable, "h1: ssh: connect to host h1 port 22: Connection refused"),
        ("unknown-key", HostKeyRefused, "h1: Host key verification failed"),
    ],
)
def test_errors_have_types_and_the_words_of_ssh(
    way: Way, monkeypatch: pytest.MonkeyPatch, mode: str, kind: type[Exception], words: str
) -> None:
    monkeypatch.setenv("FAKE_SSH", mode)
    with pytest.raises(kind, match=words) as caught:
        way.run(["true"])
    assert caught.value.exit_code == EXIT_UNREACHABLE  # type: ignore[attr-defined]
    with pytest.raises(kind, match=words), way.forward(1):
        pass


def test_what_the_command_itself_says_is_no_error(way: Way) -> None:
    assert way.run(["sh", "-c", "exit 255"]).returncode == 255
    assert way.run(["sh", "-c", "echo 'ssh: no' >&2; exit 1"]).stderr == "ssh: no\n"


def test_bounded_waits(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SSH", "hang")
    monkeypatch.setattr(transport, "PATIENCE_S", 0.3)
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no answer within 0 s"):
        way.run(["true"], timeout_s=0.3)
    with pytest.raises(Unreachable, match="not reached within 0 s"), way.forward(1):
        pass
    assert time.monotonic() - begun < 5


def test_a_missing_ssh() -> None:
    with pytest.raises(Unreachable, match="h1: /no/ssh: No such file"):
        Way("h1", ["/no/ssh", "h1"]).run(["true"])


def test_port_to_port(way: Way, echo: int) -> None:
    with way.forward(echo) as near:
        assert near.port not in (None, echo)
        assert near.address == f"127.0.0.1:{near.port}"
        assert ask(socket.create_connection(("127.0.0.1", near.port or 0))) == b"hihi"


def test_port_to_socket_and_socket_to_port(way: Way, echo: int, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        _serve(server)
        with way.forward(tmp_path / "s") as near:
            assert ask(socket.create_connection(("127.0.0.1", near.port or 0))) == b"hihi"
    with way.forward(echo, to_socket=True) as near:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(near.path))
        assert ask(client) == b"hihi"
        path = near.path
    assert path is not None and not path.parent.exists()


def test_ssh_ends_with_the_block(way: Way, echo: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SSH_LOG", str(tmp_path / "log"))
    with pytest.raises(ZeroDivisionError), way.forward(echo):
        pid = int((tmp_path / "log").read_text().split()[0])
        assert Process.of(pid) is not None
        raise ZeroDivisionError
    assert Process.of(pid) is None


def test_a_port_taken_meanwhile_is_tried_anew(way: Way, echo: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], transport._free_port()])
        monkeypatch.setattr(transport, "_free_port", lambda: next(ports))
        with way.forward(echo) as near:
            assert near.port != taken.getsockname()[1]
        monkeypatch.setattr(transport, "_free_port", lambda: taken.getsockname()[1])
        with pytest.raises(ForwardRefused, match="no local port"), way.forward(echo):
            pass


def ways(fake: FakeProject, **connections: dict[str, object]) -> Ways:
    return Ways(fake.project, Inventory({}, list(connections), list(connections), False, connections, []))


def test_a_host_that_is_this_machine(fake: FakeProject, echo: int) -> None:
    here = ways(fake, h1={"ansible_connection": "local"}).to("h1")
    assert here.run(["echo", "a b"]).stdout == "a b\n"
    with here.forward(echo) as near:
        assert near.port == echo


def test_hosts_without_a_way_in(fake: FakeProject) -> None:
    with pytest.raises(BadInput, match="no host h9 in the inventory; known: h1"):
        ways(fake, h1={}).to("h9")
    with pytest.raises(BadInput, match="h1: connection winrm"):
        ways(fake, h1={"ansible_connection": "winrm"}).to("h1")
    assert os.path.basename(ways(fake, h1={}).to("h1").command(["true"])[0]) == "ssh"  # noqa: PTH119
