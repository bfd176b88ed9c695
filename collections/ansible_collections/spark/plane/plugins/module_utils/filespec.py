"""What `spark.plane.files` is asked for, checked in full before anything is rendered or touched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = ("template", "content", "src", "json")
_FILE_KEYS = {*SOURCES, "dest", "mode", "owner", "group", "validate", "state", "secret", "follow", "block"}
_DIRECTORY_KEYS = {"path", "mode", "owner", "group", "state"}
_MODE = re.compile(r"0?[0-7]{3,4}")
_BLOCK = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]*")


@dataclass(frozen=True)
class FileSpec:
    """One wanted file. `source` names which key carries the content; None when the file shall be absent.

    With `block` the content is one marked block at the top of a file that others also own.
    """

    dest: Path
    source: str | None
    mode: int
    owner: str
    group: str
    validate: str | None
    present: bool
    secret: bool
    follow: bool
    block: str | None = None


@dataclass(frozen=True)
class DirectorySpec:
    """One wanted directory."""

    path: Path
    mode: int
    owner: str
    group: str
    present: bool


@dataclass(frozen=True)
class Request:
    """All entries of one call, and one line for each thing wrong with them."""

    files: tuple[FileSpec, ...]
    directories: tuple[DirectorySpec, ...]
    problems: tuple[str, ...]


def parse(files: Any, directories: Any, *, packed: bool = False) -> Request:
    """Check the arguments of one call.

    Args:
        files: the `files` argument as given.
        directories: the `directories` argument as given.
        packed: contents travel beside the entries (on the host), so an entry names no source.
    """
    problems: list[str] = []
    wanted_files = [
        spec
        for index, entry in enumerate(_entries(files, "files", problems))
        if (spec := _file(entry, f"files[{index}]", problems, packed))
    ]
    wanted_directories = [
        wanted
        for index, entry in enumerate(_entries(directories, "directories", problems))
        if (wanted := _directory(entry, f"directories[{index}]", problems))
    ]
    seen: set[Path] = set()
    for path in [spec.dest for spec in wanted_files] + [spec.path for spec in wanted_directories]:
        if path in seen:
            problems.append(f"{path} is listed twice; each path belongs to one entry")
        seen.add(path)
    return Request(tuple(wanted_files), tuple(wanted_directories), tuple(problems))


def kind(value: Any) -> str:
    """What a value is, in words (its Python type would say `_AnsibleTaggedDict`)."""
    if value is None:
        return "null"
    for types, word in (
        (bool, "a boolean"),
        (str, "text"),
        ((int, float), "a number"),
        (Mapping, "a mapping"),
        (Sequence, "a list"),
    ):
        if isinstance(value, types):  # type: ignore[arg-type]
            return word
    return f"a {type(value).__name__.removeprefix('_AnsibleTagged').lower()}"


def _entries(value: Any, where: str, problems: list[str]) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, Sequence) or isinstance(value, str):
        problems.append(f"{where} is {kind(value)}; wanted a list of entries")
        return []
    entries: list[Mapping[str, Any]] = []
    for index, entry in enumerate(value):
        if isinstance(entry, Mapping):
            entries.append({key: item for key, item in entry.items() if item is not None or key in SOURCES})
        else:
            problems.append(f"{where}[{index}] is {kind(entry)}; wanted a mapping")
    return entries


def _file(entry: Mapping[str, Any], where: str, problems: list[str], packed: bool) -> FileSpec | None:
    before = len(problems)
    dest = _path(entry, "dest", where, problems)
    where = f"{where} ({dest})" if dest else where
    _unknown(entry, _FILE_KEYS, where, problems)
    present = _present(entry, where, problems)
    # A source whose value is None counts as given for `json` (null is a document) but not for the others.
    sources = [key for key in SOURCES if key in entry and (entry[key] is not None or key == "json")]
    if packed:
        sources = []
    elif present and len(sources) != 1:
        problems.append(f"{where}: exactly one of {', '.join(SOURCES)} is wanted, seen {_listed(sources)}")
    elif not present and sources:
        problems.append(f"{where}: state absent takes no {_listed(sources)}")
    validate = entry.get("validate")
    if validate is not None and (not isinstance(validate, str) or "%s" not in validate):
        problems.append(f"{where}: validate must be a command with %s where the file's path goes, seen {validate!r}")
    block = entry.get("block")
    if block is not None and (not isinstance(block, str) or not _BLOCK.fullmatch(block)):
        problems.append(f"{where}: block must be a name of letters, digits, spaces and dashes, seen {block!r}")
    mode, owner, group = _attributes(entry, "0644", where, problems)
    secret = _boolean(entry, "secret", where, problems)
    follow = _boolean(entry, "follow", where, problems)
    if len(problems) > before or dest is None:
        return None
    source = sources[0] if sources else None
    return FileSpec(dest, source, mode, owner, group, validate, present, secret, follow, block)


def _directory(entry: Mapping[str, Any], where: str, problems: list[str]) -> DirectorySpec | None:
    before = len(problems)
    path = _path(entry, "path", where, problems)
    where = f"{where} ({path})" if path else where
    _unknown(entry, _DIRECTORY_KEYS, where, problems)
    present = _present(entry, where, problems)
    mode, owner, group = _attributes(entry, "0755", where, problems)
    if not present and path is not None and len(path.parts) < 3:
        problems.append(f"{where}: a top-level directory is never removed")
    if len(problems) > before or path is None:
        return None
    return DirectorySpec(path, mode, owner, group, present)


def _path(entry: Mapping[str, Any], key: str, where: str, problems: list[str]) -> Path | None:
    value = entry.get(key)
    if not isinstance(value, str) or not value.startswith("/") or ".." in value.split("/") or "\0" in value:
        problems.append(f"{where}: {key} must be an absolute path without '..', seen {value!r}")
        return None
    return Path(str(value))


def _attributes(entry: Mapping[str, Any], mode: str, where: str, problems: list[str]) -> tuple[int, str, str]:
    text = entry.get("mode", mode)
    if not isinstance(text, str) or not _MODE.fullmatch(text):
        # An unquoted 0644 arrives as the number 420.
        problems.append(f"{where}: mode must be a quoted octal string such as '{mode}', seen {text!r}")
        text = mode
    names = []
    for key in ("owner", "group"):
        name = entry.get(key, "root")
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            problems.append(f"{where}: {key} must be a name or a number, seen {name!r}")
            name = "root"
        names.append(str(name))
    return int(text, 8), names[0], names[1]


def _present(entry: Mapping[str, Any], where: str, problems: list[str]) -> bool:
    state = entry.get("state", "present")
    if state not in ("present", "absent"):
        problems.append(f"{where}: state must be present or absent, seen {state!r}")
    return bool(state != "absent")


def _boolean(entry: Mapping[str, Any], key: str, where: str, problems: list[str]) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        problems.append(f"{where}: {key} must be true or false, seen {value!r}")
    return bool(value)


def _unknown(entry: Mapping[str, Any], known: set[str], where: str, problems: list[str]) -> None:
    extra = sorted(str(key) for key in entry if key not in known)
    if extra:
        problems.append(f"{where}: unknown key {', '.join(extra)}; known are {', '.join(sorted(known))}")


def _listed(names: list[str]) -> str:
    return " and ".join(names) if names else "none"
