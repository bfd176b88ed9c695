#!/usr/bin/python
"""Documentation of the action `spark.plane.role_vars`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: role_vars
short_description: Variables of a role on every host of the inventory, defaults applied
description:
  - Ansible shows a role's defaults only on the host the role runs on. A file that names all hosts, such as
    C(/etc/hosts), needs them of every host.
  - Runs on the controller; nothing is sent to a host.
options:
  role:
    description: Path of the role.
    type: path
    required: true
  names:
    description: Names of the variables.
    type: list
    elements: str
    required: true
author: The Spark Plane maintainers
"""

EXAMPLES = r"""
- name: The names of all hosts are known
  spark.plane.role_vars:
    role: "{{ role_path }}"
    names: [host_name, host_management_address]
  register: _host_site
"""

RETURN = r"""
hosts:
  description: Host to variable to value.
  type: dict
  returned: always
"""
