"""Judges a phase's checks on one host: passed, failed, or not provable here. Runs on the controller alone."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

PASSED, FAILED, UNPROVABLE, UNJUDGED = "passed", "failed", "not provable", "not judged"
_WAYS = ("wanted", "one_of", "at_least", "contains")
_KEYS = frozenset({"what", "seen", "provable", "reason", *_WAYS})


def judge(check: dict[str, Any], *, lab: bool) -> dict[str, Any]:
    """Judge one check.

    A check compares `seen` in exactly one way: `wanted` (equal), `one_of`, `at_least` (number) or `contains`. A check
    that cannot be proven (`provable: false` with a `reason`) is failed outside the lab: only the lab lacks hardware.
    Raises ValueError on a check that could not fail.
    """
    unknown = sorted(set(check) - _KEYS)
    ways = [way for way in _WAYS if way in check]
    if unknown or not check.get("what") or "seen" not in check or len(ways) != 1:
        raise ValueError(
            f"check {check.get('what')!r}: wanted `what`, `seen` and exactly one of {', '.join(_WAYS)}; "
            f"seen {', '.join(sorted(check))}"
        )
    way, seen, wanted = ways[0], check["seen"], check[ways[0]]
    verdict = {"what": str(check["what"]), "seen": seen, "wanted": wanted, "reason": ""}
    if not boolean(check.get("provable", True)):
        if not check.get("reason"):
            raise ValueError(f"check {check['what']!r}: `provable: false` wants a `reason`")
        return {**verdict, "status": UNPROVABLE if lab else FAILED, "reason": str(check["reason"])}
    if way == "wanted":
        good = seen == wanted
    elif way == "one_of":
        good = seen in wanted
    elif way == "at_least":
        good = seen is not None and float(seen) >= float(wanted)
    else:
        good = set(wanted) <= set(seen or [])
    return {**verdict, "status": PASSED if good else FAILED}


def overall(checks: list[dict[str, Any]]) -> str:
    """The gate's status: the worst of its checks; a gate without checks has proven nothing."""
    statuses = {check["status"] for check in checks}
    if FAILED in statuses or not statuses:
        return FAILED
    return UNPROVABLE if UNPROVABLE in statuses else PASSED


class ActionModule(ActionBase):
    """`spark.plane.gate`: see the module's documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        name, host = str(self._task.args["name"]), str(variables["inventory_hostname"])
        if self._task.check_mode:
            return {**result, "changed": False, "gate": {"name": name, "status": UNJUDGED, "checks": []}}
        lab = boolean(self._templar.template(variables.get("plane_site_is_lab", False)))
        try:
            checks = [judge(dict(check), lab=lab) for check in self._task.args["checks"]]
        except (ValueError, TypeError) as error:
            raise AnsibleActionFail(f"gate {name}: {error}") from error
        status = overall(checks)
        result |= {"changed": False, "gate": {"name": name, "status": status, "checks": checks}}
        if status == FAILED:
            bad = [check for check in checks if check["status"] == FAILED]
            lines = [
                f"{check['what']}: seen {check['seen']!r}, wanted {check['wanted']!r}"
                + (f" ({check['reason']})" if check["reason"] else "")
                for check in bad
            ]
            result |= {"failed": True, "msg": f"gate {name} on {host}: " + ("; ".join(lines) or "no checks")}
        return result
