"""Installed Debian packages, read from dpkg's own file: a fifth of the CPU of a `dpkg-query` process."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

STATUS = Path("var/lib/dpkg/status")
UPDATES = Path("var/lib/dpkg/updates")

_FIELD = re.compile(rb"^(Status|Version|Architecture): (.*)$", re.MULTILINE)
_GLOB = frozenset("*?[")


@dataclass(frozen=True)
class Package:
    """One package. `version` is None when it is not (fully) installed; `held` is dpkg's selection."""

    version: str | None
    held: bool
    architecture: str | None = None


@dataclass(frozen=True)
class Query:
    """The answer to a list of names and patterns."""

    packages: dict[str, Package]
    matched: dict[str, list[str]]
    interrupted: bool


def query(names: Iterable[str], root: Path = Path("/")) -> Query:
    """Look up packages by name, or by shell pattern among the installed ones.

    A package that is installed for several architectures is reported once. `interrupted` is true when dpkg was killed in
    the middle: it then refuses work until `dpkg --configure -a`.
    """
    wanted = list(names)
    exact = {name for name in wanted if not _GLOB & set(name)}
    patterns = {name: re.compile(translate(name)) for name in wanted if name not in exact}
    packages = {name: Package(None, held=False) for name in wanted if name in exact}
    matched: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    try:
        data = (root / STATUS).read_bytes()
    except FileNotFoundError:
        data = b""
    for stanza in data.split(b"\n\n"):
        stanza = stanza.lstrip(b"\n")
        if not stanza.startswith(b"Package: "):
            continue
        name = stanza[9 : stanza.find(b"\n")].decode("ascii", "replace").strip()
        hits = [pattern for pattern, compiled in patterns.items() if compiled.match(name)]
        if name not in exact and not hits:
            continue
        package = _package(stanza)
        if package.version is None and name in packages and packages[name].version is not None:
            continue
        if name in exact or package.version is not None:
            packages[name] = package
        for pattern in hits:
            if package.version is not None and name not in matched[pattern]:
                matched[pattern].append(name)
    updates = root / UPDATES
    interrupted = updates.is_dir() and any(entry.name.isdigit() for entry in updates.iterdir())
    return Query(packages, {pattern: sorted(found) for pattern, found in matched.items()}, interrupted)


def _package(stanza: bytes) -> Package:
    fields = {key: value.decode("utf-8", "replace").strip() for key, value in _FIELD.findall(stanza)}
    selection, _, rest = fields.get(b"Status", "").partition(" ")
    installed = rest.endswith(" installed") and rest.startswith("ok")
    return Package(
        version=fields.get(b"Version") if installed else None,
        held=selection == "hold",
        architecture=fields.get(b"Architecture"),
    )
