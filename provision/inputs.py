"""What a run was made from: the digest of every file that decides its outcome, and of every extra variable."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provision.extravars import ExtraVars
from provision.files import private_dir, write_private
from provision.project import Project
from provision.receipt import Inputs
from provision.site import STATE, Site

_SKIPPED_DIRECTORIES = frozenset({STATE, "__pycache__", ".git", ".ansible", ".cache"})
_SKIPPED_SUFFIXES = frozenset({".pyc", ".retry", ".swp"})


def read_inputs(project: Project, site: Site, extra_vars: ExtraVars) -> Inputs:
    """Return the digests of *site* and the project's order, playbooks, roles, collections and settings.

    Values of extra variables are digested under a key the site keeps for itself: a short value cannot be guessed back
    from a receipt.
    """
    files = {project.shown(path): _digest(path) for path in _input_files(project, site)}
    variables: dict[str, str] = {}
    if extra_vars.sources:
        key = _key(site)
        variables = {name: _keyed(key, value) for name, value in sorted(extra_vars.values.items())}
        for source in extra_vars.sources:
            if isinstance(source, Path):
                variables[f"@{project.shown(source)}"] = _digest(source)
    whole = hashlib.sha256(json.dumps([files, variables], sort_keys=True).encode()).hexdigest()
    return Inputs(whole, files, variables)


def differences(before: Inputs, now: Inputs) -> list[str]:
    """Return one line per file or variable that is not what it was; none when nothing has changed."""
    lines = _compare("file", before.files, now.files)
    # A variable file that changed shows its variables too: name the file alone where it stands for all of them.
    return lines + _compare("variable", before.variables, now.variables)


def _compare(kind: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    lines = []
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            lines.append(f"{kind} {name}: was given then, is not now")
        elif name not in before:
            lines.append(f"{kind} {name}: is new")
        elif before[name] != now[name]:
            lines.append(f"{kind} {name}: changed")
    return lines


def _input_files(project: Project, site: Site) -> Iterator[Path]:
    for path in (project.site_yml, project.ansible_cfg):
        if path.is_file():
            yield path
    for directory in (
        site.path,
        project.root / "playbooks",
        project.root / "roles",
        project.root / "collections",
    ):
        yield from _files_below(directory)


def _files_below(top: Path) -> Iterator[Path]:
    for directory, subdirectories, names in os.walk(top):
        subdirectories[:] = sorted(set(subdirectories) - _SKIPPED_DIRECTORIES)
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix not in _SKIPPED_SUFFIXES and path.is_file():
                yield path


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _keyed(key: bytes, value: Any) -> str:
    return hmac.new(key, json.dumps(value, sort_keys=True, default=str).encode(), hashlib.sha256).hexdigest()


def _key(site: Site) -> bytes:
    path = private_dir(site.state) / "digest.key"
    if not path.is_file():
        write_private(path, secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text().strip())
