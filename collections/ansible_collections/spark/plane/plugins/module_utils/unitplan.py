"""What has to be done to each unit. Pure decisions over what `systemctl show` and the file system said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.spark.plane.plugins.module_utils import systemd, unitcontent

PROPERTIES = (
    "LoadState", "LoadError", "ActiveState", "SubState", "UnitFileState", "FragmentPath", "SourcePath", "DropInPaths",
    "EnvironmentFiles", "NeedDaemonReload", "InvocationID", "Type", "RemainAfterExit", "Result", "MainPID",
    "ExecMainStatus", "StatusText", "ConditionResult", "AssertResult", "ExecMainStartTimestamp",
    "ExecMainStartTimestampMonotonic", "InactiveExitTimestamp", "InactiveExitTimestampMonotonic",
)  # fmt: skip

# UnitFileState values that `systemctl is-enabled` reports as success. enabled-runtime is not among them: it is gone
# after a reboot.
_ENABLED = frozenset({"enabled", "static", "alias", "indirect", "generated"})
_RUNNING = frozenset({"active", "reloading", "refreshing", "activating"})
_TICK = 0.02
"""Seconds. File times come from the kernel's coarse clock, up to one tick (10 ms at HZ=100) behind the start's."""


@dataclass(frozen=True)
class UnitSpec:
    """One wanted unit; None leaves that side of it alone. `timeout` is in seconds."""

    name: str
    state: str | None = None
    enabled: bool | None = None
    masked: bool | None = None
    content: tuple[str, ...] = ()
    timeout: float = 90.0


@dataclass(frozen=True)
class Now:
    """The clocks at one moment, in seconds: since the epoch, and monotonic as systemd counts."""

    real: float
    monotonic: float


@dataclass
class Decision:
    """What shall happen to one unit. `verb` is start, restart, stop or None.

    `invocation` is the one seen before acting; `said` is what systemctl said while acting.
    """

    spec: UnitSpec
    id: str
    invocation: str = ""
    verb: str | None = None
    reason: str = ""
    enable: bool | None = None
    mask: bool | None = None
    adopt: bool = False
    wait: bool = False
    content: unitcontent.Content | None = None
    said: str = ""
    notes: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def acts(self) -> bool:
        """Whether anything would change on the host."""
        return self.verb is not None or self.enable is not None or self.mask is not None


def parse(entries: Iterable[Mapping[str, Any]]) -> tuple[list[UnitSpec], list[str]]:
    """Turn checked arguments into specs, and name those that contradict themselves."""
    specs: list[UnitSpec] = []
    problems: list[str] = []
    for entry in entries:
        spec = UnitSpec(
            name=systemd.full_name(str(entry["name"])),
            state=entry.get("state"),
            enabled=entry.get("enabled"),
            masked=entry.get("masked"),
            content=tuple(entry.get("content") or ()),
            timeout=float(entry.get("timeout") or 90),
        )
        if spec.masked and (spec.state == "started" or spec.enabled):
            problems.append(f"{spec.name}: masked and started or enabled exclude each other")
        problems += [f"{spec.name}: content must be absolute paths, seen {p!r}" for p in spec.content if p[:1] != "/"]
        if spec.timeout <= 0:
            problems.append(f"{spec.name}: timeout must be more than 0 seconds, seen {spec.timeout:g}")
        if spec.name in {other.name for other in specs}:
            problems.append(f"{spec.name} is listed twice")
        specs.append(spec)
    return specs, problems


def needs_reload(spec: UnitSpec, properties: Mapping[str, str]) -> bool:
    """Whether systemd must read unit files again before this unit can be judged."""
    if properties.get("NeedDaemonReload") == "yes":
        return True
    wanted = spec.state == "started" or spec.enabled is True
    return properties.get("LoadState") == "not-found" and wanted


def started_at(properties: Mapping[str, str], now: Now) -> float:
    """When the running process began, in seconds since the epoch, never too late.

    Of all readings the earliest counts. The monotonic one is put on today's clock; the recorded wall-clock one (whole
    seconds) guards against a clock that was stepped since. InactiveExit is before ExecStartPre, which may read content.
    """
    candidates = []
    for name in ("ExecMainStart", "InactiveExit"):
        monotonic = systemd.number(properties, f"{name}TimestampMonotonic")
        if monotonic:
            candidates.append(now.real - (now.monotonic - monotonic / 1e6))
            recorded = properties.get(f"{name}Timestamp", "").lstrip("@")
            if recorded.isdigit():
                candidates.append(int(recorded) + 1.0)
    return min(candidates) - _TICK if candidates else 0.0


def decide(
    spec: UnitSpec,
    properties: Mapping[str, str],
    now: Now,
    *,
    check: bool,
    stale: bool = False,
    pending: Iterable[str] = (),
    root: Path = Path("/"),
) -> Decision:
    """Judge one unit.

    Args:
        spec: what is wanted.
        properties: what `systemctl show` said, after any daemon-reload.
        now: the clocks when it said so.
        check: check mode, where a unit that is not there yet is no problem.
        stale: systemd's loaded definition was behind the files before this call's daemon-reload.
        pending: files that an earlier task in check mode would have written.
        root: what all paths are below.
    """
    decision = Decision(spec, properties.get("Id") or spec.name, properties.get("InvocationID", ""))
    load = properties.get("LoadState", "")
    if spec.masked is not None and spec.masked != (load == "masked"):
        decision.mask = spec.masked
    _decide_enabled(decision, properties)
    active = properties.get("ActiveState", "inactive")
    if spec.state == "stopped":
        if active not in ("inactive", "failed"):
            decision.verb, decision.reason = "stop", f"was {active}"
        return decision
    if spec.state == "started":
        _decide_started(decision, properties, now, check=check, stale=stale, pending=pending, root=root)
    elif load == "not-found" and spec.enabled:
        _not_installed(decision, check)
    return decision


def _decide_enabled(decision: Decision, properties: Mapping[str, str]) -> None:
    wanted, seen = decision.spec.enabled, properties.get("UnitFileState", "")
    if wanted and seen not in _ENABLED:
        decision.enable = True
    elif wanted is False and seen in ("enabled", "enabled-runtime"):
        decision.enable = False


def _decide_started(
    decision: Decision,
    properties: Mapping[str, str],
    now: Now,
    *,
    check: bool,
    stale: bool,
    pending: Iterable[str],
    root: Path,
) -> None:
    spec, load = decision.spec, properties.get("LoadState", "")
    if load == "not-found":
        decision.verb, decision.reason = "start", "was not there"
        _not_installed(decision, check)
        return
    if load == "masked":
        decision.verb, decision.reason = "start", "was masked"
        if spec.masked is None:
            decision.problem = f"{spec.name} is masked, so it cannot be started; say masked: false to unmask it"
        return
    if load != "loaded":
        decision.problem = f"{spec.name}: systemd does not accept its unit file ({load}): {properties.get('LoadError')}"
        return
    if properties.get("Type") == "oneshot" and properties.get("RemainAfterExit") == "no":
        decision.problem = (
            f"{spec.name} is a oneshot that does not remain after exit, so it cannot be kept started;"
            " add RemainAfterExit=yes to it"
        )
        return
    stamp = unitcontent.load(decision.id, root)
    content = unitcontent.read(unitcontent.unit_files(properties), spec.content, stamp, root)
    decision.content = content
    active, sub = properties.get("ActiveState", ""), properties.get("SubState", "")
    if active not in _RUNNING or sub.startswith("auto-restart"):
        decision.verb, decision.reason = "start", f"was {sub if active == 'activating' else active}"
        return
    decision.wait = active == "activating"
    started = started_at(properties, now)
    if stamp and stamp.invocation == properties.get("InvocationID"):
        reasons = unitcontent.differences(stamp, content, started, root)
        decision.adopt = stamp.content.files.keys() != content.files.keys()
    else:
        reasons = unitcontent.newer(content, started)
        if stale and not reasons:
            reasons = ["its unit files changed since it was started"]
        decision.adopt = True
    reasons += _pending(decision.id, content, pending if check else ())
    if reasons:
        decision.verb, decision.reason, decision.adopt = "restart", "; ".join(reasons), False


def _pending(unit: str, content: unitcontent.Content, pending: Iterable[str]) -> list[str]:
    places = (f"/etc/systemd/system/{unit}.d/", f"/etc/systemd/system/{unit}")
    return [
        f"{path} would be written"
        for path in pending
        if path in content.files or path == places[1] or path.startswith(places[0])
    ]


def _not_installed(decision: Decision, check: bool) -> None:
    text = f"{decision.spec.name} is not installed on this host: systemd knows no unit file of that name"
    if check:
        decision.notes.append(text)
    else:
        decision.problem = text
