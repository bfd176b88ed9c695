"""Where a run goes on: at the first phase of the last one whose gate has not passed."""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import BadInput
from provision.inputs import differences
from provision.phases import Phase, Phases
from provision.project import Project
from provision.receipt import RUNNING, Inputs, Receipt
from provision.site import Site
from provision.store import all_runs


@dataclass(frozen=True)
class Resumption:
    """What is left of an earlier run: its *phases* from the first open one on, under the same *limit*."""

    receipt: Receipt
    phases: list[Phase]
    limit: str | None


def last_run(project: Project, site: Site, verb: str) -> Receipt | None:
    """Return the newest run of *verb* on *site* that was to change something, if there is one."""
    return next(
        (
            run.receipt
            for run in all_runs(project)
            if (run.receipt.site.path, run.receipt.site.instance) == (project.shown(site.path), site.instance)
            and run.receipt.verb == verb
            and run.receipt.mode == "apply"
            and run.receipt.status != RUNNING
        ),
        None,
    )


def plan(project: Project, site: Site, verb: str, phases: Phases, inputs: Inputs, limit: str | None) -> Resumption:
    """Return what is left of the last run; no phases when nothing is.

    Raises:
        BadInput: there is no earlier run, or what it was made from has changed since (every change is named).

    """
    last = last_run(project, site, verb)
    if last is None:
        raise BadInput(f"--resume: no earlier run of {verb} on site {site.name}")
    left = unsettled(last)
    if not left:
        return Resumption(last, [], last.limit)
    changes = differences(last.inputs, inputs)
    if limit is not None and limit != last.limit:
        changes.append(f"--limit: was {last.limit or 'not given'}, is {limit}")
    if changes:
        raise BadInput(f"--resume: inputs changed since run {last.id}; start anew without --resume, or undo:", *changes)
    return Resumption(last, phases.named(tuple(left)), last.limit)


def unsettled(receipt: Receipt) -> list[str]:
    """Return the names of the phases of *receipt* from the first one on whose gate has not passed."""
    names = [phase.name for phase in receipt.phases]
    first = next((index for index, phase in enumerate(receipt.phases) if not phase.settled), len(names))
    return names[first:]
