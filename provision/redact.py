"""Secrets are taken out of everything that is kept or shown.

Known secrets are the values given with `-e`, every value the site keeps encrypted, and the site's own secrets file,
which roles may fill during the run. What tasks mark `no_log` never gets this far (events.py).
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from provision.errors import BadInput
from provision.yamlfiles import load, strings

# Shorter values would blank out ordinary words; no secret worth the name is as short.
SHORTEST = 6
_VERSION = re.compile(r"v?\d+(\.\d+)+([-+~.][\w.+~-]*)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?[kKmMgGtT]?i?[bB]?")


class Redactor:
    """Replaces secrets in text and in plain data. *secrets_file* is read again whenever it has changed."""

    def __init__(self, secrets_file: Path | None = None) -> None:
        self._labels: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._file = secrets_file
        self._seen: tuple[int, int] | None = None

    def add(self, label: str, values: Iterable[Any]) -> None:
        """Count the scalars in *values* as secrets, to be shown as `<label>`."""
        for value in (text for item in values for text in strings(item)):
            for form in _forms(value):
                self._labels.setdefault(form, f"<{label}>")
        self._pattern = None

    def text(self, text: str) -> str:
        """Return *text* without secrets."""
        self._refresh()
        if not self._labels:
            return text
        if self._pattern is None:
            longest_first = sorted(self._labels, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern.sub(lambda match: self._labels[match[0]], text)

    def data(self, value: Any) -> Any:
        """Return *value* (mappings, lists, scalars) without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and self.text(str(value)) != str(value):
            return self.text(str(value))
        return value

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            stat = self._file.stat()
        except OSError:
            return
        if (stat.st_mtime_ns, stat.st_size) != self._seen:
            self._seen = (stat.st_mtime_ns, stat.st_size)
            try:
                self.add("secret of the site", [load(self._file, self._file.name)])
            except BadInput:
                return


def _forms(value: str) -> Iterable[str]:
    """Return the spellings of *value* that output may hold: as is, line by line, in JSON, in base64."""
    if len(value) < SHORTEST or not _may_be_secret(value):
        return
    yield value
    for line in value.splitlines():
        if len(line.strip()) >= SHORTEST and not line.startswith("-----"):
            yield line.strip()
    yield json.dumps(value)[1:-1]
    yield base64.b64encode(value.encode()).decode()


def _may_be_secret(value: str) -> bool:
    """Return False for what is plainly something else, so that messages stay readable."""
    if value.lower() in ("disabled", "enabled", "default", "present", "absent"):
        return False
    if _VERSION.fullmatch(value) or (_NUMBER.fullmatch(value) and len(value) < 8):
        return False
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return not (value.startswith("/") and Path(value).exists())
    return False
