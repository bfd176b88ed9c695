"""Reading a host's settings from /proc, /sys and /etc. Nothing here writes, and every root can be replaced in tests."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path("/")


def text(path: Path) -> str | None:
    """A file's stripped text, or None when it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None


def sysctl_path(key: str) -> Path:
    """The file of a sysctl below /proc/sys.

    As sysctl(8) has it: when the first separator is a slash, dots are part of names (`net/ipv4/conf/eth0.100/mtu`);
    otherwise the two are swapped (`net.ipv4.conf.eth0/100.mtu`).
    """
    dot, slash = key.find("."), key.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return Path(key)
    return Path(key.translate(str.maketrans("./", "/.")))


def sysctls(keys: Iterable[str], root: Path = ROOT) -> dict[str, str | None]:
    """Running values with runs of whitespace made one space; None where the kernel has no such key."""
    values: dict[str, str | None] = {}
    for key in keys:
        value = text(root / "proc/sys" / sysctl_path(key))
        values[key] = None if value is None else " ".join(value.split())
    return values


def modules(names: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Each kernel module as loaded, builtin, loadable or absent."""
    wanted = list(names)
    if not wanted:
        return {}
    loaded = {line.split(" ", 1)[0] for line in (text(root / "proc/modules") or "").splitlines()}
    tree = root / "lib/modules" / os.uname().release
    result: dict[str, str] = {}
    builtin: set[str] | None = None
    loadable: set[str] | None = None
    for name in wanted:
        plain = name.replace("-", "_")
        if plain in loaded:
            result[name] = "loaded"
            continue
        if builtin is None:
            builtin = {_stem(line) for line in (text(tree / "modules.builtin") or "").splitlines()}
        # A module built in with parameters shows under /sys/module even where /lib/modules is not there (a container).
        if plain in builtin or (root / "sys/module" / plain).is_dir():
            result[name] = "builtin"
            continue
        if loadable is None:
            lines = (text(tree / "modules.dep") or "").splitlines()
            loadable = {_stem(line.split(":", 1)[0]) for line in lines}
        result[name] = "loadable" if plain in loadable else "absent"
    return result


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_")


def file(path: Path) -> dict[str, Any]:
    """Existence, kind, digest and attributes of one path; symbolic links are followed, and named under `link`."""
    found: dict[str, Any] = {
        "exists": False, "type": None, "sha256": None, "mode": None, "owner": None, "group": None, "size": None,
        "link": None,
    }  # fmt: skip
    if path.is_symlink():
        found["link"] = os.readlink(path)
    try:
        seen = path.stat()
    except OSError:
        return found
    found.update(
        exists=True,
        type=_type(seen.st_mode),
        mode=f"{stat.S_IMODE(seen.st_mode):04o}",
        owner=_user(seen.st_uid),
        group=_group(seen.st_gid),
        size=seen.st_size,
    )
    if stat.S_ISREG(seen.st_mode):
        found["sha256"] = sha256(path)
    return found


def sha256(path: Path) -> str | None:
    """Digest of a file, read in pieces; None when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def _type(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "special"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def swaps(root: Path = ROOT) -> list[str]:
    """Active swap areas."""
    return [line.split()[0] for line in (text(root / "proc/swaps") or "").splitlines()[1:] if line.strip()]


def fstab_swaps(root: Path = ROOT) -> list[str]:
    """Lines of /etc/fstab that would bring swap back at the next boot."""
    lines = [line.strip() for line in (text(root / "etc/fstab") or "").splitlines()]
    return [line for line in lines if not line.startswith("#") and len(line.split()) > 2 and line.split()[2] == "swap"]


def identity(root: Path = ROOT) -> dict[str, str | None]:
    """Names and ids of the host: what runs (`hostname`, `boot_id`) and what a boot would read (`static_hostname`)."""
    uname = os.uname()
    return {
        "hostname": uname.nodename,
        "static_hostname": text(root / "etc/hostname"),
        "boot_id": text(root / "proc/sys/kernel/random/boot_id"),
        "machine_id": text(root / "etc/machine-id"),
        "product_uuid": text(root / "sys/class/dmi/id/product_uuid"),
        "kernel": uname.release,
        "arch": uname.machine,
    }


def journald(root: Path = ROOT) -> dict[str, str]:
    """The [Journal] settings in force, drop-ins included; what is not set is not in it.

    Drop-ins are taken in the order of their names whatever the directory, and a name in /etc hides the same one in /run
    and /usr (systemd.unit(5), journald.conf(5)).
    """
    dropins: dict[str, Path] = {}
    for base in ("usr/local/lib", "usr/lib", "run", "etc"):
        directory = root / base / "systemd/journald.conf.d"
        if directory.is_dir():
            dropins.update((path.name, path) for path in directory.iterdir() if path.name.endswith(".conf"))
    mains = (root / base / "systemd/journald.conf" for base in ("etc", "run", "usr/local/lib", "usr/lib"))
    main = next((path for path in mains if path.is_file()), None)
    settings: dict[str, str] = {}
    for path in ([main] if main else []) + [dropins[name] for name in sorted(dropins)]:
        section = ""
        for line in (text(path) or "").splitlines():
            plain = line.strip()
            if plain.startswith("["):
                section = plain
            elif section == "[Journal]" and "=" in plain and plain[0] not in "#;":
                key, _, value = plain.partition("=")
                settings[key.strip()] = value.strip()
    return {key: value for key, value in settings.items() if value}
