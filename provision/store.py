"""The runs on record: `runs/<id>/`, one directory per run."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from provision.errors import BadInput, did_you_mean
from provision.files import private_dir
from provision.process import Process
from provision.project import Project
from provision.receipt import INTERRUPTED, RUNNING, Failure, Receipt, parse_receipt


@dataclass(frozen=True)
class StoredRun:
    """A run on record and its directory."""

    directory: Path
    receipt: Receipt


def new_run(project: Project) -> Path:
    """Make the directory of a new run and return it: its name is the run's id, and ids sort by time."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    directory = private_dir(project.runs) / f"{stamp}-{secrets.token_hex(2)}"
    directory.mkdir(mode=0o700)
    return directory


def read_run(directory: Path) -> StoredRun | None:
    """Return the run in *directory*, or None when a kill left it without a receipt.

    A receipt that still says running, though its process is gone, is shown as interrupted; the file stays as it is.

    Raises:
        BadInput: the receipt is broken or of a newer schema.

    """
    path = directory / "receipt.json"
    if not path.is_file():
        return None
    receipt = parse_receipt(path.read_text(encoding="utf-8"), f"{directory.name}/receipt.json")
    if receipt.status == RUNNING and not Process(receipt.process.pid, receipt.process.started).alive:
        mark_interrupted(receipt, "the runner was killed")
    return StoredRun(directory, receipt)


def mark_interrupted(receipt: Receipt, message: str) -> None:
    """Turn what still runs in *receipt* into interrupted; the first such phase is where."""
    phase = next((record for record in receipt.phases if record.status == RUNNING), None)
    receipt.status = INTERRUPTED
    receipt.failure = receipt.failure or Failure(INTERRUPTED, message, phase=phase.name if phase else None)
    if phase:
        phase.status = INTERRUPTED


def all_runs(project: Project) -> list[StoredRun]:
    """Return every run on record, the newest first; what is broken or of a newer schema is left out."""
    found: list[StoredRun] = []
    if not project.runs.is_dir():
        return found
    for directory in sorted(project.runs.iterdir(), reverse=True):
        try:
            run = read_run(directory)
        except BadInput:
            continue
        if run:
            found.append(run)
    return found


def find_run(project: Project, wanted: str) -> StoredRun:
    """Return the run whose id is, or starts with, *wanted*; `last` is the newest.

    Raises:
        BadInput: there is none, or more than one.

    """
    runs = all_runs(project)
    if wanted == "last":
        matches = runs[:1]
    else:
        matches = [run for run in runs if run.receipt.id.startswith(wanted)]
        matches = [run for run in matches if run.receipt.id == wanted] or matches
    if not matches:
        raise BadInput(f"no run {wanted}{did_you_mean(wanted, [run.receipt.id for run in runs])}")
    if len(matches) > 1:
        raise BadInput(f"run {wanted}: {len(matches)} runs begin so: {', '.join(run.receipt.id for run in matches)}")
    return matches[0]
