"""A lab as it is now, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from provision.lab.standins import Component


@dataclass(frozen=True)
class HostStatus:
    """One host as it is now. `rank` is its place in the ring, None off it."""

    host: str
    hostname: str
    state: str
    pid: int | None
    boots: int
    address: str
    management: str
    rank: int | None
    fabric: list[str]
    netns: str


@dataclass(frozen=True)
class LabStatus:
    """A lab as it is now."""

    name: str
    home: str
    up: bool
    flavour: str | None
    cgroups: str
    hosts: list[HostStatus]
    components: list[Component]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
