"""The few Linux system calls the lab needs and Python 3.11 does not offer."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

# <linux/sched.h>
CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

# <sys/mount.h>
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000
MNT_DETACH = 0x2

# <linux/prctl.h>
PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24

# <linux/capability.h>; what systemd-nspawn withholds too: one host's role must not set the machine's clock
# or load a module into its kernel.
CAP_SYS_MODULE = 16
CAP_SYS_RESOURCE = 24
CAP_SYS_TIME = 25

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    """Raise OSError with errno and `what` when a C call returned -1."""
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


def mount(source: str, target: Path | str, fstype: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system. Raises OSError naming source and target."""
    result = _libc.mount(
        source.encode(),
        os.fsencode(target),
        fstype.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _check(result, f"mount {source} on {target}")


def bind(source: Path | str, target: Path | str, *, recursive: bool = False, read_only: bool = False) -> None:
    """Bind `source` on `target`; read-only is a second call, since mount(2) ignores it in the first."""
    mount(str(source), target, flags=MS_BIND | (MS_REC if recursive else 0))
    if read_only:
        mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def umount(target: Path | str, flags: int = 0) -> None:
    """Call umount2(2)."""
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def unshare(flags: int) -> None:
    """Enter new namespaces; with CLONE_NEWPID only the next child enters the new namespace."""
    _check(_libc.unshare(flags), "unshare")


def enter_netns(path: Path) -> None:
    """Move the calling thread, and only it, into the network namespace bound on `path`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(fd, CLONE_NEWNET), f"setns {path}")
    finally:
        os.close(fd)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send `signal_number` to this process when its parent ends."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl PR_SET_PDEATHSIG")


def drop_capability(number: int) -> None:
    """Remove a capability from the bounding set, so no later exec regains it."""
    _check(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "prctl PR_CAPBSET_DROP")


def has_capability(number: int) -> bool:
    """Whether a capability is in the bounding set."""
    return bool(_libc.prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1)


def set_hostname(name: str) -> None:
    """Call sethostname(2) in the current UTS namespace."""
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")
