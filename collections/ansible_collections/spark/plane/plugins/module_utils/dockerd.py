"""dockerd's two sources of settings, `daemon.json` and its command line.

dockerd refuses to start when a key stands in both ("the following directives are specified both as a flag and in the
configuration file"), so the flags are named here as `daemon.json` names them. Only `runtimes` may stand in both; it is
merged (`skipDuplicates` in moby, daemon/config/config.go).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.spark.plane.plugins.module_utils.unitfile import Word

CONFIG = "/etc/docker/daemon.json"

MERGED_KEYS = ("runtimes",)
"""Keys that dockerd accepts in both places."""

# Flags whose daemon.json key is another word, or that may be repeated (moby, cmd/dockerd/config*.go).
_LISTS = {
    "add-runtime": "runtimes",
    "allow-nondistributable-artifacts": "allow-nondistributable-artifacts",
    "authorization-plugin": "authorization-plugins",
    "cdi-spec-dir": "cdi-spec-dirs",
    "cluster-store-opt": "cluster-store-opts",
    "default-address-pool": "default-address-pools",
    "default-network-opt": "default-network-opts",
    "default-ulimit": "default-ulimits",
    "dns": "dns",
    "dns-opt": "dns-opts",
    "dns-search": "dns-search",
    "exec-opt": "exec-opts",
    "feature": "features",
    "host": "hosts",
    "host-gateway-ip": "host-gateway-ips",
    "insecure-registry": "insecure-registries",
    "label": "labels",
    "log-opt": "log-opts",
    "node-generic-resource": "node-generic-resources",
    "registry-mirror": "registry-mirrors",
    "storage-opt": "storage-opts",
}
_SHORT = {
    "b": "bridge",
    "D": "debug",
    "G": "group",
    "g": "data-root",
    "H": "host",
    "l": "log-level",
    "p": "pidfile",
    "s": "storage-driver",
}
_RENAMED = {"graph": "data-root"}
# Flags that take no value of their own; everything else takes the next word when no `=` is in it.
_BOOLEANS = frozenset({
    "allow-direct-routing", "bridge-accept-fwmark", "debug", "disable-legacy-registry", "experimental", "help", "icc",
    "init", "ip-forward", "ip-forward-no-drop", "ip-masq", "ip6tables", "iptables", "ipv6", "live-restore",
    "no-new-privileges", "no-proxy-env", "raw-logs", "rootless", "selinux-enabled", "tls", "tlsverify",
    "userland-proxy", "validate", "version",
})  # fmt: skip
# Not settings: they say where settings are, or end dockerd at once.
_NOT_KEYS = frozenset({"config-file", "validate", "version", "help"})


def flags(words: Sequence[Word]) -> tuple[dict[str, dict[str, Any]], str]:
    """The settings on a command line, by `daemon.json` key, and the configuration file it names.

    Returns:
        `{"data-root": {"value": "/data", "where": "/etc/.../override.conf:3", "flag": "--data-root", "merged": False}}`
        (a list for flags that repeat, `where` then the first one's place) and the path of `daemon.json`.
    """
    found: dict[str, dict[str, Any]] = {}
    config = CONFIG
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            break
        for name, value in _options(word, rest):
            if name == "config-file":
                config = str(value)
            if name in _NOT_KEYS:
                continue
            key = _LISTS.get(name) or _RENAMED.get(name, name)
            entry = found.setdefault(
                key, {"value": None, "where": word.where, "flag": f"--{name}", "merged": key in MERGED_KEYS}
            )
            if name in _LISTS:
                entry["value"] = [*(entry["value"] or []), value]
            else:
                entry.update(value=value, where=word.where)
    return found, config


def _options(word: Word, rest: list[Word]) -> list[tuple[str, Any]]:
    """The long names and values one word stands for; takes a value from `rest` when it needs one."""
    text = word.text
    if text.startswith("--"):
        name, has_value, value = text[2:].partition("=")
        return [(name, _value(name, value if has_value else None, rest))]
    if not text.startswith("-") or text == "-":
        return []
    options: list[tuple[str, Any]] = []
    letters = text[1:]
    while letters:
        name = _SHORT.get(letters[0], letters[0])
        letters = letters[1:]
        if name in _BOOLEANS and not letters.startswith("="):
            options.append((name, True))
            continue
        # -Hunix:///x, -H=unix:///x and -H unix:///x are one and the same.
        options.append((name, _value(name, letters.removeprefix("=") or None, rest)))
        break
    return options


def _value(name: str, given: str | None, rest: list[Word]) -> Any:
    if name in _BOOLEANS:
        return given is None or given.lower() in ("1", "t", "true")
    if given is not None:
        return given
    return rest.pop(0).text if rest else ""


def daemon_json(path: str, root: Path = Path("/")) -> dict[str, Any]:
    """Read `daemon.json` without judging its keys; what is wrong with it is said with line and column."""
    facts: dict[str, Any] = {"path": path, "exists": False, "content": None, "error": None, "sha256": None}
    try:
        raw = (root / path.lstrip("/")).read_bytes()
    except FileNotFoundError:
        return facts
    except OSError as err:
        return {**facts, "exists": True, "error": f"{path}: {err.strerror}"}
    facts.update(exists=True, sha256=hashlib.sha256(raw).hexdigest())
    if not raw.strip():
        # dockerd takes an empty file for an empty object.
        return {**facts, "content": {}}
    try:
        content = json.loads(raw)
    except json.JSONDecodeError as err:
        return {**facts, "error": f"{path} is not JSON: {err.msg} at line {err.lineno} column {err.colno}"}
    except UnicodeDecodeError as err:
        return {**facts, "error": f"{path} is not UTF-8 text: {err.reason} at byte {err.start}"}
    if not isinstance(content, dict):
        return {**facts, "error": f"{path} holds a {type(content).__name__}; wanted an object at line 1 column 1"}
    return {**facts, "content": content}
