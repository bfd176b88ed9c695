#!/usr/bin/python
"""Many systemd units in one call, restarted exactly when what they run on differs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: units
short_description: Keeps many systemd units enabled, running, and on the content they should run on
version_added: 0.1.0
description:
  - Enables, starts, stops and restarts many units with one module call per host; one C(systemctl show) reads them all.
  - A unit is restarted exactly when the content it runs on (its unit file, drop-ins, environment files and
    O(units[].content)) differs from what it was started with, not when a task happened to run. So a run that was
    interrupted between writing a file and restarting the unit is healed by the next one.
  - After each start the unit's invocation id and the digests of its content are kept in
    C(/var/lib/spark-plane/units/<unit>.json). A unit that was started by other means (a boot, a hand) is adopted when all
    of its content is older than its start, and restarted otherwise. Adopting is not a change.
  - systemd reads unit files again (daemon-reload) when it says it needs to, or does not know a unit.
options:
  units:
    description: The units of this call.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Unit name; without a type it means a service.
        type: str
        required: true
      state:
        description:
          - V(started) means running on the present content, V(stopped) means not running. Without it neither is touched.
          - A oneshot service must have RemainAfterExit=yes to be kept started.
        type: str
        choices: [started, stopped]
      enabled:
        description: Whether it starts at boot. Without it this is not touched.
        type: bool
      masked:
        description: Whether it can be started at all. Without it this is not touched.
        type: bool
      content:
        description:
          - Files the unit's process reads when it starts. A directory stands for all files in it.
        type: list
        elements: str
        default: []
      timeout:
        description: Seconds a start or stop may take. Several units started together share the longest.
        type: float
        default: 90
  pending:
    description:
      - In check mode only, files that an earlier task would have written (its C(changed_files)). Units that run on them are
        reported as to be restarted. Ignored in a real run.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: A unit that is not installed yet is reported as to be started and enabled.
  diff_mode:
    support: full
    description: One line per unit that changes.
author:
  - The Spark Plane maintainers (@spark-plane)
"""

EXAMPLES = r"""
- name: Docker and chrony run on their present configuration
  spark.plane.units:
    units:
      - name: docker
        state: started
        enabled: true
        content: [/etc/docker/daemon.json]
      - name: chrony
        state: started
        enabled: true
        content: [/etc/chrony/chrony.conf, /etc/chrony/conf.d]
      - name: swap.target
        state: stopped
        masked: true
    pending: "{{ written.changed_files }}"
"""

RETURN = r"""
started:
  description: Units that were not running and were started.
  type: list
  elements: str
  returned: always
  sample: [chrony.service]
restarted:
  description: Units restarted because their content differs.
  type: list
  elements: str
  returned: always
  sample: [docker.service]
stopped:
  description: Units stopped.
  type: list
  elements: str
  returned: always
  sample: []
enabled:
  description: Units enabled.
  type: list
  elements: str
  returned: always
  sample: []
disabled:
  description: Units disabled.
  type: list
  elements: str
  returned: always
  sample: []
masked:
  description: Units masked.
  type: list
  elements: str
  returned: always
  sample: []
unmasked:
  description: Units unmasked.
  type: list
  elements: str
  returned: always
  sample: []
adopted:
  description: Units found running on the present content though started by other means. Not a change.
  type: list
  elements: str
  returned: always
  sample: []
reasons:
  description: Per unit acted on, why.
  type: dict
  returned: always
  sample: {docker.service: content of /etc/docker/daemon.json differs from what it was started with}
reloaded:
  description: Whether systemd was told to read its unit files again. Not a change.
  type: bool
  returned: always
notes:
  description: What check mode could not judge, a line each.
  type: list
  elements: str
  returned: always
  sample: []
failed_units:
  description: Units that did not reach the wanted state.
  type: list
  elements: str
  returned: failure
  sample: [docker.service]
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spark.plane.plugins.module_utils import systemd, unitact, unitplan

_UNIT = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "stopped"]},
    "enabled": {"type": "bool"},
    "masked": {"type": "bool"},
    "content": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "float", "default": 90},
}


def converge(
    specs: list[unitplan.UnitSpec], done: unitact.Done, *, check: bool, pending: list[str]
) -> list[unitplan.Decision]:
    """Read, decide, and unless in check mode act.

    Raises:
        UnitsError: a unit cannot be brought to its state.
        SystemdError: systemd cannot be asked.
    """
    names = [spec.name for spec in specs]
    states = unitact.show(names)
    stale = {name for name in names if states[name].get("NeedDaemonReload") == "yes"}
    if not check:
        masked = [spec.name for spec in specs if spec.masked is False and states[spec.name]["LoadState"] == "masked"]
        if masked:
            unitact.required("unmask", "--", *masked)
            done.unmasked += masked
        if masked or any(unitplan.needs_reload(spec, states[spec.name]) for spec in specs):
            unitact.required("daemon-reload")
            done.reloaded = True
            states = unitact.show(names)
    now = unitact.clocks()
    decisions = [
        unitplan.decide(spec, states[spec.name], now, check=check, stale=spec.name in stale, pending=pending)
        for spec in specs
    ]
    problems = [decision.problem for decision in decisions if decision.problem]
    if problems:
        raise unitact.UnitsError("\n".join(problems), [d.spec.name for d in decisions if d.problem])
    if check:
        done.expect(decisions)
    else:
        unitact.act(decisions, done)
    return decisions


def diff(decisions: list[unitplan.Decision]) -> dict[str, str]:
    """One line per unit that changes."""
    before, after = [], []
    for decision in (item for item in decisions if item.acts):
        name = decision.spec.name
        if decision.verb:
            wanted = "stopped" if decision.verb == "stop" else "running on the present content"
            before.append(f"{name}: {decision.reason}")
            after.append(f"{name}: {wanted}")
        for flag, word in ((decision.enable, "enabled"), (decision.mask, "masked")):
            if flag is not None:
                before.append(f"{name}: {'not ' if flag else ''}{word}")
                after.append(f"{name}: {'' if flag else 'not '}{word}")
    return {"before": "".join(f"{line}\n" for line in before), "after": "".join(f"{line}\n" for line in after)}


def main() -> None:
    """Converge and report."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "dict", "required": True, "options": _UNIT},
            "pending": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    specs, problems = unitplan.parse(module.params["units"])
    if problems:
        module.fail_json(msg="\n".join(problems))
    done = unitact.Done()
    try:
        decisions = converge(specs, done, check=module.check_mode, pending=module.params["pending"])
    except (unitact.UnitsError, systemd.SystemdError) as err:
        failed = err.units if isinstance(err, unitact.UnitsError) else []
        acted = [name for name in done.reasons if name not in failed]
        also = f"\nAlready acted on: {', '.join(acted)}." if acted else ""
        module.fail_json(msg=f"{err}{also}", changed=done.changed, failed_units=failed, **asdict(done))
    result: dict[str, Any] = {
        "changed": done.changed,
        **asdict(done),
        "notes": [note for decision in decisions for note in decision.notes],
    }
    if module._diff:
        result["diff"] = diff(decisions)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
