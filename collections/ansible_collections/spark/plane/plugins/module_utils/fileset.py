"""Deciding and doing for `spark.plane.files`: read all, decide all, validate all, and only then write.

Nothing here depends on Ansible, so the tests call it directly.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.spark.plane.plugins.module_utils import atomic
from ansible_collections.spark.plane.plugins.module_utils.filespec import DirectorySpec, FileSpec, Request


class FilesError(Exception):
    """The wanted state cannot be reached; the message has one line per reason."""


@dataclass(frozen=True)
class FileChange:
    """A file whose content, mode or owner differs from what is wanted.

    `before` and `after` are contents, None where there is no file. `rewrite` is False when only mode or owner differ.
    """

    spec: FileSpec
    target: Path
    before: bytes | None
    after: bytes | None
    rewrite: bool
    uid: int = 0
    gid: int = 0
    attributes_before: str = ""
    attributes_after: str = ""


@dataclass(frozen=True)
class DirectoryChange:
    """A directory to create, to correct or to remove."""

    spec: DirectorySpec
    exists: bool
    uid: int = 0
    gid: int = 0
    attributes_before: str = ""
    attributes_after: str = ""


@dataclass
class Plan:
    """Everything one call would change, in the order it would be done."""

    directories: list[DirectoryChange] = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan(request: Request, contents: list[bytes | None], *, check: bool) -> Plan:
    """Compare what is wanted with what is there. Reads only.

    In check mode, what an earlier step of a real run would have made (a parent directory, a user) is noted, not missed.

    Raises:
        FilesError: something in the way, a missing parent, an unknown user.
    """
    if request.problems:
        raise FilesError("\n".join(request.problems))
    result = Plan()
    problems: list[str] = []
    made: set[Path] = set()
    for directory in sorted(request.directories, key=lambda spec: len(spec.path.parts)):
        try:
            change = _plan_directory(directory, made, result.notes, check)
        except (OSError, FilesError) as err:
            problems.append(_reason(err))
            continue
        if directory.present:
            made.add(directory.path)
        if change:
            result.directories.append(change)
    for spec, content in zip(request.files, contents, strict=True):
        try:
            file_change = _plan_file(spec, content, made, result.notes, check)
        except (OSError, FilesError) as err:
            problems.append(_reason(err))
            continue
        if file_change:
            result.files.append(file_change)
    if problems:
        raise FilesError("\n".join(problems))
    return result


def apply(wanted: Plan) -> None:
    """Do what was planned: directories, then all files staged, then all renamed, then removals.

    A full disk or a read-only file system shows while staging, before any file was replaced.

    Raises:
        OSError: from the operating system; what was staged is dropped.
    """
    for change in wanted.directories:
        if change.spec.present:
            if not change.exists:
                change.spec.path.mkdir(mode=0o700)
            os.chown(change.spec.path, change.uid, change.gid)
            change.spec.path.chmod(change.spec.mode)
    staged: list[tuple[Path, Path]] = []
    try:
        for item in wanted.files:
            if item.after is not None and item.rewrite:
                mode = item.spec.mode
                staged.append((atomic.stage(item.target, item.after, mode, item.uid, item.gid), item.target))
        while staged:
            atomic.commit(*staged[0])
            staged.pop(0)
    finally:
        for tmp, _ in staged:
            atomic.discard(tmp)
    for item in wanted.files:
        if item.after is None:
            item.target.unlink(missing_ok=True)
            atomic.sync_directory(item.target.parent)
        elif not item.rewrite:
            os.chown(item.target, item.uid, item.gid)
            item.target.chmod(item.spec.mode)
    for change in reversed(wanted.directories):
        if not change.spec.present:
            _remove_tree(change.spec.path)


def _plan_directory(spec: DirectorySpec, made: set[Path], notes: list[str], check: bool) -> DirectoryChange | None:
    path = spec.path
    if not spec.present:
        if not os.path.lexists(path):
            return None
        if not path.is_symlink():
            if not path.is_dir():
                raise FilesError(f"{path} is not a directory; remove it with a files entry")
            _refuse_mounts(path)
        return DirectoryChange(spec, exists=True, attributes_before="directory", attributes_after="absent")
    uid, gid = _ids(spec.owner, spec.group, str(path), notes, check)
    wanted = _attributes(spec.mode, uid, gid)
    if path.is_dir():
        found = path.stat()
        seen = _attributes(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)
        return None if seen == wanted else DirectoryChange(spec, True, uid, gid, seen, wanted)
    if os.path.lexists(path):
        raise FilesError(f"{path} is in the way: wanted a directory, seen {_kind(path)}")
    _parent(path, made, notes, check)
    return DirectoryChange(spec, False, uid, gid, "absent", wanted)


def with_block(name: str, before: bytes, body: bytes | None) -> bytes:
    """Put one marked block at the top of a file's text, in place of an earlier one; None takes it out.

    At the top, since the first match wins in the files that are shared so (`/etc/hosts`). Lines outside stay as they are.

    Raises:
        FilesError: a begin mark without its end: what belongs to the block cannot be told.
    """
    begin, end = f"# BEGIN {name}".encode(), f"# END {name}".encode()
    kept: list[bytes] = []
    inside = False
    for line in before.splitlines(keepends=True):
        if line.strip() == begin and not inside:
            inside = True
        elif line.strip() == end and inside:
            inside = False
        elif not inside:
            kept.append(line)
    if inside:
        raise FilesError(f"'# BEGIN {name}' has no '# END {name}'; mend the file by hand")
    if body is None:
        return b"".join(kept)
    text = body if body.endswith(b"\n") or not body else body + b"\n"
    return b"".join([begin, b"\n", text, end, b"\n", *kept])


def _plan_file(spec: FileSpec, content: bytes | None, made: set[Path], notes: list[str], check: bool) -> FileChange | None:
    target = spec.dest
    if not spec.present and spec.block is None:
        if not os.path.lexists(target):
            return None
        if target.is_dir() and not target.is_symlink():
            raise FilesError(f"{target} is a directory; remove it with a directories entry")
        before = target.read_bytes() if target.is_file() and not target.is_symlink() else b""
        return FileChange(spec, target, before, None, rewrite=False)
    if not spec.present and not target.is_file():
        return None
    if content is None and spec.present:
        raise FilesError(f"{target}: its content did not arrive; call spark.plane.files, not the module below it")
    if target.is_symlink():
        if not spec.follow:
            raise FilesError(
                f"{target} is a symbolic link to {os.readlink(target)}; remove the link,"
                " or set follow: true to write to where it points"
            )
        target = Path(os.path.realpath(target))
    uid, gid = _ids(spec.owner, spec.group, str(spec.dest), notes, check)
    wanted = _attributes(spec.mode, uid, gid)
    if not os.path.lexists(target):
        _parent(target, made, notes, check)
        content = with_block(spec.block, b"", content) if spec.block else content
        return FileChange(spec, target, None, content, True, uid, gid, "absent", wanted)
    found = target.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise FilesError(f"{target} is in the way: wanted a regular file, seen {_kind(target)}")
    seen = _attributes(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)
    before = target.read_bytes()
    if spec.block:
        try:
            content = with_block(spec.block, before, content)
        except FilesError as err:
            raise FilesError(f"{target}: {err}") from err
    if before == content and seen == wanted:
        return None
    return FileChange(spec, target, before, content, before != content, uid, gid, seen, wanted)


def _parent(path: Path, made: set[Path], notes: list[str], check: bool) -> None:
    """A missing parent is made only when it is listed: a typo in a path must not grow a directory tree."""
    parent = path.parent
    if parent.is_dir() or parent in made:
        return
    if os.path.lexists(parent):
        raise FilesError(f"{parent} is in the way: wanted a directory, seen {_kind(parent)}")
    if not check:
        raise FilesError(f"{path}: its directory {parent} does not exist; list it under directories")
    notes.append(f"{path}: its directory {parent} does not exist yet")


def _ids(owner: str, group: str, where: str, notes: list[str], check: bool) -> tuple[int, int]:
    uid = gid = 0
    try:
        uid = int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        _missing(f"{where}: user {owner} does not exist on this host", notes, check)
    try:
        gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError:
        _missing(f"{where}: group {group} does not exist on this host", notes, check)
    return uid, gid


def _missing(text: str, notes: list[str], check: bool) -> None:
    if not check:
        raise FilesError(text)
    notes.append(f"{text} yet")


def _attributes(mode: int, uid: int, gid: int) -> str:
    return f"mode {mode:04o} owner {uid} group {gid}"


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"a symbolic link to {os.readlink(path)}"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a regular file" if stat.S_ISREG(mode) else "a special file"


def _refuse_mounts(path: Path) -> None:
    """Removing a tree must not reach into another file system (a bind-mounted data directory)."""
    device = path.parent.stat().st_dev
    for top, _, _ in os.walk(path):
        if Path(top).lstat().st_dev != device:
            raise FilesError(f"{path} is not removed: {top} is on another file system")


def _remove_tree(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def _reason(err: OSError | FilesError) -> str:
    return f"{err.filename}: {err.strerror}" if isinstance(err, OSError) else str(err)
