#!/usr/bin/python
"""Documentation of the action `spark.plane.refuse`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: refuse
short_description: Stops a host's run with the problems found on it
description:
  - For a role's C(tasks/preflight.yml), before the first change. An empty list passes.
  - The result holds C(bad_input=true). Runs on the controller; nothing is sent to a host.
options:
  problems:
    description: One line each, saying where, what was seen and what is wanted.
    type: list
    elements: str
    required: true
author: The Spark Plane maintainers
"""

EXAMPLES = r"""
- name: The engine is one the suite can use
  spark.plane.refuse:
    problems: "{{ _docker_engine_problems }}"
"""

RETURN = r"""
bad_input:
  description: True when there was a problem.
  type: bool
  returned: on failure
"""
