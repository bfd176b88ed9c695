"""`-e`: the same three spellings Ansible takes (key=value, JSON or YAML, @file), kept out of every argument list.

A value may be a secret. It reaches Ansible in a file that only its owner can read and that is gone after the run; the
receipt holds names and keyed digests only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provision.errors import BadInput
from provision.yamlfiles import VaultText, load, parse


@dataclass(frozen=True)
class ExtraVars:
    """The `-e` options in the order given.

    *sources* holds, per option, either the absolute path of a file or a mapping of variables; *shown* the options as
    they may be printed, with values left out.
    """

    sources: tuple[Path | dict[str, Any], ...] = ()
    shown: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)

    def arguments(self, directory: Path) -> list[str]:
        """Return ansible's arguments, after writing given values into private files under *directory*."""
        arguments: list[str] = []
        for number, source in enumerate(self.sources):
            if isinstance(source, Path):
                path = source
            else:
                path = directory / f"extra-vars-{number}.json"
                path.touch(mode=0o600)
                path.write_text(json.dumps(source, default=_as_json), encoding="utf-8")
            arguments += ["-e", f"@{path}"]
        return arguments


def parse_extra_vars(options: tuple[str, ...]) -> ExtraVars:
    """Read the `-e` options.

    Raises:
        BadInput: a file is missing or broken, or an option holds no mapping. A value is never repeated in a message.

    """
    sources: list[Path | dict[str, Any]] = []
    shown: list[str] = []
    values: dict[str, Any] = {}
    for number, option in enumerate(options, start=1):
        if option.startswith("@"):
            path = Path(option[1:]).expanduser().absolute()
            if not path.is_file():
                raise BadInput(f"-e {option}: no such file")
            data = load(path, str(path))
            # Encrypted as a whole: its names come to light when the site is read.
            data = {} if isinstance(data, VaultText) else data
            _refuse_no_mapping(f"-e {option}", data)
            sources.append(path)
            shown.append(option)
        else:
            data = _given(option, number)
            sources.append(data)
            shown += [f"{name}=..." for name in data]
        values.update(data)
    return ExtraVars(tuple(sources), tuple(shown), values)


def _given(option: str, number: int) -> dict[str, Any]:
    label = f"-e (number {number})"
    if option[:1] in ("/", "."):
        raise BadInput(f"-e {option}: a file is named with a leading @")
    if option[:1] in ("{", "["):
        try:
            data = parse(option, label)
        except BadInput:
            raise BadInput(f"{label}: neither JSON nor YAML") from None
        _refuse_no_mapping(label, data)
        return dict(data)
    # Ansible's own splitter minds quotes and templates; loaded late, because it pulls in much of Ansible.
    from ansible.parsing.splitter import parse_kv

    try:
        data = {str(key): str(value) for key, value in parse_kv(option).items()}
    except Exception:
        raise BadInput(f"{label}: unbalanced quotes or braces") from None
    if not data or "_raw_params" in data:
        raise BadInput(f"{label}: key=value, JSON or @file is wanted")
    return data


def _refuse_no_mapping(label: str, data: Any) -> None:
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise BadInput(f"{label}: a mapping of variable names to values is wanted")


def _as_json(value: Any) -> Any:
    # Ansible's JSON reader knows an encrypted value by this key; what else YAML makes (dates) goes as text.
    return {"__ansible_vault": value.ciphertext} if isinstance(value, VaultText) else str(value)
