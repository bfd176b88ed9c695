"""Receipts and events as the tests want them."""

from __future__ import annotations

from typing import Any

from provision import receipt as rc


def receipt_of(gate: str | None = None, **statuses: str) -> rc.Receipt:
    """A receipt with phases preflight, host and docker; *statuses* say how far each got, *gate* what h1's said."""
    phases = [rc.PhaseRecord(name, f"{name} is true") for name in ("preflight", "host", "docker")]
    for phase in phases:
        phase.status = statuses.get(phase.name, rc.PENDING)
        if phase.status != rc.PENDING:
            phase.started, phase.seconds = rc.now(), 1.5
            phase.hosts = {"h1": rc.Counts(ok=2), "h2": rc.Counts(ok=2, changed=1)}
            if gate:
                phase.gates = [rc.Gate(phase.name, "h1", gate, [rc.Check("it runs", gate, "a", ["b"], "because")])]
    failure = None
    if rc.FAILED in statuses.values():
        failure = rc.Failure(rc.FAILED, "broken", "host", "h1", ["h1"], "The task", "x.yml:1")
    return rc.Receipt(
        id="20260102T030405Z-abcd",
        verb="plane",
        command=["python", "-m", "provision", "plane"],
        site=rc.SiteRecord("fake", "inventory/fake", False),
        mode="apply",
        limit=None,
        selection=[phase.name for phase in phases],
        process=rc.RunProcess(1, "x"),
        git=rc.GitRecord(None, False),
        versions=dict.fromkeys(("python", "ansible-core", "ansible-runner", "spark-plane"), "1"),
        inputs=rc.Inputs("0" * 64),
        phases=phases,
        failure=failure,
    )


def event(kind: str, host: str | None = None, *, task: str = "The task", **data: Any) -> dict[str, Any]:
    """An event as ansible-runner hands it over; what is no field of `event_data` is named with a leading underscore."""
    outer = {key[1:]: data.pop(key) for key in list(data) if key.startswith("_")}
    inner = {"task": task, "task_uuid": task, "task_path": f"/root/roles/x/tasks/main.yml:{len(task)}"} | data
    return {"event": kind, "event_data": inner | ({"host": host} if host else {})} | outer
