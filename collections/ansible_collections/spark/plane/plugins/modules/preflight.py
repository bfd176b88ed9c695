#!/usr/bin/python
"""Documentation of the action `spark.plane.preflight`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Refuses bad input before anything changes anywhere
description:
  - Reads C(site.yml) and the tags of this run to learn the selected phases and their roles.
  - "Stage C(inputs) needs no host: unknown tags, inventory rules, argument specs of every selected role on every host,
    and variables that no role has."
  - "Stage C(hosts) judges facts: management interfaces and addresses, and one machine under two names. Then it brings
    the artifacts of the selected roles to the controller, for the hosts' architectures, and verifies their checksums."
  - Every problem is one line of the message, and the result holds C(bad_input=true).
  - Runs on the controller; nothing is sent to a host.
options:
  site:
    description: Path of C(site.yml).
    type: path
    required: true
  stage:
    description: What is judged.
    type: str
    choices: [inputs, hosts]
    required: true
author: The Spark Plane maintainers
"""

EXAMPLES = r"""
- name: The inputs are fit for every selected phase
  spark.plane.preflight:
    site: "{{ role_path }}/../../site.yml"
    stage: inputs
  run_once: true
"""

RETURN = r"""
phases:
  description: The selected phases, in order.
  type: list
  elements: str
  returned: always
roles:
  description: The roles of these phases, in order.
  type: list
  elements: str
  returned: always
readers:
  description: Those of the roles with a C(tasks/preflight.yml), which reads what the role needs to know of a host.
  type: list
  elements: str
  returned: always
bad_input:
  description: True when a problem was found.
  type: bool
  returned: on failure
"""
