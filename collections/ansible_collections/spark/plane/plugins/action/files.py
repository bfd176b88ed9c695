"""Renders the contents of `spark.plane.files` on the controller and hands them to the module in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.template import trust_as_template
from ansible_collections.spark.plane.plugins.module_utils.filespec import FileSpec, kind, parse
from ansible_collections.spark.plane.plugins.module_utils.packing import pack

SRC_LIMIT = 1 << 20
"""Bytes of one `src` file. Larger things are artifacts and travel by their own role."""

# What M(ansible.builtin.template) uses, so a template reads the same in both.
_OVERRIDES = {"trim_blocks": True, "lstrip_blocks": False, "newline_sequence": "\n"}


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's documentation; this half runs on the controller."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("files", "directories"))

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Check the arguments, render, and run the module."""
        variables = task_vars or {}
        super().run(tmp, variables)
        files = self._task.args.get("files") or []
        directories = self._task.args.get("directories") or []
        request = parse(files, directories)
        if request.problems:
            return {"failed": True, "changed": False, "msg": "\n".join(request.problems)}
        contents = [self._content(spec, entry, variables) for spec, entry in zip(request.files, files, strict=True)]
        arguments = {
            "files": [_file_entry(spec) for spec in request.files],
            "directories": [_plain(entry, "directories") for entry in directories],
            "packed": pack(contents),
        }
        result: dict[str, Any] = self._execute_module(
            module_name="spark.plane.files", module_args=arguments, task_vars=variables
        )
        return result

    def _content(self, spec: FileSpec, entry: Mapping[str, Any], variables: dict[str, Any]) -> bytes | None:
        if spec.source is None:
            return None
        value = entry[spec.source]
        if spec.source == "json":
            document = _plain(value, f"{spec.dest}: json")
            return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
        if spec.source == "content":
            return _text(value, f"content of {spec.dest}").encode()
        if spec.source == "src":
            return self._src(spec, str(value))
        return self._template(spec, str(value), variables)

    def _src(self, spec: FileSpec, name: str) -> bytes:
        try:
            path = Path(self._loader.get_real_file(self._find_needle("files", name)))
            size = path.stat().st_size
            content = path.read_bytes() if size <= SRC_LIMIT else b""
        except (AnsibleError, OSError) as err:
            raise AnsibleActionFail(f"{spec.dest}: src {name} cannot be read") from err
        if size > SRC_LIMIT:
            raise AnsibleActionFail(f"{spec.dest}: src {name} has {size} bytes, at most {SRC_LIMIT} are sent")
        return content

    def _template(self, spec: FileSpec, name: str, variables: dict[str, Any]) -> bytes:
        host = variables.get("inventory_hostname", "this host")
        where = f"template {name} for {spec.dest} on {host}"
        try:
            source = self._find_needle("templates", name)
            text = trust_as_template(self._loader.get_text_file_contents(source))
            roots = [*variables.get("ansible_search_path", []), self._loader.get_basedir(), str(Path(source).parent)]
            paths = [path for root in roots for path in (str(Path(root, "templates")), root)]
            templar = self._templar.copy_with_new_env(searchpath=paths, available_variables=variables)
            rendered = templar.template(text, escape_backslashes=False, overrides=_OVERRIDES)
        except AnsibleError as err:
            raise AnsibleActionFail(f"{where} cannot be rendered") from err
        return _text("" if rendered is None else rendered, where).encode()


def _file_entry(spec: FileSpec) -> dict[str, Any]:
    """The entry as the module sees it: no content, so nothing to leak into its invocation."""
    return {
        "dest": str(spec.dest),
        "mode": f"{spec.mode:04o}",
        "owner": spec.owner,
        "group": spec.group,
        "validate": spec.validate,
        "state": "present" if spec.present else "absent",
        "secret": spec.secret,
        "follow": spec.follow,
        "block": spec.block,
    }


def _text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise AnsibleActionFail(f"{where} is {kind(value)}; wanted text (json: writes any value as JSON)")


def _plain(value: Any, where: str) -> Any:
    """Turn Ansible's tagged and lazy values into plain ones, and refuse what JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        plain = {}
        for key, item in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise AnsibleActionFail(f"{where}: key {key!r} is {kind(key)}; JSON keys are text")
            plain[str(key)] = _plain(item, f"{where}.{key}")
        return plain
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise AnsibleActionFail(f"{where} is {kind(value)}, which JSON cannot hold")
