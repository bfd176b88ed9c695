"""Files in place of what a host must not reach or what its hardware would show: sysctls and parts of /sys.

Kernel settings that are not per namespace belong to the machine. A host sees a copy, taken at each of its boots, and
its writes stay in the copy.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from provision.lab import kernel

# Under /proc/sys: `net` and `user` are per namespace (net/core only in part: see `_shadow_net_core`).
_PER_NAMESPACE = ("net", "user")
# Per namespace (UTS, IPC, PID), or plain information, inside directories that are otherwise the machine's.
_REAL = (
    "kernel/cap_last_cap",
    "kernel/domainname",
    "kernel/hostname",
    "kernel/msgmax",
    "kernel/msgmnb",
    "kernel/msgmni",
    "kernel/msg_next_id",
    "kernel/ns_last_pid",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/random",
    "kernel/sem",
    "kernel/sem_next_id",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "kernel/shm_next_id",
    "kernel/shm_rmid_forced",
    "kernel/version",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/mqueue",
)
_SKIPPED = ("fs/binfmt_misc",)
# Settings a namespace other than the machine's first does not show, with the kernel's defaults.
_NET_CORE_DEFAULTS = {
    "default_qdisc": "pfifo_fast",
    "dev_weight": "64",
    "netdev_budget": "300",
    "netdev_budget_usecs": "8000",
    "netdev_max_backlog": "1000",
    "rmem_default": "212992",
    "rmem_max": "212992",
    "rps_sock_flow_entries": "0",
    "wmem_default": "212992",
    "wmem_max": "212992",
}
# Writing there would act on the machine: sysrq can reset it, swapoff would take its swap away.
_SWAPS_HEADER = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
_SYS_READ_ONLY = ("block", "firmware", "module", "power")
_THP = Path("kernel/mm/transparent_hugepage")

# A Founders Edition's modalias, as read in canonical/secboot#560.
DMI = {
    "bios_vendor": "American Megatrends International, LLC.",
    "bios_version": "5.36_0ACUM018",
    "board_name": "P4242",
    "board_vendor": "NVIDIA",
    "board_version": "A04",
    "chassis_vendor": "NVIDIA",
    "product_name": "NVIDIA_DGX_Spark",
    "product_version": "A.7",
    "sys_vendor": "NVIDIA",
}


def shadow_sysctls(proc: Path, store: Path) -> None:
    """Cover the machine-wide parts of `proc`/sys with copies kept under `store` (a tmpfs)."""
    original = store / "original"
    original.mkdir(parents=True)
    kernel.bind(proc / "sys", original)
    for directory in sorted(original.iterdir()):
        if directory.is_dir() and directory.name not in _PER_NAMESPACE:
            copy = store / "sys" / directory.name
            _copy_tree(directory, copy, original)
            kernel.bind(copy, proc / "sys" / directory.name, recursive=True)
    _shadow_net_core(proc / "sys/net/core", original / "net/core", store / "sys/net_core")
    kernel.umount(original, kernel.MNT_DETACH)


def _copy_tree(source: Path, copy: Path, original: Path) -> None:
    copy.mkdir(parents=True)
    for entry in sorted(source.iterdir()):
        name, target = str(entry.relative_to(original)), copy / entry.name
        if name in _SKIPPED:
            continue
        if name in _REAL:
            target.mkdir() if entry.is_dir() else target.touch()
            kernel.bind(entry, target)
        elif entry.is_dir():
            _copy_tree(entry, target, original)
        else:
            _copy_file(entry, target)


def _copy_file(entry: Path, target: Path) -> None:
    """Copy a setting. One that cannot be read (compact_memory) becomes an empty file that takes writes."""
    text = ""
    mode = entry.stat().st_mode & 0o777
    if mode & 0o444:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = entry.read_text()
    target.write_text(text)
    target.chmod(mode)


def _shadow_net_core(target: Path, original: Path, copy: Path) -> None:
    """net/core: what the kernel keeps per namespace stays real, the rest is copied or has the kernel's default."""
    copy.mkdir(parents=True)
    # In a namespace other than the first, the kernel shows in net/core what is the namespace's own, and rmem/wmem
    # read-only for the machine's.
    for entry in sorted(original.iterdir()):
        if entry.is_file():
            own = bool(entry.stat().st_mode & 0o200)
            if own:
                (copy / entry.name).touch()
                kernel.bind(entry, copy / entry.name)
            else:
                _copy_file(entry, copy / entry.name)
                (copy / entry.name).chmod(0o644)
    for name, value in _NET_CORE_DEFAULTS.items():
        if not (copy / name).exists():
            (copy / name).write_text(f"{value}\n")
    kernel.bind(copy, target, recursive=True)


def cover_switches(proc: Path, store: Path) -> None:
    """Take from the host the files that act on the whole machine."""
    if (proc / "sysrq-trigger").exists():
        kernel.bind("/dev/null", proc / "sysrq-trigger")
    if (proc / "swaps").exists():
        (store / "swaps").write_text(_SWAPS_HEADER)
        kernel.bind(store / "swaps", proc / "swaps")


def give_boot_id(proc: Path, store: Path) -> None:
    """A boot id of this boot of the host: the kernel's one is the machine's."""
    (store / "boot_id").write_text((proc / "sys/kernel/random/uuid").read_text())
    (store / "boot_id").chmod(0o444)
    kernel.bind(store / "boot_id", proc / "sys/kernel/random/boot_id")


def shadow_sys(sys: Path, store: Path, product_uuid: str, infiniband: Path | None) -> None:
    """Protect the machine-wide settings under `sys` and show the hardware a DGX Spark has.

    `infiniband` is a ready-made tree for /sys/class/infiniband, or None for a host without HCAs.
    """
    for name in _SYS_READ_ONLY:
        if (sys / name).is_dir():
            kernel.bind(sys / name, sys / name, recursive=True, read_only=True)
    if (sys / _THP).is_dir():
        _copy_plain(sys / _THP, store / "thp")
        kernel.bind(store / "thp", sys / _THP)
    # A class cannot be added to sysfs, so the directory is rebuilt: every real class bound, ours beside them.
    classes, original = store / "class", store / "class_original"
    classes.mkdir()
    original.mkdir()
    kernel.bind(sys / "class", original)
    for entry in sorted(original.iterdir()):
        if entry.name in ("dmi", "infiniband"):
            continue
        (classes / entry.name).mkdir()
        kernel.bind(entry, classes / entry.name)
    dmi = classes / "dmi" / "id"
    dmi.mkdir(parents=True)
    for name, value in {**DMI, "product_uuid": product_uuid, "product_serial": product_uuid[:13]}.items():
        (dmi / name).write_text(f"{value}\n")
        (dmi / name).chmod(0o400 if name in ("product_uuid", "product_serial") else 0o444)
    if infiniband is not None:
        (classes / "infiniband").mkdir()
        kernel.bind(infiniband, classes / "infiniband")
    kernel.bind(classes, sys / "class", recursive=True)
    kernel.umount(original, kernel.MNT_DETACH)


def _copy_plain(source: Path, target: Path) -> None:
    target.mkdir()
    for directory, _, files in os.walk(source):
        place = target / Path(directory).relative_to(source)
        place.mkdir(exist_ok=True)
        for name in files:
            _copy_file(Path(directory) / name, place / name)
