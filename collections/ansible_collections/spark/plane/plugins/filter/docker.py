"""Filters for Docker's daemon.json: merge layers, name conflicts with the command line, place a version in a range."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Keys whose list items are `name=value`: a later layer's value of a name replaces an earlier one.
_NAMED_ITEMS = frozenset({"exec-opts", "storage-opts", "labels"})


def _items(key: str, below: list[Any], above: list[Any]) -> list[Any]:
    """Union of two lists, the lower layer's items first; of `name=value` items only the upper one is kept."""
    if key in _NAMED_ITEMS:
        replaced = {str(item).partition("=")[0] for item in above}
        below = [item for item in below if str(item).partition("=")[0] not in replaced]
    return [*below, *(item for item in above if item not in below)]


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    # No deepcopy: Ansible's lazy values hold the whole templar, and nothing nested is changed in place here.
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _over(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = _items(key, old, value)
        else:
            merged[key] = value
    return merged


def daemon_merge(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge daemon.json layers, the first lowest: mappings deep, lists as unions, a null takes the key out."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _over(merged, layer)
    return merged


def daemon_conflicts(merged: Mapping[str, Any], flags: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Keys that stand both in daemon.json and on dockerd's command line: dockerd then refuses to start.

    `flags` is what `spark.plane.docker_facts` found: key -> {value, where, merged}; dockerd merges some keys itself.
    """
    return [
        f"key {key!r} of daemon.json ({merged[key]!r}) is also on dockerd's command line in {flag['where']} "
        f"({flag['value']!r}); dockerd does not start with both: remove it there"
        for key, flag in sorted(flags.items())
        if key in merged and not flag.get("merged")
    ]


def _numbers(version: str) -> tuple[int, ...]:
    """Leading numbers of a version; an epoch is dropped: `5:28.3.2-1~ubuntu` -> (28, 3, 2)."""
    found = re.match(r"\d+(\.\d+)*", re.sub(r"^\d+:", "", version))
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def engine_support(version: str, pin: Mapping[str, Any]) -> str:
    """Where an engine version stands against `pins_docker_engine`: supported, unproven, or outside.

    `minimum` is compared as far as it is written, `maximum` covers every release of its major.
    """
    seen = _numbers(version)
    lowest, highest = _numbers(str(pin["minimum"])), _numbers(str(pin["maximum"]))
    if not seen or seen < lowest or seen[: len(highest)] > highest:
        return "outside"
    return "unproven" if str(seen[0]) in [str(major) for major in pin.get("unproven") or []] else "supported"


def api_serves(wanted: str, lowest: str | None, highest: str | None) -> bool:
    """Whether API version `wanted` lies in the daemon's range, ends included."""
    if not lowest or not highest:
        return False
    return _numbers(lowest) <= _numbers(wanted) <= _numbers(highest)


class FilterModule:
    """Filters of `spark.plane` for Docker."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Names as templates use them."""
        return {
            "daemon_merge": daemon_merge,
            "daemon_conflicts": daemon_conflicts,
            "engine_support": engine_support,
            "api_serves": api_serves,
        }
