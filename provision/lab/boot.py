"""What a host does before its own init: build its root from mounts, enter it, run systemd.

Runs as pid 1 of the host's namespaces, in a process forked from the supervisor; only system calls, no other program,
so five hosts boot in little time.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from provision.lab import cgroups, kernel, shadows
from provision.lab.standins import load_rdma

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
INIT = "/lib/systemd/systemd"
# Docker's overlay2 cannot sit on overlay, so these are directories of the machine's own file system.
VOLUMES = ("var/lib/docker", "var/lib/containerd", "var/lib/containers")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "fuse", "kmsg", "loop-control", "net/tun")
_DEV_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "core": "/proc/kcore",
}


@dataclass(frozen=True)
class HostConfig:
    """Everything the supervisor needs to run a host. Stored as JSON, so only plain types."""

    lab: str
    host: str
    hostname: str
    product_uuid: str
    directory: str
    layers: list[str]
    repository: str
    netns: str
    management: str
    address: str
    fabric: list[str] = field(default_factory=list)
    hcas: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain data for the state file."""
        return asdict(self)


def boot(config: HostConfig, channel: socket.socket) -> None:
    """Build the root file system and become init. Does not return; raises OSError when a step fails.

    Sends the descriptor of the copied sysctls over `channel` (see `settings`).
    """
    directory = Path(config.directory)
    root, shadow = directory / "root", directory / "shadow"
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.set_hostname(config.hostname)
    lower = ":".join([str(directory / "seed"), *config.layers])
    data = f"lowerdir={lower},upperdir={directory / 'upper'},workdir={directory / 'work'}"
    kernel.mount("overlay", root, "overlay", 0, data)
    kernel.mount("tmpfs", shadow, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    _bind_volumes(root, directory / "volumes")
    _mount_kernel_views(root)
    _make_dev(root / "dev")
    _mount_cgroups(root / "sys/fs/cgroup")
    kernel.bind(config.repository, root / "srv/apt", read_only=True)

    shadows.cover_switches(root / "proc", shadow)
    shadows.shadow_sysctls(root / "proc", shadow / "sysctl")
    shadows.give_boot_id(root / "proc", shadow)
    store = os.open(shadow / "sysctl/sys", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    socket.send_fds(channel, [b"s"], [store])
    os.close(store)
    channel.close()
    infiniband = None
    if config.hcas:
        infiniband = shadow / "infiniband"
        load_rdma().build(infiniband, root / "sys/class/net")
    shadows.shadow_sys(root / "sys", shadow, config.product_uuid, infiniband)

    # Python's own modules are out of reach from here on.
    os.chdir(root)
    (root / ".old").mkdir(exist_ok=True)
    subprocess.run(["pivot_root", ".", ".old"], check=True, env={"PATH": PATH})
    os.chroot(".")
    os.chdir("/")
    kernel.umount("/.old", kernel.MNT_DETACH)
    Path("/.old").rmdir()
    for capability in (kernel.CAP_SYS_TIME, kernel.CAP_SYS_MODULE):
        kernel.drop_capability(capability)
    os.execve(INIT, [INIT], {"container": "lab", "PATH": PATH})


def _bind_volumes(root: Path, volumes: Path) -> None:
    for name in VOLUMES:
        source = volumes / Path(name).name
        source.mkdir(parents=True, exist_ok=True)
        (root / name).mkdir(parents=True, exist_ok=True)
        kernel.bind(source, root / name)


def _mount_kernel_views(root: Path) -> None:
    safe = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", root / "proc", "proc", safe)
    kernel.mount("sysfs", root / "sys", "sysfs", safe)
    kernel.mount("tmpfs", root / "run", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    kernel.mount("tmpfs", root / "tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")


def _make_dev(dev: Path) -> None:
    kernel.mount("tmpfs", dev, "tmpfs", kernel.MS_NOSUID, "mode=755")
    for name in _DEVICES:
        source = Path("/dev") / name
        if source.exists():
            (dev / name).parent.mkdir(exist_ok=True)
            (dev / name).touch()
            kernel.bind(source, dev / name)
    for name in ("pts", "shm", "mqueue"):
        (dev / name).mkdir()
    kernel.mount("devpts", dev / "pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620,gid=5")
    kernel.mount("tmpfs", dev / "shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    kernel.mount("mqueue", dev / "mqueue", "mqueue")
    for name, target in _DEV_LINKS.items():
        (dev / name).symlink_to(target)


def _mount_cgroups(target: Path) -> None:
    """The machine's own layout: v2 alone, or every v1 hierarchy it has with the unified one beside them."""
    found = cgroups.hierarchies()
    if cgroups.layout(found) == "v2":
        kernel.mount("cgroup2", target, "cgroup2")
        return
    kernel.mount("tmpfs", target, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for hierarchy in found:
        place = target / ("unified" if hierarchy.v2 else hierarchy.path.name)
        place.mkdir()
        kernel.mount("cgroup", place, "cgroup2" if hierarchy.v2 else "cgroup", 0, hierarchy.options)
        for controller in hierarchy.path.name.split(","):
            alias = target / controller
            if not alias.exists():
                alias.symlink_to(place.name)
