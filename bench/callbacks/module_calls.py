"""Ansible callback that writes down, as JSON lines, each task result and each module that really ran on a host.

The file is $SPARK_PLANE_BENCH_LOG. A module call is recorded where Ansible makes it, in the worker process, so an action
that runs three modules on a host counts three times, one that runs none counts none, and a task delegated to the
controller counts apart (`on_host` is false).
"""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: module_calls
type: aggregate
short_description: Records module calls for the no-op benchmark
description: Writes one JSON object a line to the file named by SPARK_PLANE_BENCH_LOG.
"""

_LOG = os.environ.get("SPARK_PLANE_BENCH_LOG", os.devnull)


def _write(**record: Any) -> None:
    """Append one line; a short write with O_APPEND is whole, whichever process makes it."""
    descriptor = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, (json.dumps(record) + "\n").encode())
    finally:
        os.close(descriptor)


_execute_module = ActionBase._execute_module


def _recorded(self: Any, module_name: str | None = None, *args: Any, **kwargs: Any) -> Any:
    _write(
        kind="module",
        host=str((kwargs.get("task_vars") or {}).get("inventory_hostname", "")) or None,
        module=module_name or self._task.action,
        action=self._task.action,
        on_host=getattr(self._connection, "transport", "") != "local",
    )
    return _execute_module(self, module_name, *args, **kwargs)


ActionBase._execute_module = _recorded


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Writes task results."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "module_calls"
    CALLBACK_NEEDS_ENABLED = True

    def _result(self, outcome: str, result: Any) -> None:
        host = getattr(result, "host", None) or result._host
        task = getattr(result, "task", None) or result._task
        data = getattr(result, "result", None) or result._result
        _write(
            kind="task",
            outcome=outcome,
            host=host.get_name(),
            uuid=task._uuid,
            name=task.get_name(),
            action=task.action,
            changed=bool(data.get("changed")),
        )

    def v2_runner_on_ok(self, result: Any) -> None:
        """Record a task that went well."""
        self._result("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Record a task that failed."""
        self._result("failed", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Record a host that was not reached."""
        self._result("unreachable", result)
