"""Stops a host's run with the problems found on it, before the first change. Runs on the controller alone."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """`spark.plane.refuse`: see the module's documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = str((task_vars or {})["inventory_hostname"])
        problems = [str(problem) for problem in self._task.args.get("problems") or []]
        if not problems:
            return {**result, "changed": False}
        message = "\n".join(f"{host}: {problem}" for problem in problems)
        return {**result, "changed": False, "failed": True, "bad_input": True, "msg": message}
