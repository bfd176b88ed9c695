"""Variables of a role on every host of the inventory, defaults applied. Runs on the controller alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.variables import RoleFiles, host_variables, templated


class ActionModule(ActionBase):
    """`spark.plane.role_vars`: see the module's documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        role = Path(str(self._task.args["role"]))
        names = [str(name) for name in self._task.args["names"]]
        files = RoleFiles(role.parent, self._loader)
        hosts: dict[str, dict[str, Any]] = {}
        for host in variables["groups"]["all"]:
            own = host_variables(role.name, host, files, variables["hostvars"])
            hosts[host] = {}
            for name, value, error in templated(self._templar, own, names):
                if error:
                    raise AnsibleActionFail(f"{host}: {name} cannot be worked out: {error}")
                hosts[host][name] = value
        return {**result, "changed": False, "hosts": hosts}
