#!/usr/bin/python
"""Documentation of the action `spark.plane.gate`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
short_description: Judges the checks that end a phase on a host
description:
  - Compares what a probe saw with what is wanted. A gate is C(passed), C(failed) or C(not provable).
  - C(not provable) exists only where the variable C(plane_site_is_lab) is true, and never counts as passed;
    elsewhere such a check is failed.
  - In check mode nothing is judged. Runs on the controller; nothing is sent to a host.
options:
  name:
    description: The gate's name, that of the phase.
    type: str
    required: true
  checks:
    description: What is checked.
    type: list
    elements: dict
    required: true
    suboptions:
      what:
        description: What will be true, in a few words.
        type: str
        required: true
      seen:
        description: What the probe saw.
        type: raw
        required: true
      wanted:
        description: The value that C(seen) must equal.
        type: raw
      one_of:
        description: Values of which C(seen) must be one.
        type: list
        elements: raw
      at_least:
        description: The smallest number that C(seen) may be.
        type: float
      contains:
        description: Values that C(seen), a list, must hold.
        type: list
        elements: raw
      provable:
        description: Whether this host can prove it at all.
        type: bool
        default: true
      reason:
        description: Why it cannot be proven.
        type: str
author: The Spark Plane maintainers
"""

EXAMPLES = r"""
- name: Docker passes its gate
  spark.plane.gate:
    name: docker
    checks:
      - what: The storage driver is overlay2
        seen: "{{ _docker.docker_facts.info.storage_driver }}"
        wanted: overlay2
"""

RETURN = r"""
gate:
  description: The verdict.
  type: dict
  returned: always
  contains:
    name:
      description: The gate's name.
      type: str
    status:
      description: C(passed), C(failed), C(not provable), or C(not judged) in check mode.
      type: str
    checks:
      description: Every check with what was seen and wanted.
      type: list
      elements: dict
"""
