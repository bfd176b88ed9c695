"""Network namespaces, the management bridge and the ring's cables (veth pairs).

Everything is made inside the lab's namespaces: no interface, address or route ever appears in the machine's own, and
no namespace has a default route.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from provision.lab import kernel
from provision.lab.cables import PORTS, address, cables, fabric_interfaces, mac, management
from provision.lab.errors import LabError
from provision.lab.paths import NETNS_DIR, LabPaths

PREFIX_LENGTH = 24
BRIDGE = "br0"
BRIDGE_ADDRESS = "10.77.0.1"
# What an interface has before the fabric role raises it to 9000.
DEFAULT_MTU = 1500
_NEW = ".new"


def ip(*arguments: str, batch: Sequence[str] | None = None) -> str:
    """Run the `ip` command, with `batch` lines on its standard input if given. Raises LabError with what it printed."""
    command = ["ip", *arguments] if batch is None else ["ip", *arguments, "-batch", "-"]
    text = None if batch is None else "\n".join(batch) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def links(netns: str) -> set[str]:
    """Names of the interfaces in a namespace."""
    return {link["ifname"] for link in json.loads(ip("-n", netns, "-j", "link", "show"))}


def namespaces(lab: str) -> list[str]:
    """The namespaces of a lab."""
    if not NETNS_DIR.is_dir():
        return []
    return sorted(path.name for path in NETNS_DIR.iterdir() if path.name.startswith(f"{lab}."))


def converge(paths: LabPaths, hosts: Sequence[str], off: Sequence[str]) -> set[str]:
    """Make what is missing of a lab's network, whatever an interrupted earlier run left.

    Returns the hosts whose namespace is new. Interfaces of running hosts are theirs and left as they are.
    """
    wanted = {paths.control_netns: "", **{paths.host(host).netns: host for host in hosts}}
    for netns in wanted:
        _finish_rename(netns)
    present = set(namespaces(paths.name))
    missing = [netns for netns in wanted if netns not in present]
    if missing:
        ip(batch=[f"netns add {netns}" for netns in missing])
    existing = {netns: links(netns) if netns in present else set() for netns in wanted}

    control = paths.control_netns
    lines = []
    if BRIDGE not in existing[control]:
        lines.append(f"link add {BRIDGE} type bridge")
    for index, host in enumerate(hosts):
        netns, interface = paths.host(host).netns, management(hosts, host)
        if interface not in existing[netns]:
            lines.append(
                f"link add m-{index} type veth peer name {interface} "
                f"address {mac(paths.name, host, interface)} netns {netns}"
            )
        lines.append(f"link set m-{index} master {BRIDGE} up")
    for cable in cables(hosts):
        for half in (0, 1):
            netdev, peer = PORTS[cable.port][half][0], PORTS[cable.peer_port][half][0]
            netns, peer_netns = paths.host(cable.host).netns, paths.host(cable.peer).netns
            if netdev not in existing[netns]:
                lines.append(
                    f"link add {netdev} address {mac(paths.name, cable.host, netdev)} netns {netns} type veth "
                    f"peer name {peer} address {mac(paths.name, cable.peer, peer)} netns {peer_netns}"
                )
    lines += [f"addr replace {BRIDGE_ADDRESS}/{PREFIX_LENGTH} dev {BRIDGE}", f"link set {BRIDGE} up", "link set lo up"]
    ip("-n", control, batch=lines)
    for host in off:
        settle(paths.host(host).netns, management(hosts, host), address(hosts, host), fabric_interfaces(hosts, host))
    return {host for host in hosts if paths.host(host).netns in missing}


def settle(netns: str, management_name: str, host_address: str, fabric: Sequence[str]) -> None:
    """Bring a host's own interfaces up, with the MTU they have before the fabric role raises it."""
    lines = [
        "link set lo up",
        f"link set {management_name} up",
        f"addr replace {host_address}/{PREFIX_LENGTH} dev {management_name}",
        *(f"link set {interface} mtu {DEFAULT_MTU} up" for interface in fabric),
    ]
    ip("-n", netns, batch=lines)


def unplug(netns: str) -> None:
    """Take a dead host's links down, so that its neighbours see what a power failure shows them."""
    names = links(netns) & _OWN
    if names:
        ip("-n", netns, batch=[f"link set {name} down" for name in sorted(names)])


def renew(netns: str, management_name: str, host_address: str, fabric: Sequence[str]) -> None:
    """Give a host a fresh namespace, as a boot does: only its own interfaces move over.

    Bridges, addresses, firewall rules and per-namespace sysctls of the last boot are gone, so what a role did not
    make permanent does not survive a reboot here either. Cables stay plugged: neighbours see a link go down and up.
    """
    _finish_rename(netns)
    new = netns + _NEW
    ip("netns", "add", new)
    present = links(netns)
    moves = [f"link set {name} netns {new}" for name in (management_name, *fabric) if name in present]
    ip("-n", netns, batch=moves)
    _finish_rename(netns)
    settle(netns, management_name, host_address, fabric)


def _finish_rename(netns: str) -> None:
    """Complete `renew`: the new namespace takes the old one's name. Repeats safely after an interruption."""
    old, new = NETNS_DIR / netns, NETNS_DIR / (netns + _NEW)
    if not new.exists():
        return
    if old.exists():
        present = links(netns) - {"lo"}
        physical = [name for name in present if name in _OWN]
        if physical:
            ip("-n", netns, batch=[f"link set {name} netns {netns}{_NEW}" for name in physical])
        ip("netns", "delete", netns)
    old.touch(mode=0o444)
    kernel.bind(new, old)
    kernel.umount(new, kernel.MNT_DETACH)
    new.unlink()


_OWN = {"enP7s7", "eno1", *(netdev for halves in PORTS.values() for netdev, _ in halves)}


def remove(lab: str) -> None:
    """Delete a lab's namespaces; the interfaces in them go along. Nothing to delete is fine."""
    for netns in namespaces(lab):
        path: Path = NETNS_DIR / netns
        with contextlib.suppress(OSError):
            kernel.umount(path, kernel.MNT_DETACH)
        path.unlink(missing_ok=True)


def pids(netns: str) -> set[int]:
    """Processes in a namespace, by its name."""
    return {int(pid) for pid in ip("netns", "pids", netns).split()}
