"""Builds the /sys/class/infiniband a DGX Spark's ConnectX-7 shows: four HCAs, one port each.

Values read from running systems: NVIDIA/dgx-spark-playbooks, geerlingguy/sbc-reviews#92 (a port without a cable),
linux Documentation/ABI/stable/sysfs-class-infiniband (formats).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# HCA per netdev: both PCIe halves of both cages.
HCAS = {
    "rocep1s0f0": "enp1s0f0np0",
    "rocep1s0f1": "enp1s0f1np1",
    "roceP2p1s0f0": "enP2p1s0f0np0",
    "roceP2p1s0f1": "enP2p1s0f1np1",
}
FIRMWARE = "28.45.4028"
# The real table has 256 entries, nearly all empty; readers stop at the first that is.
GID_SLOTS = 16
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
TYPES = ("IB/RoCE v1", "RoCE v2")


@dataclass(frozen=True)
class Port:
    """What a port's state files say."""

    state: str
    phys_state: str
    rate: str


ACTIVE = Port("4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)")
DOWN = Port("1: DOWN", "3: Disabled", "40 Gb/sec (4X QDR)")


def eui64(mac: str) -> str:
    """Modified EUI-64 of a MAC address, in sysfs's groups of four digits."""
    octets = [int(part, 16) for part in mac.split(":")]
    octets = [octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]]
    return ":".join(f"{octets[i]:02x}{octets[i + 1]:02x}" for i in range(0, 8, 2))


def link_local_gid(mac: str) -> str:
    """GID of an interface's IPv6 link-local address."""
    return f"fe80:0000:0000:0000:{eui64(mac)}"


def ipv4_gid(address: str) -> str:
    """GID of an IPv4 address (IPv4-mapped)."""
    octets = [int(part) for part in address.split(".")]
    return f"0000:0000:0000:0000:0000:ffff:{octets[0]:02x}{octets[1]:02x}:{octets[2]:02x}{octets[3]:02x}"


def gid_table(mac: str, ipv4: list[str]) -> list[tuple[str, str]]:
    """(GID, type) by index: every address once as RoCE v1 and once as v2, link-local first."""
    gids = [link_local_gid(mac), *(ipv4_gid(address) for address in ipv4)]
    return [(gid, kind) for gid in gids for kind in TYPES]


def build(target: Path, net: Path) -> None:
    """Make the tree in `target` for the netdevs found in `net` (a /sys/class/net)."""
    for hca, netdev in HCAS.items():
        _build_hca(target / hca, netdev, net / netdev)


def _build_hca(root: Path, netdev: str, link: Path) -> None:
    present = link.is_dir()
    mac = (link / "address").read_text().strip() if present else "00:00:00:00:00:00"
    port = ACTIVE if present and _carrier(link) else DOWN
    _write(root / "node_type", "1: CA")
    _write(root / "hca_type", "MT4129")
    _write(root / "fw_ver", FIRMWARE)
    _write(root / "node_guid", eui64(mac))
    _write(root / "sys_image_guid", eui64(mac))
    _write(root / "node_desc", root.name)
    _write(root / "device/vendor", "0x15b3")
    _write(root / "device/device", "0x1021")
    _write(root / "device/current_link_speed", "32.0 GT/s PCIe")
    _write(root / "device/current_link_width", "4")
    if present:
        (root / "device/net" / netdev).mkdir(parents=True)
        _write(root / "device/net" / netdev / "address", mac)
    else:
        (root / "device/net").mkdir(parents=True)
    ports = root / "ports/1"
    for name, value in (
        ("state", port.state),
        ("phys_state", port.phys_state),
        ("rate", port.rate),
        ("link_layer", "Ethernet"),
        ("lid", "0x0"),
        ("sm_lid", "0x0"),
        ("cap_mask", "0x00010000"),
    ):
        _write(ports / name, value)
    write_gids(ports, netdev, gid_table(mac, []) if present else [])


def write_gids(ports: Path, netdev: str, table: list[tuple[str, str]]) -> None:
    """(Re)write a port's GID table. An empty slot has no type and no netdev: the real file fails to read."""
    for index in range(GID_SLOTS):
        gid, kind = table[index] if index < len(table) else (EMPTY_GID, None)
        _write(ports / f"gids/{index}", gid)
        for directory, value in (("types", kind), ("ndevs", netdev if kind else None)):
            file = ports / "gid_attrs" / directory / str(index)
            if value is None:
                file.unlink(missing_ok=True)
            else:
                _write(file, value)


def _carrier(link: Path) -> bool:
    """Whether the link is up; sysfs answers EINVAL while the interface is administratively down."""
    try:
        return (link / "carrier").read_text().strip() == "1"
    except OSError:
        return False


def _write(path: Path, value: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")
