"""The lab's package repository: .debs fetched once on the machine, read by every host from /srv/apt."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from provision.lab import mirror
from provision.lab.errors import LabError

FORMAT = 1
# What roles install on a host, and what the flavours preinstall, in alphabetical order (the order is part of the key).
# Each can be installed on the base layer by itself.
PACKAGES = (
    "chrony",
    "conntrack",
    "containerd",
    "curl",
    "docker-cli",
    "docker.io",
    "ethtool",
    "htop",
    "ibverbs-utils",
    "infiniband-diags",
    "iperf3",
    "iptables",
    "jq",
    "lldpd",
    "netplan.io",
    "network-manager",
    "nftables",
    "numactl",
    "nvme-cli",
    "pciutils",
    "perftest",
    "rdma-core",
    "rsync",
    "runc",
    "socat",
    "sysstat",
    "tmux",
)

_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)


@functools.cache
def architecture() -> str:
    """Debian's name of the machine's architecture (amd64, arm64)."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def build(target: Path, base: Path, suite: str) -> None:
    """Fill `target` with the .debs of `PACKAGES`, what they need beyond `base`, and an index. Raises LabError."""
    target.mkdir(mode=0o755)
    apt = _Apt(target.parent / "apt", base, suite)
    apt.run("update")
    with ThreadPoolExecutor(max_workers=2) as pool:
        simulated = pool.map(lambda name: apt.run("install", "--simulate", "--no-install-recommends", name), PACKAGES)
        wanted = {f"{name}={version}" for text in simulated for name, version in _INSTALLED.findall(text)}
    # Packages the base layer already has are offered as well, so that naming one in a role is no special case.
    wanted |= {name for name in PACKAGES if not any(entry.startswith(f"{name}=") for entry in wanted)}
    apt.run("download", *sorted(wanted), cwd=target)
    write_index(target)


class _Apt:
    """apt-get that sees only the mirror and the base layer's installed packages."""

    def __init__(self, state: Path, base: Path, suite: str) -> None:
        self._state = state
        for directory in ("state/lists/partial", "cache/archives/partial"):
            (state / directory).mkdir(parents=True)
        (state / "sources.list").write_text("\n".join(mirror.find().sources(suite)) + "\n")
        config = (
            f'Dir::State "{state}/state";\n'
            f'Dir::State::status "{base}/var/lib/dpkg/status";\n'
            f'Dir::Cache "{state}/cache";\n'
            f'Dir::Etc::sourcelist "{state}/sources.list";\n'
            'Dir::Etc::sourceparts "/dev/null";\n'
            'Dir::Etc::parts "/dev/null";\n'
            'APT::Sandbox::User "root";\n'
        )
        (state / "apt.conf").write_text(config + mirror.apt_options())

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["apt-get", "-q", *arguments],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "APT_CONFIG": str(self._state / "apt.conf")},
            check=False,
        )
        if done.returncode:
            raise LabError(f"package repository: apt-get {arguments[0]} failed:\n{done.stderr.strip()}")
        return done.stdout


def write_index(root: Path) -> None:
    """Write Packages and Release for the .debs in `root` (a flat repository, trusted by the hosts' sources)."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        entries = list(pool.map(_entry, sorted(root.glob("*.deb"))))
    packages = "\n".join(entries)
    (root / "Packages").write_text(packages)
    digest = hashlib.sha256(packages.encode()).hexdigest()
    (root / "Release").write_text(
        "Origin: spark-plane\nLabel: spark-plane-lab\nSuite: lab\n"
        # Fixed: two builds of one set of packages give one index.
        "Date: Thu, 01 Jan 2026 00:00:00 UTC\n"
        f"Architectures: {architecture()} all\nSHA256:\n {digest} {len(packages.encode())} Packages\n"
    )


def _entry(deb: Path) -> str:
    """One stanza of Packages."""
    control = subprocess.run(["dpkg-deb", "--field", str(deb)], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    return f"{control.rstrip()}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"
