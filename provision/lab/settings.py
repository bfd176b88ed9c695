"""Keeps the copied sysctls of a host one line long.

The kernel takes each write to a sysctl as the whole new value; a copied setting is a plain file, where a shorter value
leaves the tail of the old one behind it unless the writer truncates, and systemd-sysctl does not. So the process that
waits for the host's init also watches the copies and cuts each, once it was written, after its first line.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
from pathlib import Path

# <sys/inotify.h>
_IN_CLOSE_WRITE = 0x8
_EVENT = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)


def cut(path: Path) -> None:
    """Cut a file after its first line."""
    end = path.read_bytes().find(b"\n") + 1
    if end and path.stat().st_size > end:
        os.truncate(path, end)


def watch(store: int, init: int) -> None:
    """Cut written settings below the directory descriptor `store` until the process `init` ends.

    Works by relative paths in that directory: the caller's root is the host's by now. Returns at once where the kernel
    offers no inotify: the settings then behave as plain files.
    """
    os.fchdir(store)
    notify = _libc.inotify_init1(os.O_CLOEXEC)
    if notify < 0:
        return
    device = os.fstat(store).st_dev
    directories: dict[int, Path] = {}
    for name, below, _ in os.walk("."):
        # Real settings bound among the copies are the kernel's own business.
        below[:] = [entry for entry in below if os.stat(Path(name, entry)).st_dev == device]  # noqa: PTH116
        watched = _libc.inotify_add_watch(notify, os.fsencode(name), _IN_CLOSE_WRITE)
        if watched >= 0:
            directories[watched] = Path(name)
    ended = os.pidfd_open(init)
    while True:
        ready, _, _ = select.select([notify, ended], [], [])
        if notify in ready:
            _handle(os.read(notify, 65536), directories)
        if ended in ready:
            return


def _handle(events: bytes, directories: dict[int, Path]) -> None:
    offset = 0
    while offset < len(events):
        watched, _, _, length = _EVENT.unpack_from(events, offset)
        offset += _EVENT.size
        name = events[offset : offset + length].rstrip(b"\0").decode()
        offset += length
        if name and watched in directories:
            # Gone again, or a setting that is no text: nothing to cut.
            with contextlib.suppress(OSError):
                cut(directories[watched] / name)
