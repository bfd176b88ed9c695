"""YAML as Ansible reads it, far enough to find mistakes before Ansible starts: `!vault` and `!unsafe` are understood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from provision.errors import BadInput

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VAULT_HEADER = "$ANSIBLE_VAULT;"


@dataclass(frozen=True)
class VaultText:
    """An encrypted value as it stands in a file; *line* counts from 1."""

    ciphertext: str
    line: int


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader plus Ansible's own tags."""


def _vault(loader: Any, node: Any) -> VaultText:
    return VaultText(loader.construct_scalar(node), node.start_mark.line + 1)


def _plain(loader: Any, node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


for _tag in ("!vault", "!vault-encrypted"):
    _Loader.add_constructor(_tag, _vault)
_Loader.add_constructor("!unsafe", _plain)


def parse(text: str, shown_as: str) -> Any:
    """Return the one YAML document in *text*.

    Raises:
        BadInput: it is no YAML; the message names *shown_as*, the line and the column (both from 1).

    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{shown_as}:{mark.line + 1}:{mark.column + 1}" if mark else shown_as
        what = error.problem or error.context or "cannot be read"
        raise BadInput(f"{where}: broken YAML: {what}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{shown_as}: broken YAML: {str(error).splitlines()[0]}") from None


def load(path: Path, shown_as: str) -> Any:
    """Return what the YAML file *path* holds; a file encrypted as a whole comes back as one VaultText.

    Raises:
        BadInput: it cannot be read, or is no YAML.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown_as}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise BadInput(f"{shown_as}: {error.strerror}") from None
    if text.startswith(VAULT_HEADER):
        return VaultText(text, 1)
    return parse(text, shown_as)


def vault_texts(value: Any) -> list[VaultText]:
    """Return every encrypted value inside *value*."""
    if isinstance(value, VaultText):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in vault_texts(item)]
    if isinstance(value, list):
        return [found for item in value for found in vault_texts(item)]
    return []


def strings(value: Any) -> list[str]:
    """Return every scalar inside *value* as text (booleans and nothing left out)."""
    if isinstance(value, dict):
        return [found for item in value.values() for found in strings(item)]
    if isinstance(value, list):
        return [found for item in value for found in strings(item)]
    return [] if value is None or isinstance(value, (bool, VaultText)) else [str(value)]
