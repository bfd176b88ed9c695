"""What makes a host itself: name, machine-id, serial number, ssh keys. Kept in its seed layer over resets."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from provision.lab.paths import HostPaths, LabPaths
from provision.lab.process import write_text


def factory_names(lab: str, hosts: Sequence[str]) -> dict[str, str]:
    """Host names as the factory sets them (spark- and four hex digits), distinct within a lab, stable over runs."""
    names: dict[str, str] = {}
    for host in hosts:
        for attempt in range(1000):
            name = f"spark-{hashlib.sha256(f'{lab}/{host}/{attempt}'.encode()).hexdigest()[:4]}"
            if name not in names.values():
                names[host] = name
                break
    return names


def machine_id(lab: str, host: str) -> str:
    """A machine-id (32 hex digits) of its own for every lab and host."""
    return hashlib.sha256(f"machine-id/{lab}/{host}".encode()).hexdigest()[:32]


def product_uuid(lab: str, host: str) -> str:
    """A DMI product UUID of its own for every lab and host."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"spark-plane/{lab}/{host}"))


def make_key(path: Path, comment: str) -> None:
    """Make an ed25519 key pair at `path`, unless both halves are there. A half-made pair is never used."""
    public = path.with_name(path.name + ".pub")
    if path.exists() and public.exists():
        return
    scratch = path.with_name(f".{path.name}.new")
    scratch_public = scratch.with_name(scratch.name + ".pub")
    for file in (scratch, scratch_public):
        file.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(scratch)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    scratch_public.replace(public)
    scratch.replace(path)


def write_seed(lab: LabPaths, host: str, hostname: str) -> None:
    """Fill a host's seed layer: a few files under /etc and root's authorised key."""
    files: HostPaths = lab.host(host)
    etc, ssh = files.seed / "etc", files.seed / "etc" / "ssh"
    root_ssh = files.seed / "root" / ".ssh"
    for directory, mode in ((ssh, 0o755), (root_ssh, 0o700)):
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(mode)
    (files.seed / "root").chmod(0o700)
    for directory in (files.seed, etc):
        directory.chmod(0o755)
    make_key(ssh / "ssh_host_ed25519_key", hostname)
    write_text(etc / "hostname", f"{hostname}\n")
    write_text(etc / "hosts", f"127.0.0.1 localhost\n127.0.1.1 {hostname}\n::1 localhost ip6-localhost ip6-loopback\n")
    write_text(etc / "machine-id", f"{machine_id(lab.name, host)}\n", 0o444)
    shutil.copy(lab.key.with_name(lab.key.name + ".pub"), root_ssh / "authorized_keys")
    (root_ssh / "authorized_keys").chmod(0o600)


def write_known_hosts(lab: LabPaths, hosts: Sequence[str]) -> None:
    """List every host's key under its inventory name."""
    lines = []
    for host in hosts:
        public = (lab.host(host).seed / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
        lines.append(f"{host} {public[0]} {public[1]}")
    write_text(lab.known_hosts, "\n".join(lines) + "\n")
