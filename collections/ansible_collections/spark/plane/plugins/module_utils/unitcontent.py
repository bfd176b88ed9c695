"""What a unit runs on: the content of its unit file, drop-ins, environment files and the files its role names.

The stamp of a unit says with which content one invocation of it was started. systemd gives every start of a unit a
fresh InvocationID, so a stamp can neither be taken for another start nor survive a reboot by mistake.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ansible_collections.spark.plane.plugins.module_utils import atomic, hostfacts

STAMPS = Path("var/lib/spark-plane/units")
"""Below the host's root; one JSON file per unit."""

_VERSION = 1
_RACY = 2_000_000_000
"""Nanoseconds. A file changed so shortly before it was hashed may change again within one timestamp tick."""

_CACHE_FROM = 1 << 20
"""Bytes. Smaller files are hashed every time; a 70 MB binary only when its inode or times moved."""

_REGENERATED = "/run/systemd/"
"""Generators write these anew at every daemon-reload, so their times say nothing about a change."""


@dataclass(frozen=True)
class FileState:
    """One path's content. `sha256` is None where there is no file; times are in nanoseconds.

    For a symbolic link the later of its own and its target's times count: pointing it elsewhere is a change.
    """

    sha256: str | None
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0

    @property
    def changed_ns(self) -> int:
        """The later of both times: a rename keeps the modification time and moves the change time."""
        return max(self.mtime_ns, self.ctime_ns)

    def newer_than(self, seconds: float) -> bool:
        """Whether the file was written or replaced at or after a point in time (seconds since the epoch)."""
        return self.changed_ns >= int(seconds * 1e9)


@dataclass(frozen=True)
class Content:
    """Everything a unit runs on at one moment. `unit_files` are those systemd itself reads."""

    unit_files: tuple[str, ...]
    files: Mapping[str, FileState]

    @property
    def digest(self) -> str:
        """sha256 over every path and content."""
        total = hashlib.sha256()
        for path in sorted(self.files):
            total.update(f"{path}\0{self.files[path].sha256}\0".encode())
        return total.hexdigest()


@dataclass(frozen=True)
class Stamp:
    """With which content one invocation was started. `written_ns` is when the stamp was made."""

    invocation: str
    content: Content
    written_ns: int = 0


def unit_files(properties: Mapping[str, str]) -> list[str]:
    """Unit file, drop-ins and environment files, from `systemctl show`."""
    paths = [properties.get("FragmentPath", ""), properties.get("SourcePath", "")]
    paths += properties.get("DropInPaths", "").split()
    # One per line: `/etc/default/docker (ignore_errors=yes)`; a glob is left to the caller's `content`.
    for line in properties.get("EnvironmentFiles", "").splitlines():
        path = line.rsplit(" (ignore_errors=", 1)[0]
        if not set("*?[") & set(path):
            paths.append(path)
    return list(dict.fromkeys(path for path in paths if path))


def read(unit: Iterable[str], named: Iterable[str], known: Stamp | None, root: Path = Path("/")) -> Content:
    """Digest every file; a directory stands for all files in it.

    Args:
        unit: paths systemd reads.
        named: paths the role names.
        known: the last stamp, whose digests are taken over for large files that did not move since.
        root: what the paths are below.
    """
    files: dict[str, FileState] = {}
    unit_paths = list(unit)
    for path in [*unit_paths, *named]:
        _add(path, files, known, root)
    return Content(tuple(sorted(set(unit_paths))), files)


def _add(path: str, files: dict[str, FileState], known: Stamp | None, root: Path, nested: bool = False) -> None:
    if path in files:
        return
    real = root / path.lstrip("/")
    try:
        seen, link = real.stat(), real.lstat()
    except OSError:
        files[path] = FileState(None)
        return
    now = FileState(
        None,
        size=seen.st_size,
        mtime_ns=max(seen.st_mtime_ns, link.st_mtime_ns),
        ctime_ns=max(seen.st_ctime_ns, link.st_ctime_ns),
        inode=seen.st_ino,
    )
    if stat.S_ISDIR(seen.st_mode):
        if nested and stat.S_ISLNK(link.st_mode):
            # Not followed: it may lead back up and never end.
            files[path] = replace(now, sha256=hashlib.sha256(bytes(real.readlink())).hexdigest())
            return
        names = sorted(entry.name for entry in real.iterdir())
        files[path] = replace(now, sha256=hashlib.sha256("\0".join(names).encode()).hexdigest())
        for name in names:
            _add(f"{path.rstrip('/')}/{name}", files, known, root, nested=True)
    elif stat.S_ISREG(seen.st_mode):
        files[path] = replace(now, sha256=_cached(path, now, known) or hostfacts.sha256(real))
    else:
        # Reading a pipe or a socket could wait for ever; its name is all there is to compare.
        files[path] = FileState("special file")


def _cached(path: str, now: FileState, known: Stamp | None) -> str | None:
    before = known.content.files.get(path) if known else None
    if known is None or before is None or now.size < _CACHE_FROM or replace(before, sha256=None) != now:
        return None
    return before.sha256 if now.changed_ns + _RACY < known.written_ns else None


def differences(stamp: Stamp, now: Content, started: float, root: Path = Path("/")) -> list[str]:
    """Why a unit that was started as the stamp says does not run on the present content; empty when it does.

    A path the stamp does not know (the role names one more) is judged by its times against `started`, in seconds since
    the epoch.
    """
    reasons: list[str] = []
    for path in sorted(now.files):
        before, after = stamp.content.files.get(path), now.files[path]
        if before is None:
            if after.sha256 is not None and after.newer_than(started) and not path.startswith(_REGENERATED):
                reasons.append(f"{path} is newer than its start")
        elif before.sha256 != after.sha256:
            what = "was removed since it was started" if after.sha256 is None else None
            reasons.append(f"{path} {what}" if what else f"content of {path} differs from what it was started with")
    for path, before in sorted(stamp.content.files.items()):
        if path in now.files or before.sha256 is None:
            continue
        if not (root / path.lstrip("/")).exists():
            reasons.append(f"{path} was removed since it was started")
        elif path in stamp.content.unit_files:
            reasons.append(f"{path} no longer applies to it")
    return reasons


def newer(now: Content, started: float) -> list[str]:
    """Why a unit without a stamp of this invocation may not run on the present content; empty when it surely does."""
    return [
        f"{path} is newer than its start"
        for path, state in sorted(now.files.items())
        if state.sha256 is not None and not path.startswith(_REGENERATED) and state.newer_than(started)
    ]


def load(unit: str, root: Path = Path("/")) -> Stamp | None:
    """A unit's stamp; None when there is none or it cannot be read (it is then made anew)."""
    try:
        data = json.loads((root / STAMPS / f"{unit}.json").read_text("utf-8"))
        if data["version"] != _VERSION:
            return None
        files = {path: FileState(**state) for path, state in data["files"].items()}
        content = Content(tuple(data["unit_files"]), files)
        return Stamp(data["invocation_id"], content, data["written_ns"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save(unit: str, stamp: Stamp, root: Path = Path("/")) -> None:
    """Write a unit's stamp, readable by root only: digests of secrets are in it."""
    directory = root / STAMPS
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = {
        "version": _VERSION,
        "unit": unit,
        "invocation_id": stamp.invocation,
        "digest": stamp.content.digest,
        "written_ns": stamp.written_ns,
        "unit_files": list(stamp.content.unit_files),
        "files": {path: asdict(state) for path, state in sorted(stamp.content.files.items())},
    }
    atomic.write(directory / f"{unit}.json", (json.dumps(data, indent=1) + "\n").encode(), mode=0o600)
