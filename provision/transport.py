"""Ways in: how every verb reaches a service on a host of a site.

By ssh, with the inventory's own connection settings (jump hosts, keys, ports and ProxyCommand among them), to the host's
loopback or to a unix socket on it. Nothing here dials an address of the cluster, so that the lab, whose hosts have no
address on this machine, and a site behind a jump host work alike. Every ssh is a child of this process, ends when the
block or this process ends, and is waited for no longer than a bound.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import BadInput
from provision.inventory import Inventory, InventoryQuery
from provision.project import Project
from provision.site import Site, encrypted_values
from provision.ssh_words import (
    AuthFailed,
    ForwardRefused,
    HostKeyRefused,
    TransportError,
    Unreachable,
    last_words,
    ssh_problem,
)

__all__ = [
    "AuthFailed",
    "Endpoint",
    "ForwardRefused",
    "HostKeyRefused",
    "LocalWay",
    "TransportError",
    "Unreachable",
    "Way",
    "Ways",
]

CONNECT_TIMEOUT_S = 10
# Over what ssh may take to connect: its ConnectTimeout does not count a ProxyCommand, nor the login after it.
PATIENCE_S = 30.0
_END_S = 3.0
_SSH_FAILED = 255


@dataclass(frozen=True)
class Endpoint:
    """The local end of a forwarding: a loopback *port*, or the *path* of a unix socket that only this user can open."""

    port: int | None = None
    path: Path | None = None

    @property
    def address(self) -> str:
        """The authority part of a URL to a forwarded port."""
        return f"127.0.0.1:{self.port}"


class Ways:
    """The ways into all hosts of a site."""

    def __init__(self, project: Project, inventory: Inventory) -> None:
        self._project = project
        self.inventory = inventory

    @classmethod
    def of(cls, project: Project, site: Site, vault_password_file: Path | None = None) -> Ways:
        """Read the site's inventory with its connection settings.

        Raises:
            BadInput: it cannot be read.

        """
        encrypted = encrypted_values(project, site)
        query = InventoryQuery(project, site, encrypted, vault_password_file=vault_password_file, connections=True)
        return cls(project, query.answer())

    def to(self, host: str) -> Way:
        """Return the way to *host*, named as in the inventory.

        Raises:
            BadInput: the inventory has no such host, or reaches it by something other than ssh.

        """
        if host not in self.inventory.connections:
            raise BadInput(f"no host {host} in the inventory; known: {', '.join(self.inventory.hosts)}")
        settings = self.inventory.connections[host]
        kind = settings.get("ansible_connection", "ssh")
        if kind in ("local", "ansible.builtin.local"):
            return LocalWay(host)
        if kind not in ("ssh", "smart", "ansible.builtin.ssh"):
            raise BadInput(f"{host}: connection {kind}: only ssh and local have a way in")
        checking = self._project.environment()["ANSIBLE_HOST_KEY_CHECKING"]
        return Way(host, ssh_command(host, settings, self._project.ansible_setting("ssh_connection", "ssh_args"), checking))


def ssh_command(host: str, settings: dict[str, Any], default_args: str | None, checking: str) -> list[str]:
    """Return ssh and its options up to and without the remote command, in the order Ansible's ssh plugin has them."""

    def first(*names: str) -> Any:
        return next((settings[name] for name in names if settings.get(name) not in (None, "")), None)

    command = [str(first("ansible_ssh_executable") or "ssh")]
    # The first value of an option wins in ssh. No shared connection: this one ends by pid, and takes nothing with it.
    for option in ("BatchMode=yes", "ControlMaster=no", "ControlPath=none", f"ConnectTimeout={CONNECT_TIMEOUT_S}"):
        command += ["-o", option]
    command += _split(first("ansible_ssh_args") or default_args)
    checked = first("ansible_host_key_checking", "ansible_ssh_host_key_checking")
    if str(checking if checked is None else checked).strip().lower() in ("false", "no", "0", "off"):
        command += ["-o", "StrictHostKeyChecking=no"]
    pairs = (
        ("Port", first("ansible_port", "ansible_ssh_port")),
        ("IdentityFile", first("ansible_ssh_private_key_file", "ansible_private_key_file")),
        ("User", first("ansible_user", "ansible_ssh_user")),
    )
    for name, value in pairs:
        if value is not None:
            text = str(Path(value).expanduser()) if name == "IdentityFile" else str(value)
            command += ["-o", f'{name}="{text}"' if " " in text else f"{name}={text}"]
    command += _split(first("ansible_ssh_common_args"))
    command += _split(first("ansible_ssh_extra_args"))
    return [*command, str(first("ansible_host", "ansible_ssh_host") or host)]


def _split(text: Any) -> list[str]:
    return shlex.split(str(text)) if text else []


class Way:
    """The way to one host by ssh."""

    def __init__(self, host: str, command: Sequence[str]) -> None:
        self.host = host
        self._command = list(command)

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the words that run *argv* on the host, each word of it kept whole."""
        return [*self._command, "--", shlex.join(argv)]

    def run(
        self, argv: Sequence[str], *, stdin: str | None = None, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run *argv* on the host and return its exit code and output, whatever the code.

        Raises:
            TransportError: one of its kinds; the way did not open, or *timeout_s* seconds passed.

        """
        with self._started(self.command(argv), text=True) as child:
            try:
                out, err = child.communicate(stdin, timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise Unreachable(f"{self.host}: {shlex.join(argv)}: no answer within {timeout_s:.0f} s") from None
        if child.returncode == _SSH_FAILED and (problem := ssh_problem(self.host, err)):
            raise problem
        return subprocess.CompletedProcess(list(argv), child.returncode, out, err)

    @contextlib.contextmanager
    def forward(self, remote: int | Path, *, to_socket: bool = False) -> Iterator[Endpoint]:
        """Forward a local end to *remote*, a port on the host's loopback or a unix socket there, while the block runs.

        The local end is a free loopback port, or with *to_socket* a unix socket.

        Raises:
            TransportError: one of its kinds; the forwarding could not be set up.

        """
        far = f"127.0.0.1:{remote}" if isinstance(remote, int) else str(remote)
        with tempfile.TemporaryDirectory(prefix="spark-plane-way-") as directory:
            for attempt in range(3):
                port = None if to_socket else _free_port()
                path = Path(directory, f"s{attempt}") if to_socket else None
                near = str(path) if to_socket else f"127.0.0.1:{port}"
                try:
                    with self._forwarding(f"{near}:{far}"):
                        yield Endpoint(port, path)
                        return
                except _PortTaken:
                    # Someone took the port between its choice and its use.
                    continue
            raise ForwardRefused(f"{self.host}: no local port could be kept for a forwarding")

    @contextlib.contextmanager
    def _forwarding(self, spec: str) -> Iterator[None]:
        # Not `-N`: a remote cat on our pipe ends with this process, however that ends, and ssh with it. Its greeting
        # says that the forwarding stands, since ssh sets that up first.
        command = [self._command[0], "-o", "ExitOnForwardFailure=yes", "-L", spec, *self._command[1:]]
        with self._started([*command, "--", "echo ready; exec cat >/dev/null"], text=False) as child:
            assert child.stdout is not None
            deadline = time.monotonic() + PATIENCE_S
            greeting = b""
            while not greeting.endswith(b"ready\n"):
                ready, _, _ = select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))
                piece = os.read(child.stdout.fileno(), 4096) if ready else b""
                if not ready:
                    raise Unreachable(f"{self.host}: not reached within {PATIENCE_S:.0f} s")
                if not piece:
                    raise self._forward_problem(child)
                greeting += piece
            yield

    def _forward_problem(self, child: subprocess.Popen[Any]) -> Exception:
        _, err = child.communicate(timeout=_END_S)
        text = err.decode(errors="replace")
        if "ddress already in use" in text:
            return _PortTaken()
        return ssh_problem(self.host, text) or ForwardRefused(f"{self.host}: {last_words(text)}")

    @contextlib.contextmanager
    def _started(self, command: Sequence[str], *, text: bool) -> Iterator[subprocess.Popen[Any]]:
        """Start *command* in a session of its own, so that it and its ProxyCommand end together, and end it after."""
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=text,
                env=os.environ | {"LC_ALL": "C"},
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable(f"{self.host}: {command[0]}: {error.strerror}") from None
        try:
            yield child
        finally:
            _end(child)


class LocalWay(Way):
    """The way to a host that is this machine."""

    def __init__(self, host: str) -> None:
        super().__init__(host, [])

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return *argv* itself."""
        return list(argv)

    @contextlib.contextmanager
    def forward(self, remote: int | Path, *, to_socket: bool = False) -> Iterator[Endpoint]:
        """Yield *remote* itself; a port stays a port."""
        yield Endpoint(port=remote) if isinstance(remote, int) else Endpoint(path=remote)


class _PortTaken(Exception):
    """The local port chosen for a forwarding is no longer free."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(child: subprocess.Popen[Any]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream:
            with contextlib.suppress(OSError, ValueError):
                stream.close()
