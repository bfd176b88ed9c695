"""The receipt of a run: `runs/<id>/receipt.json`.

The running command's only state: the table shows it, and it is written whole at every step, so that it is valid after
a kill at any point. `receipt.schema.json` beside this file is its schema; a change that a reader could stumble over
raises SCHEMA_VERSION.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provision.errors import BadInput
from provision.files import write_private

SCHEMA_VERSION = 1

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
BAD_INPUT, UNREACHABLE = "bad input", "unreachable"
PENDING = "pending"
PASSED, NOT_PROVABLE, NOT_JUDGED = "passed", "not provable", "not judged"


def now() -> str:
    """Return the time as receipts write it: UTC, RFC 3339, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Counts:
    """Task results of one host in one phase, counted as Ansible's recap does: changed ones are among ok."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0

    @property
    def outcome(self) -> str:
        """The host in one word: failed, changed or ok."""
        if self.failed or self.unreachable:
            return "failed"
        return "changed" if self.changed else "ok"


@dataclass
class Check:
    """One look at the running system. *reason* says why it failed or cannot be proven here."""

    what: str
    status: str
    seen: Any = None
    wanted: Any = None
    reason: str = ""


@dataclass
class Gate:
    """One gate on one host: passed, failed, not provable, or not judged (check mode)."""

    name: str
    host: str
    status: str
    checks: list[Check] = field(default_factory=list)


@dataclass
class PhaseRecord:
    """One phase of a run: pending, running, done, failed or interrupted. *seconds* is its wall time."""

    name: str
    title: str
    status: str = PENDING
    started: str | None = None
    ended: str | None = None
    seconds: float | None = None
    hosts: dict[str, Counts] = field(default_factory=dict)
    gates: list[Gate] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        """True when a resumed run need not run this phase again.

        A gate that passed settles its phase, and so does one whose open checks are all not provable here. A phase
        without a gate is settled when it ended well.
        """
        if self.status != DONE:
            return False
        return all(
            gate.status == PASSED
            or (gate.status == NOT_PROVABLE and not any(check.status == FAILED for check in gate.checks))
            for gate in self.gates
        )

    def set_gate(self, gate: Gate) -> None:
        """Record *gate*; an earlier answer of the same gate on the same host no longer counts."""
        self.gates = [old for old in self.gates if (old.name, old.host) != (gate.name, gate.host)] + [gate]

    def hosts_with(self, outcome: str) -> list[str]:
        """Return the hosts of one outcome: `failed` (or unreachable), `changed` (and not failed), `ok` (the others)."""
        return [host for host, counts in self.hosts.items() if counts.outcome == outcome]


@dataclass
class Failure:
    """Why a run ended early. *host* is the first of *hosts*; *where* the file and line of the task."""

    kind: str
    message: str
    phase: str | None = None
    host: str | None = None
    hosts: list[str] = field(default_factory=list)
    task: str | None = None
    where: str | None = None


@dataclass
class SiteRecord:
    """Which site, and whether it calls itself a lab; *instance* names the lab where one inventory serves several."""

    name: str
    path: str
    lab: bool
    instance: str | None = None


@dataclass
class RunProcess:
    """The runner's own process: a reader tells by it whether a run still runs."""

    pid: int
    started: str


@dataclass
class GitRecord:
    """Commit of the project, and whether its files differ from it."""

    commit: str | None
    dirty: bool


@dataclass
class Inputs:
    """sha256 over all inputs, per file, and per extra variable (under the site's key)."""

    sha256: str
    files: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass
class Standin:
    """A part of the lab that is not the real one; *detail* says what stands in and why."""

    component: str
    detail: str


@dataclass(kw_only=True)
class Receipt:
    """A run. *selection* names the phases asked for; *mode* is apply or check."""

    schema_version: int = SCHEMA_VERSION
    id: str
    verb: str
    command: list[str]
    site: SiteRecord
    mode: str
    limit: str | None
    selection: list[str]
    process: RunProcess
    git: GitRecord
    versions: dict[str, str]
    inputs: Inputs
    phases: list[PhaseRecord]
    status: str = RUNNING
    exit_code: int | None = None
    started: str = field(default_factory=now)
    ended: str | None = None
    seconds: float | None = None
    resumed_from: str | None = None
    standins: list[Standin] = field(default_factory=list)
    failure: Failure | None = None

    def phase(self, name: str) -> PhaseRecord | None:
        """Return the record of the phase *name*, if this run has it."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def to_json(self) -> str:
        """Return the receipt as the text of its file."""
        return json.dumps(dataclasses.asdict(self), indent=2, default=str) + "\n"

    def write(self, directory: Path) -> None:
        """Write the receipt into the run's *directory*."""
        write_private(directory / "receipt.json", self.to_json())


def parse_receipt(text: str, shown_as: str) -> Receipt:
    """Return the receipt that *text* holds.

    Raises:
        BadInput: it is no receipt, or one of a newer schema.

    """
    try:
        data = json.loads(text)
        version = data["schema_version"]
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{shown_as}: no receipt") from None
    if version > SCHEMA_VERSION:
        raise BadInput(f"{shown_as}: schema {version} is newer than {SCHEMA_VERSION}, the one known here")
    try:
        receipt = _build(Receipt, data)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise BadInput(f"{shown_as}: no receipt of schema {version}") from None
    assert isinstance(receipt, Receipt)
    return receipt


def _build(kind: Any, data: Any) -> Any:
    """Return *data* (plain JSON) as the type *kind*: a dataclass, list, dict, optional or scalar."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _build(hints[name], value) for name, value in data.items() if name in hints})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [_build(arguments[0], item) for item in data]
    if origin is dict:
        return {key: _build(arguments[1], item) for key, item in data.items()}
    if origin is types.UnionType:
        return None if data is None else _build(next(item for item in arguments if item is not type(None)), data)
    return data
