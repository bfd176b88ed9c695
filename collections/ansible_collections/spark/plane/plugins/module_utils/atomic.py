"""Replacing a file so that a reader, or a crash, sees the old content or the new one and nothing between."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

# Hidden, and ending in neither .conf nor .yaml: systemd, sysctl.d and the k3s deploy controller all skip such a name.
_SUFFIX = "spark-plane-tmp"


def stage(dest: Path, content: bytes, mode: int, uid: int, gid: int) -> Path:
    """Write `content` beside `dest` under a temporary name, synced to disk, with its final mode and owner.

    Leftovers of an earlier, killed run for the same `dest` are removed first. The temporary file is created 0600 and
    opened up last, so a secret is at no moment readable by more than its owner.

    Returns:
        The temporary path, to be handed to `commit` or `discard`.

    Raises:
        OSError: the directory cannot be written or the disk is full; nothing is left behind.
    """
    sweep(dest)
    tmp = dest.with_name(f".{dest.name}.{os.getpid()}.{_SUFFIX}")
    descriptor = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            # chown before chmod: chown clears setuid and setgid bits.
            os.fchown(handle.fileno(), uid, gid)
            os.fchmod(handle.fileno(), mode)
            os.fsync(handle.fileno())
    except BaseException as err:
        discard(tmp)
        if isinstance(err, OSError) and err.filename is None:
            # A full disk shows in write or fsync, which know no name.
            err.filename = str(dest)
        raise
    return tmp


def commit(tmp: Path, dest: Path) -> None:
    """Put a staged file in place and make the rename durable."""
    tmp.replace(dest)
    sync_directory(dest.parent)


def discard(tmp: Path) -> None:
    """Drop a staged file."""
    with suppress(FileNotFoundError):
        tmp.unlink()


def sweep(dest: Path) -> None:
    """Remove what killed writers of `dest` left behind; a writer that is still alive keeps its file."""
    pattern = re.compile(rf"\.{re.escape(dest.name)}\.(\d+)\.{_SUFFIX}")
    for name in os.listdir(dest.parent):
        found = pattern.fullmatch(name)
        if found and (int(found[1]) == os.getpid() or not Path("/proc", found[1]).exists()):
            discard(dest.parent / name)


def sync_directory(path: Path) -> None:
    """Flush a directory's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(dest: Path, content: bytes, mode: int = 0o644, uid: int = 0, gid: int = 0) -> None:
    """Stage and commit in one step."""
    tmp = stage(dest, content, mode, uid, gid)
    try:
        commit(tmp, dest)
    except BaseException:
        discard(tmp)
        raise
