"""Root file systems, built once and kept by content key.

Four layers, the later ones overlays on the earlier:

    base    mmdebstrap's Debian (what any server has)
    apt     not a layer of the root: the local package repository, bound on /srv/apt
    bare    base + the lab's configuration + package lists: a server without Docker
    spark   bare + what DGX OS ships preinstalled (Docker among it)

A key is the digest of everything a layer is made from, so a changed recipe makes a new layer and an unchanged one is
never built again. A layer is built in a temporary directory and renamed, so an interrupted build leaves nothing
that is ever used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.lab import aptrepo, kernel, mirror
from provision.lab.errors import LabError, NeedError
from provision.lab.paths import PROJECT_ROOT
from provision.lab.process import locked, read_json

Say = Callable[[str], None]

SUITE = "trixie"
SKELETON = Path(__file__).parent / "skeleton"
STANDINS = PROJECT_ROOT / "tests" / "standins"
# A mirror that hangs must not hold the next builder for ever.
BUILD_SECONDS = 1500

BASE_PACKAGES = (
    "apt",
    "busybox-static",
    "ca-certificates",
    "dbus",
    "ethtool",
    "gpgv",
    "iproute2",
    "iptables",
    "iputils-ping",
    "kmod",
    "libpam-systemd",
    "netbase",
    "nftables",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd",
    "systemd-sysv",
    "systemd-timesyncd",
)

DPKG_EXCLUDES = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")


@dataclass(frozen=True)
class Flavour:
    """One kind of host: packages on top of another flavour's layers."""

    name: str
    parent: str | None
    packages: tuple[str, ...]
    what: str


FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour("bare", None, (), "a Debian server without Docker"),
        Flavour(
            "spark",
            "bare",
            ("containerd", "curl", "docker-cli", "docker.io", "jq", "pciutils", "rsync", "runc"),
            "what DGX OS ships, Docker preinstalled",
        ),
    )
}

# In a chroot on the layers below; $1 the upper directory, $2 the lower ones, $3 the package repository, $4 packages.
_LAYER_SCRIPT = r"""
set -eu
upper=$1 lower=$2 repository=$3 packages=$4
work=$upper.work root=$upper.root
mkdir "$work" "$root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work" "$root"
mkdir -p "$root/srv/apt"
mount --bind "$repository" "$root/srv/apt"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"
for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
apt() { chroot "$root" apt-get -o APT::Sandbox::User=root -qq "$@"; }
if [ -n "$packages" ]; then
    apt install -y $packages
    apt clean
else
    apt update
    chroot "$root" systemctl disable -q apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
    chroot "$root" systemctl enable -q ssh.service
    # Without CAP_SYS_RESOURCE a limit above the machine's own cannot be set, and a required pam_limits then refuses
    # every login.
    sed -i -E 's/^(session\s+)required(\s+pam_limits\.so)/\1optional\2/' "$root/etc/pam.d/sshd"
    rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/machine-id" "$root/var/lib/dbus/machine-id"
    : >"$root/etc/machine-id"
fi
rm "$root/usr/sbin/policy-rc.d"
umount -R "$root"
rmdir "$root"
rm -rf "$work"
"""


class Cache:
    """The layers and the package repository under one cache directory."""

    def __init__(self, root: Path, say: Say = lambda _: None) -> None:
        self.root = root
        self._say = say

    def layers(self, flavour: str) -> list[Path]:
        """Layers of a flavour, uppermost first, building what is missing."""
        if flavour not in FLAVOURS:
            raise NeedError(f"flavour {flavour!r}: there are {', '.join(FLAVOURS)}")
        chain = [self.base()]
        names: list[Flavour] = []
        link: str | None = flavour
        while link:
            names.append(FLAVOURS[link])
            link = FLAVOURS[link].parent
        for part in reversed(names):
            chain.insert(0, self._flavour_layer(part, chain))
        return chain

    def base(self) -> Path:
        """The layer that mmdebstrap makes."""
        key = _key(SUITE, BASE_PACKAGES, DPKG_EXCLUDES, aptrepo.architecture())
        return self._built(f"rootfs-base-{key}", "Debian root file system (about 40 s)", self._build_base)

    def repository(self) -> Path:
        """The package repository: everything in `aptrepo.PACKAGES` with what the base layer lacks for it."""
        base = self.base()
        key = _key(base.name, aptrepo.PACKAGES, aptrepo.FORMAT)
        return self._built(
            f"apt-{key}",
            "package repository (about 30 s)",
            lambda result: aptrepo.build(result, base, SUITE),
        )

    def prune(self, labs: Path) -> list[Path]:
        """Remove layers and repositories that neither a flavour as it is now nor a lab under `labs` uses."""
        kept = {layer for flavour in FLAVOURS for layer in self.layers(flavour)} | {self.repository()}
        for state in labs.glob("*/lab.json"):
            known = read_json(state) or {}
            kept |= {Path(path) for path in [*known.get("layers", []), known.get("repository", "")]}
        unused = [path for kind in ("rootfs-*", "apt-*") for path in self.root.glob(kind) if path not in kept]
        for path in unused:
            # Renamed first: what is half removed must not be taken for a layer.
            doomed = path.with_name(f".pruned-{path.name}")
            path.rename(doomed)
            shutil.rmtree(doomed)
        return unused

    def _flavour_layer(self, flavour: Flavour, below: Sequence[Path]) -> Path:
        repository = self.repository()
        made_from: list[object] = [[layer.name for layer in below], repository.name, flavour.packages, _LAYER_SCRIPT]
        if flavour.parent is None:
            made_from.append(_tree_digest(SKELETON))
            made_from.append(_tree_digest(STANDINS / "runc" / "host"))
        key = _key(*made_from)

        def build(result: Path) -> None:
            result.mkdir(mode=0o755)
            if flavour.parent is None:
                _copy_skeleton(result)
            lower = ":".join(str(layer) for layer in below)
            packages = " ".join(flavour.packages)
            _run_apart(["sh", "-c", _LAYER_SCRIPT, "sh", str(result), lower, str(repository), packages], result.parent)

        return self._built(f"rootfs-{flavour.name}-{key}", f"{flavour.name} layer", build)

    def _built(self, name: str, what: str, build: Callable[[Path], None]) -> Path:
        final = self.root / name
        if final.is_dir():
            return final
        with locked(self.root / f".{name}.lock", f"building the {what}", BUILD_SECONDS):
            for stale in self.root.glob(f".building-{name}-*"):
                shutil.rmtree(stale, ignore_errors=True)
            if final.is_dir():
                return final
            self._say(f"building the {what}, once")
            temporary = self.root / f".building-{name}-{os.getpid()}"
            temporary.mkdir()
            try:
                build(temporary / "result")
                (temporary / "result").rename(final)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return final

    def _build_base(self, result: Path) -> None:
        options = result.parent / "apt.conf"
        options.write_text(mirror.apt_options())
        command = [
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            "--components=main",
            f"--include={','.join(BASE_PACKAGES)}",
            f"--aptopt={options}",
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in DPKG_EXCLUDES),
            # The mirror and the machine's proxies are no business of the lab's hosts.
            '--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap" "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"',
            '--customize-hook=rm -rf "$1/etc/apt/sources.list" "$1/etc/apt/sources.list.d"',
            SUITE,
            str(result),
            *mirror.find().sources(SUITE),
        ]
        _run_apart(command, result.parent)


def _run_apart(command: list[str], directory: Path) -> None:
    """Run a build step in mount and pid namespaces of its own: killed with us, and its mounts go with it.

    Output goes to `directory`/log; its end is in the LabError raised on failure.
    """
    log = directory / "log"
    wrapper = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/tmp"}
    with log.open("wb") as stream:
        done = subprocess.run(
            [*wrapper, *command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            preexec_fn=lambda: kernel.die_with_parent(signal.SIGKILL),
            check=False,
        )
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise LabError(f"building a root file system failed ({command[0]} exited {done.returncode}):\n{tail}")


def _copy_skeleton(upper: Path) -> None:
    """The lab's own files, owned by root whoever owns the checkout."""
    trees = {SKELETON: upper, STANDINS / "runc" / "host": upper}
    for source, target in trees.items():
        if source.is_dir():
            subprocess.run(
                ["cp", "-r", "--no-preserve=ownership", f"{source}/.", str(target)],
                check=True,
            )
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", str(upper)], check=True)


def _tree_digest(root: Path) -> str:
    """Digest of names, contents and execute bits below a directory."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            executable = bool(path.stat().st_mode & 0o100)
            digest.update(f"{path.relative_to(root)}\0{executable}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _key(*parts: object) -> str:
    """Twelve hex digits for what a layer is made from."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
