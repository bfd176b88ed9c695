"""Which interfaces a lab's hosts have and how they are cabled, under the names a DGX Spark gives them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

# The first four hosts are the ring; a fifth is the ops host, off the ring.
RING_SIZE = 4
RING_MANAGEMENT = "enP7s7"
OPS_MANAGEMENT = "eno1"

# (netdev, HCA) per port and PCIe half: NVIDIA/dgx-spark-playbooks, eugr/spark-vllm-docker docs/NETWORKING.md
PORTS: dict[int, tuple[tuple[str, str], tuple[str, str]]] = {
    0: (("enp1s0f0np0", "rocep1s0f0"), ("enP2p1s0f0np0", "roceP2p1s0f0")),
    1: (("enp1s0f1np1", "rocep1s0f1"), ("enP2p1s0f1np1", "roceP2p1s0f1")),
}


@dataclass(frozen=True)
class Cable:
    """One end of a cable to the other: a host and a port at each."""

    host: str
    port: int
    peer: str
    peer_port: int


def ring(hosts: Sequence[str]) -> list[str]:
    """The ring's hosts in rank order; one host alone is no ring but keeps its place."""
    return list(hosts[:RING_SIZE])


def cables(hosts: Sequence[str]) -> list[Cable]:
    """Cable k joins rank k port 0 to rank k+1 port 1, the last one closing the ring.

    Two hosts are joined by one cable between like ports, as NVIDIA's two-node guide does.
    """
    ranks = ring(hosts)
    if len(ranks) < 2:
        return []
    if len(ranks) == 2:
        return [Cable(ranks[0], 0, ranks[1], 0)]
    return [Cable(host, 0, ranks[(rank + 1) % len(ranks)], 1) for rank, host in enumerate(ranks)]


def management(hosts: Sequence[str], host: str) -> str:
    """Name of a host's management interface."""
    return RING_MANAGEMENT if host in ring(hosts) else OPS_MANAGEMENT


def address(hosts: Sequence[str], host: str) -> str:
    """A host's management address. Labs live in namespaces of their own, so all use the same network."""
    return f"10.77.0.{11 + hosts.index(host)}"


def fabric_interfaces(hosts: Sequence[str], host: str) -> list[str]:
    """Netdevs of a host that have a cable, both PCIe halves."""
    ports = [cable.port for cable in cables(hosts) if cable.host == host]
    ports += [cable.peer_port for cable in cables(hosts) if cable.peer == host]
    return [netdev for port in sorted(ports) for netdev, _ in PORTS[port]]


def mac(lab: str, host: str, interface: str) -> str:
    """A locally administered address that stays the same whenever the lab is made again."""
    digest = hashlib.sha256(f"{lab}/{host}/{interface}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))
