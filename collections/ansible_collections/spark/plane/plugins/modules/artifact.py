#!/usr/bin/python
"""Host side of `spark.plane.artifact`: says which files differ, verifies what was staged, and moves it in place."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: artifact
short_description: Places verified files on hosts
description:
  - The controller fetches each file once per architecture, from C(mirror) or from its URL, and verifies its sha256.
    It is pushed only to hosts where the file differs, verified there again, and moved in place whole.
  - A file with no pinned sha256 takes the publisher's checksum on first use and records it in C(lock); later drift is
    refused.
  - In check mode nothing is fetched or recorded.
options:
  place:
    description: What goes where.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name in C(pins).
        type: str
        required: true
      dest:
        description: Path on the host.
        type: path
        required: true
      mode:
        description: Octal mode.
        type: str
        default: "0644"
      owner:
        description: Owner.
        type: str
        default: root
      group:
        description: Group.
        type: str
        default: root
  pins:
    description: C(pins_artifacts).
    type: dict
    required: true
  architecture:
    description: The host's architecture, C(uname -m) or Debian's name.
    type: str
    required: true
  cache:
    description: Directory of verified files on the controller.
    type: path
    required: true
  lock:
    description: The site's lock file.
    type: path
    required: true
  mirror:
    description: Directory that holds every file by its name; nothing is fetched from elsewhere then.
    type: path
  files:
    description: Set by the action itself.
    type: list
    elements: dict
author: The Spark Plane maintainers
"""

EXAMPLES = r"""
- name: The binary is in place
  spark.plane.artifact:
    place:
      - name: k3s
        dest: /usr/local/bin/k3s
        mode: "0755"
    pins: "{{ pins_artifacts }}"
    architecture: "{{ ansible_facts['architecture'] }}"
    cache: "{{ artifact_cache }}"
    lock: "{{ artifact_lock }}"
    mirror: "{{ artifact_mirror }}"
"""

RETURN = r"""
changed_files:
  description: Files that were placed, or whose mode or owner changed (would be, in check mode).
  type: list
  elements: str
  returned: always
missing:
  description: Files whose content differed.
  type: list
  elements: str
  returned: always
fetched:
  description: Artifacts that the controller brought during this task.
  type: list
  elements: str
  returned: when something was pushed
"""


def sha256(path: str) -> str | None:
    """Digest of a file in hex, None when there is no such file."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while chunk := stream.read(1 << 20):
                found.update(chunk)
    except FileNotFoundError:
        return None
    return found.hexdigest()


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec={"files": {"type": "list", "elements": "dict"}}, supports_check_mode=True)
    changed: list[str] = []
    missing: list[str] = []
    for file in module.params["files"]:
        dest, wanted = file["dest"], file["sha256"]
        if os.path.isdir(dest):
            module.fail_json(msg=f"{dest}: is a directory, wanted a file")
        differs = sha256(dest) != wanted
        staged = file.get("staged")
        if differs:
            missing.append(dest)
            if staged is None:
                changed.append(dest)
                continue
            seen = sha256(staged)
            if seen != wanted:
                module.fail_json(msg=f"{dest}: what arrived has sha256 {seen}, expected {wanted}; nothing was placed")
            os.makedirs(os.path.dirname(dest), mode=0o755, exist_ok=True)
            os.chmod(staged, int(file["mode"], 8))
            module.atomic_move(staged, dest)
        attributes = module.load_file_common_arguments(
            {"path": dest, **{key: file[key] for key in ("mode", "owner", "group")}, **_NO_ATTRIBUTES}
        )
        if module.set_fs_attributes_if_different(attributes, differs):
            changed.append(dest)
    module.exit_json(changed=bool(changed), changed_files=changed, missing=missing)


_NO_ATTRIBUTES: dict[str, Any] = {
    "attributes": None,
    "unsafe_writes": False,
    **dict.fromkeys(("seuser", "serole", "selevel", "setype")),
}

if __name__ == "__main__":
    main()
