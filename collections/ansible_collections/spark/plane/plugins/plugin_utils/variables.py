"""A role's variables as a host will see them, read on the controller before the role runs.

Ansible shows a role's defaults only while the role runs, on the host it runs on. Preflight needs them before, and
`/etc/hosts` needs them of every host, so they are layered here in Ansible's own order: defaults below the inventory,
the inventory below extra variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.yaml import yaml_load
from ansible.template import Templar


class RoleFiles:
    """Reads roles' defaults, specs and dependencies from a roles directory, each file once."""

    def __init__(self, roles: Path, loader: Any) -> None:
        self.roles = roles
        self._loader = loader
        self._defaults: dict[str, dict[str, Any]] = {}
        self._specs: dict[str, dict[str, Any]] = {}

    def names(self) -> list[str]:
        """Every role in the directory, sorted."""
        return sorted(p.name for p in self.roles.iterdir() if (p / "meta").is_dir())

    def _load(self, path: Path, *, template: bool) -> dict[str, Any]:
        if not path.is_file():
            return {}
        loaded = self._loader.load_from_file(str(path), cache="none", trusted_as_template=template)
        if loaded is None:
            return {}
        if not isinstance(loaded, dict):
            raise AnsibleError(f"{path}: wanted a mapping, seen {type(loaded).__name__}")
        return loaded

    def dependencies(self, role: str) -> list[str]:
        """Roles that `role` depends on, itself last."""
        meta = self._load(self.roles / role / "meta" / "main.yml", template=False)
        found: list[str] = []
        for entry in meta.get("dependencies") or []:
            name = entry["role"] if isinstance(entry, Mapping) else entry
            found += [n for n in self.dependencies(str(name)) if n not in found]
        return [*found, role]

    def defaults(self, role: str) -> dict[str, Any]:
        """Defaults of the role and of what it depends on, untemplated."""
        if role not in self._defaults:
            layered: dict[str, Any] = {}
            for name in self.dependencies(role):
                layered |= self._load(self.roles / name / "defaults" / "main.yml", template=True)
            self._defaults[role] = layered
        return self._defaults[role]

    def options(self, role: str) -> dict[str, Any]:
        """The `main` entry point's options of `meta/argument_specs.yml`."""
        if role not in self._specs:
            specs = self._load(self.roles / role / "meta" / "argument_specs.yml", template=False)
            main = (specs.get("argument_specs") or {}).get("main") or {}
            self._specs[role] = main.get("options") or {}
        return self._specs[role]


def host_variables(role: str, host: str, files: RoleFiles, hostvars: Any) -> dict[str, Any]:
    """Untemplated variables of `host` with the defaults of `role` beneath them."""
    return {**files.defaults(role), **hostvars.raw_get(host)}


def templated(templar: Templar, variables: dict[str, Any], names: list[str]) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, value, error): one of value and error is empty. Undefined names are left out."""
    own = templar.copy_with_new_env(available_variables=variables)
    for name in names:
        if name not in variables:
            continue
        try:
            yield name, own.template(variables[name]), ""
        except AnsibleError as error:
            yield name, None, " ".join(str(error).split())


def origin(value: Any) -> str:
    """`file:line` where a value was written, or an empty string where Ansible did not keep it.

    ansible-core keeps the origin as a tag on the value (2.19 and later); the tag's class is internal, so its absence is
    no error: the message then names the variable alone.
    """
    try:
        from ansible._internal._datatag._tags import Origin
    except ImportError:
        return ""
    tag = Origin.get_tag(value)
    if tag is None or not tag.path:
        return ""
    return f"{tag.path}:{tag.line_num}" if tag.line_num else str(tag.path)


def load_yaml(path: Path) -> Any:
    """Parse a YAML file of the project (site.yml, a playbook) without templating it."""
    return yaml_load(path.read_text(encoding="utf-8"))
