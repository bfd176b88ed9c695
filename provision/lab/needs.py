"""What this machine must offer before a lab can run on it, checked before anything is made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from provision.lab import cgroups, kernel
from provision.lab.errors import NeedError

# Debian packages that hold every program the lab runs; `make setup` installs them.
INSTALL_PACKAGES = (
    "debian-archive-keyring",
    "gpgv",
    "iproute2",
    "mmdebstrap",
    "openssh-client",
    "socat",
    "util-linux",
)
_TOOLS = {
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "gpgv": "gpgv",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "pivot_root": "util-linux",
    "socat": "socat",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
}
FREE_GIB = 8
INOTIFY_INSTANCES = 4096
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INSTEAD = "What works instead: a virtual machine with Debian 12 or 13, or a real site (-i inventory/<site>)."


@dataclass(frozen=True)
class Need:
    """Something that is missing, and how to get it."""

    name: str
    seen: str
    remedy: str


def check(home: Path) -> None:
    """Raise one NeedError that lists everything missing for a lab with its files under `home`."""
    needs = missing(home)
    if not needs:
        return
    lines = [f"  {need.name}: {need.seen}. {need.remedy}" for need in needs]
    raise NeedError("\n".join(["the lab cannot run here", *lines, _INSTEAD]))


def missing(home: Path) -> list[Need]:
    """The needs that are not met; later ones are not looked at where an earlier one rules them out."""
    found = [need for need in (_linux(), _root()) if need]
    if found:
        return found
    checks: list[Callable[[], Need | None]] = [
        _tools,
        lambda: _disk(home),
        _cgroups,
        lambda: _overlay(home),
        _network,
    ]
    return [need for need in (check() for check in checks) if need]


def raise_limits(say: Callable[[str], None]) -> None:
    """Raise the one kernel limit of the machine that all hosts share and that its default is too low for.

    Each host's systemd, journald, logind and so on hold some 12 inotify instances, which the kernel counts per user
    for the whole machine; at the default of 128 the third lab's hosts end while they boot.
    """
    if int(_INOTIFY.read_text()) < INOTIFY_INSTANCES:
        _INOTIFY.write_text(str(INOTIFY_INSTANCES))
        say(f"raised this machine's fs.inotify.max_user_instances to {INOTIFY_INSTANCES}: its hosts share it")


def _linux() -> Need | None:
    if sys.platform == "linux":
        return None
    return Need("Linux", f"this is {sys.platform}", "Hosts are made of Linux namespaces.")


def _root() -> Need | None:
    if os.geteuid() == 0:
        return None
    return Need("root", f"running as uid {os.geteuid()}", "Run it as root (sudo -E).")


def packages_missing() -> tuple[str, ...]:
    """The Debian packages to install before a lab can be made here; none where every program is there."""
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    complete = _tools() is None and keyring.is_file()
    return () if complete or sys.platform != "linux" else INSTALL_PACKAGES


def _tools() -> Need | None:
    absent = {tool: package for tool, package in _TOOLS.items() if shutil.which(tool, path=_path()) is None}
    if not absent:
        return None
    packages = " ".join(sorted(set(absent.values())))
    return Need("programs", f"not found: {', '.join(sorted(absent))}", f"Run: apt-get install {packages}")


def _disk(home: Path) -> Need | None:
    place = home
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    if free >= FREE_GIB:
        return None
    return Need(
        "disk space",
        f"{free:.1f} GiB free at {place}, wanted {FREE_GIB} GiB",
        "Free some, or set SPARK_PLANE_HOME to a larger file system.",
    )


def _cgroups() -> Need | None:
    if cgroups.hierarchies():
        return None
    return Need("control groups", "no cgroup file system is mounted", "Mount one: mount -t cgroup2 none /sys/fs/cgroup")


def _overlay(home: Path) -> Need | None:
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".need-", dir=home) as name:
        directory = Path(name)
        for part in ("lower", "upper", "work", "root"):
            (directory / part).mkdir()

        def attempt() -> None:
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
            data = f"lowerdir={directory / 'lower'},upperdir={directory / 'upper'},workdir={directory / 'work'}"
            kernel.mount("overlay", directory / "root", "overlay", 0, data)

        problem = _try(attempt)
    if problem is None:
        return None
    return Need(
        "overlay file system",
        f"mounting one at {home} failed ({problem})",
        "Load the overlay module, or set SPARK_PLANE_HOME to a plain file system (ext4, xfs).",
    )


def _network() -> Need | None:
    def attempt() -> None:
        kernel.unshare(kernel.CLONE_NEWNET)
        done = subprocess.run(
            ["ip", "link", "add", "type", "veth"], capture_output=True, text=True, check=False, env={"PATH": _path()}
        )
        if done.returncode:
            raise OSError(done.stderr.strip())

    problem = _try(attempt)
    if problem is None:
        return None
    return Need(
        "network namespaces with veth",
        f"making a pair in a new namespace failed ({problem})",
        "Load the veth module, or run where CAP_SYS_ADMIN and CAP_NET_ADMIN are allowed.",
    )


def _path() -> str:
    """The search path with the directories that hold system programs."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _try(attempt: Callable[[], None]) -> str | None:
    """Run `attempt` in a child whose namespaces go with it; None when it worked, else what failed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        text = ""
        try:
            os.close(read)
            attempt()
        except BaseException as error:
            text = str(error) or type(error).__name__
        os.write(write, text.encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(write)
    with os.fdopen(read) as stream:
        problem = stream.read()
    os.waitpid(child, 0)
    return problem or None
