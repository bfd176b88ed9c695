"""Whether a host's clock is kept, asked of chrony where it is and of timedated elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.spark.plane.plugins.module_utils import systemd

_TIMEOUT = 5
"""Seconds; chronyc itself gives up on a silent chronyd after 3 (its default retries)."""


@dataclass(frozen=True)
class Clock:
    """`synchronised` is None when nobody could be asked. `offset_seconds` is positive when the clock is slow."""

    synchronised: bool | None = None
    source: str | None = None
    offset_seconds: float | None = None
    leap: str | None = None
    reference: str | None = None
    stratum: int | None = None


def read() -> Clock:
    """Ask chrony, then timedated."""
    try:
        output = systemd.run(["chronyc", "-c", "tracking"], _TIMEOUT)
    except systemd.SystemdError:
        pass
    else:
        if output.code == 0:
            return parse_tracking(output.text)
    try:
        output = systemd.run(["timedatectl", "show", "--property=NTPSynchronized"], _TIMEOUT)
    except systemd.SystemdError:
        return Clock()
    value = systemd.parse_show(output.text)[0].get("NTPSynchronized") if output.code == 0 and output.text else None
    return Clock(synchronised=value == "yes", source="timedatectl") if value else Clock()


def parse_tracking(text: str) -> Clock:
    """Read one line of `chronyc -c tracking` (14 fields; chronyc(1), the order of its long form)."""
    fields = text.strip().splitlines()[-1].split(",") if text.strip() else []
    if len(fields) < 14:
        return Clock()
    try:
        offset = float(fields[4])
        stratum = int(fields[2])
    except ValueError:
        return Clock()
    leap = fields[13]
    return Clock(
        synchronised=leap != "Not synchronised",
        source="chrony",
        # chrony counts seconds of NTP time minus system time here: positive is slow.
        offset_seconds=offset,
        leap=leap,
        reference=fields[1] or fields[0],
        stratum=stratum,
    )
