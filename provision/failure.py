"""One clear message out of what Ansible says about a task that failed."""

from __future__ import annotations

import re
from typing import Any

# Ansible's own introductions, which say nothing that the message after them does not.
_PREFIXES = re.compile(r"^(?:(?:Task|Module|Action) failed(?::\s*|\.\s*))+")
_SSH_PREFIX = re.compile(r"^(?:Failed to connect to the host via ssh:|Data could not be sent to remote host.*?:)\s*")
# What ssh prints besides the reason.
_SSH_NOISE = re.compile(
    r"^(?:Warning: Permanently added|debug\d:|OpenSSH_|\*\*|@@@|Pseudo-terminal|mux_client|Connection closed by UNKNOWN)"
)
# A message that only announces output which follows elsewhere in the result.
_EMPTY_WORDS = ("non-zero return code", "MODULE FAILURE", "Module result deserialization failed", "Unknown error")
_LINES, _WIDTH = 12, 600

HIDDEN = "its output is hidden, because the task handles secrets (no_log)"


def task_message(result: dict[str, Any]) -> str:
    """Return why a task failed, in a few lines: the module's message, or what its command last said."""
    if "censored" in result:
        return HIDDEN
    items = [item for item in result.get("results") or [] if isinstance(item, dict) and item.get("failed")]
    if items:
        return _short("\n".join(_label(item) + task_message(item) for item in items))
    errors = result.get("argument_errors")
    if isinstance(errors, list) and errors:
        return _short("\n".join(str(error) for error in errors))
    message = _PREFIXES.sub("", _text(result.get("msg") or result.get("reason") or "").strip())
    if not message or message.startswith(_EMPTY_WORDS):
        message = _command_words(result) or message
    return _short(message) or "no reason given"


def unreachable_message(result: dict[str, Any]) -> str:
    """Return why a host was not reached, in ssh's own words."""
    message = _SSH_PREFIX.sub("", _PREFIXES.sub("", _text(result.get("msg") or "").strip()))
    lines = [line.strip() for line in message.splitlines()]
    lines = [line for line in lines if line and not _SSH_NOISE.match(line)] or lines
    return _short("\n".join(lines)) or "no reason given"


def start_message(lines: list[str]) -> str:
    """Return why Ansible ended before its first play, from what it printed: its error, and where that stands."""
    text = [line.rstrip() for line in lines]
    errors = [re.sub(r"^\[?ERROR\]?[:!]*\s*", "", line) for line in text if re.match(r"^\[?ERROR", line)]
    origins = [line.removeprefix("Origin: ") for line in text if line.startswith("Origin: ")]
    message = _PREFIXES.sub("", " ".join(errors)) or " ".join(line for line in text if line)[-_WIDTH:]
    return f"{origins[0]}: {message}" if origins else message or "Ansible ended without a word"


def _command_words(result: dict[str, Any]) -> str:
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        lines = [line.rstrip() for line in _text(result.get(key) or "").splitlines() if line.strip()]
        if lines:
            code = f"exit code {result['rc']}: " if result.get("rc") is not None else ""
            return code + "\n".join(lines[-4:])
    if result.get("rc") is not None:
        return f"exit code {result['rc']}, without a word"
    return f"what it waits for did not come true in {result['attempts']} tries" if "attempts" in result else ""


def _label(item: dict[str, Any]) -> str:
    label = item.get("_ansible_item_label", item.get("item", ""))
    return "" if isinstance(label, (dict, list)) or label == "" else f"{label}: "


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_text(item) for item in value)
    return value if isinstance(value, str) else str(value)


def _short(text: str) -> str:
    lines = [line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..." for line in text.strip().splitlines()]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"... and {len(lines) - _LINES} lines more in ansible.log"]
    return "\n".join(lines)
