"""Where the lab keeps things, and which names it accepts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from provision.lab.errors import NeedError

PROJECT_ROOT = Path(__file__).resolve().parents[2]
DEFAULT_HOME = Path("/var/lib/spark-plane")
DEFAULT_LAB = "lab"
NETNS_DIR = Path("/run/netns")

# A lab name is part of namespace, cgroup and directory names and of unix socket paths (108 bytes at most).
_LAB_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
MAX_HOSTS = 16


def home() -> Path:
    """The lab's home: $SPARK_PLANE_HOME or /var/lib/spark-plane, absolute."""
    return Path(os.environ.get("SPARK_PLANE_HOME") or DEFAULT_HOME).absolute()


def default_lab() -> str:
    """The lab meant when none is named: $SPARK_PLANE_LAB or `lab`."""
    return os.environ.get("SPARK_PLANE_LAB") or DEFAULT_LAB


def check_name(name: str) -> str:
    """Return `name` when it may name a lab. Raises NeedError otherwise."""
    if not _LAB_NAME.fullmatch(name):
        raise NeedError(f"lab name {name!r}: wanted a lower-case letter, then up to 19 of a-z, 0-9 and '-'")
    return name


def host_names(count: int) -> list[str]:
    """spark-a, spark-b, ... in rank order. Raises NeedError outside 1..16."""
    if not 1 <= count <= MAX_HOSTS:
        raise NeedError(f"{count} hosts: a lab has 1 to {MAX_HOSTS}")
    return [f"spark-{chr(ord('a') + index)}" for index in range(count)]


@dataclass(frozen=True)
class LabPaths:
    """The files of one lab."""

    home: Path
    name: str

    @property
    def cache(self) -> Path:
        """Root file systems, the apt repository and downloads, shared by all labs."""
        return self.home / "cache"

    @property
    def labs(self) -> Path:
        """The parent of all labs."""
        return self.home / "labs"

    @property
    def root(self) -> Path:
        """Everything of this lab, and gone after `down`."""
        return self.labs / self.name

    @property
    def lock(self) -> Path:
        """Held while something brings this lab up or down. Outside `root`, so that it outlives `down`."""
        return self.labs / f".{self.name}.lock"

    @property
    def state(self) -> Path:
        """What the lab is made of (JSON)."""
        return self.root / "lab.json"

    @property
    def key(self) -> Path:
        """The private ssh key of the lab; `.pub` lies beside it."""
        return self.root / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys of the lab's hosts, by name."""
        return self.root / "known_hosts"

    @property
    def control(self) -> Path:
        """Directory of ssh control sockets."""
        return self.root / "cp"

    @property
    def control_netns(self) -> str:
        """The namespace that holds the management bridge."""
        return f"{self.name}.ctl"

    def host(self, host: str) -> HostPaths:
        """The files of one host."""
        return HostPaths(self.root / "hosts" / host, f"{self.name}.{host}")


@dataclass(frozen=True)
class HostPaths:
    """The files of one host, and the name of its network namespace."""

    root: Path
    netns: str

    @property
    def config(self) -> Path:
        """What the supervisor needs to boot the host (JSON)."""
        return self.root / "host.json"

    @property
    def seed(self) -> Path:
        """Lowest-level identity (host name, keys, machine-id): a lower layer, so `upper` stays the host's own."""
        return self.root / "seed"

    @property
    def upper(self) -> Path:
        """Overlay upper directory: exactly what the host wrote."""
        return self.root / "upper"

    @property
    def work(self) -> Path:
        """Overlay work directory."""
        return self.root / "work"

    @property
    def mountpoint(self) -> Path:
        """Where the host's root is mounted in its own mount namespace; empty when seen from the machine."""
        return self.root / "root"

    @property
    def shadow(self) -> Path:
        """Mount point of the tmpfs with sysctl and sysfs shadows, in the host's mount namespace."""
        return self.root / "shadow"

    @property
    def volumes(self) -> Path:
        """Directories of the machine's own file system bound into the host (overlay2 cannot sit on overlay)."""
        return self.root / "volumes"

    @property
    def supervisor(self) -> Path:
        """Pid and start time of the supervisor and of the host's init (JSON)."""
        return self.root / "supervisor.json"

    @property
    def ready(self) -> Path:
        """Which boot of the host was seen to take a login (JSON)."""
        return self.root / "ready.json"

    @property
    def lock(self) -> Path:
        """Held from before the supervisor is started until it has ended."""
        return self.root / "run.lock"

    @property
    def console(self) -> Path:
        """What the supervisor and the host's init print."""
        return self.root / "console.log"

    @property
    def netns_path(self) -> Path:
        """The file the network namespace is bound on."""
        return NETNS_DIR / self.netns
