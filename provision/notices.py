"""What is worth telling about a run, one small class per kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from provision.receipt import PhaseRecord


@dataclass(frozen=True)
class PhaseStarted:
    """A phase begins."""

    phase: PhaseRecord


@dataclass(frozen=True)
class PhaseEnded:
    """A phase is over; its record says how."""

    phase: PhaseRecord


@dataclass(frozen=True)
class TaskEnded:
    """A task is over: *results* gives ok, changed, skipped, failed, ignored or unreachable per host."""

    phase: PhaseRecord
    task: str
    results: dict[str, str]


@dataclass(frozen=True)
class HostFailed:
    """A host failed a task, or was not reached; other hosts may still be at the same task."""

    phase: PhaseRecord
    task: str
    host: str
    message: str
    unreachable: bool


@dataclass(frozen=True)
class Diff:
    """What a task changes in a file, or would change, as unified diff."""

    phase: PhaseRecord
    task: str
    host: str
    text: str


@dataclass(frozen=True)
class Output:
    """A piece of Ansible's own output, secrets taken out."""

    text: str


Notice = PhaseStarted | PhaseEnded | TaskEnded | HostFailed | Diff | Output


@dataclass
class TaskNow:
    """The task now running, and the hosts that have not finished it; *tries*: which try this is, and of how many."""

    name: str
    role: str = ""
    running: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    results: dict[str, str] = field(default_factory=dict)
    tries: tuple[int, int] | None = None
