#!/usr/bin/python
"""Many files and directories in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: files
short_description: Writes many files and directories in one call
version_added: 0.1.0
description:
  - Renders, compares, validates and writes a whole set of files with one module call per host.
  - Everything is read and decided first, then every C(validate) command runs on a private copy of the new content, and
    only when all of them agree is anything written. Each file is staged beside its destination, synced and renamed, so
    no reader and no crash ever sees half a file. A run killed between two files is healed by the next one.
  - Contents are rendered on the controller and never appear in the module's logged arguments.
options:
  files:
    description: The files of this call.
    type: list
    elements: dict
    default: []
    suboptions:
      dest:
        description: Absolute path on the host.
        type: str
        required: true
      template:
        description:
          - Template on the controller, searched as M(ansible.builtin.template) does and rendered with the task's
            variables.
        type: str
      content:
        description: The content itself.
        type: str
      src:
        description: File on the controller, searched as M(ansible.builtin.copy) does; text or binary, 1 MiB at most.
        type: str
      json:
        description: Any value, written as JSON with sorted keys, two spaces of indent and a final newline.
        type: raw
      mode:
        description: Quoted octal string.
        type: str
        default: "0644"
      owner:
        description: User name or number.
        type: str
        default: root
      group:
        description: Group name or number.
        type: str
        default: root
      validate:
        description:
          - Command that must exit 0 before any file of this call is written; C(%s) stands for the path of a copy
            that has the name of O(files[].dest). It runs without a shell, for 60 seconds at most.
          - It runs only when the content would change. When the command is not installed, the call fails; in check
            mode the file is noted as not validated.
        type: str
      state:
        description: Whether the file is there.
        type: str
        choices: [present, absent]
        default: present
      secret:
        description: The content never appears in a diff, a message or a log.
        type: bool
        default: false
      follow:
        description: Write to where a symbolic link at O(files[].dest) points. Otherwise such a link is refused.
        type: bool
        default: false
      block:
        description:
          - Own only a block of this name between C(# BEGIN) and C(# END) marks, at the top of a file that others also
            own, such as C(/etc/hosts). V(absent) then takes out the block and leaves the file.
        type: str
  directories:
    description:
      - The directories of this call, made before the files. A file's missing parent is only made when it is listed here.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path on the host.
        type: str
        required: true
      mode:
        description: Quoted octal string.
        type: str
        default: "0755"
      owner:
        description: User name or number.
        type: str
        default: root
      group:
        description: Group name or number.
        type: str
        default: root
      state:
        description:
          - V(absent) removes the directory with all that is in it, after the files were handled. Top-level directories
            and trees that hold another file system are refused.
        type: str
        choices: [present, absent]
        default: present
  packed:
    description: Filled in by the action plugin of the same name; never set by hand.
    type: str
attributes:
  check_mode:
    support: full
    description: Reports what would change; validators run on copies, nothing else is written.
  diff_mode:
    support: full
    description: One entry per file; a secret file shows only that it differs.
author:
  - The Spark Plane maintainers (@spark-plane)
"""

EXAMPLES = r"""
- name: The kernel has the settings Kubernetes wants
  spark.plane.files:
    directories:
      - path: /etc/example.d
    files:
      - dest: /etc/sysctl.d/90-spark-plane.conf
        template: sysctl.conf.j2
      - dest: /etc/docker/daemon.json
        json: "{{ merged_daemon_json }}"
        validate: dockerd --validate --config-file %s
      - dest: /etc/example.d/token
        content: "{{ token }}"
        mode: "0600"
        secret: true
      - dest: /etc/modules-load.d/old.conf
        state: absent
  register: written
"""

RETURN = r"""
changed_files:
  description: Files created, rewritten, or given another mode or owner.
  type: list
  elements: str
  returned: success
  sample: [/etc/docker/daemon.json]
removed_files:
  description: Files removed.
  type: list
  elements: str
  returned: success
  sample: []
changed_directories:
  description: Directories created, or given another mode or owner.
  type: list
  elements: str
  returned: success
  sample: [/etc/example.d]
removed_directories:
  description: Directories removed.
  type: list
  elements: str
  returned: success
  sample: []
notes:
  description: What check mode could not judge, a line each.
  type: list
  elements: str
  returned: success
  sample: ["/etc/docker/daemon.json: not validated, dockerd is not installed yet"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spark.plane.plugins.module_utils import filecheck, fileset
from ansible_collections.spark.plane.plugins.module_utils.filespec import parse
from ansible_collections.spark.plane.plugins.module_utils.packing import unpack

_STATE = {"type": "str", "choices": ["present", "absent"], "default": "present"}
_ROOT = {"type": "str", "default": "root"}
_FILE = {
    "dest": {"type": "str", "required": True},
    "template": {"type": "str"},
    "content": {"type": "str", "no_log": False},
    "src": {"type": "str"},
    "json": {"type": "raw"},
    "mode": {"type": "str", "default": "0644"},
    "owner": _ROOT,
    "group": _ROOT,
    "validate": {"type": "str"},
    "state": _STATE,
    "secret": {"type": "bool", "default": False, "no_log": False},
    "follow": {"type": "bool", "default": False},
    "block": {"type": "str"},
}
_DIRECTORY = {
    "path": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0755"},
    "owner": _ROOT,
    "group": _ROOT,
    "state": _STATE,
}


def main() -> None:
    """Plan, validate, apply, report."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "default": [], "options": _FILE},
            "directories": {"type": "list", "elements": "dict", "default": [], "options": _DIRECTORY},
            "packed": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    try:
        request = parse(module.params["files"], module.params["directories"], packed=True)
        contents: list[bytes | None] = [None] * len(request.files)
        if module.params["packed"]:
            contents = unpack(module.params["packed"])
        plan = fileset.plan(request, contents, check=module.check_mode)
        refused = filecheck.validate(plan, check=module.check_mode)
        if refused:
            raise fileset.FilesError("\n".join([*refused, "Nothing was written."]))
        if not module.check_mode:
            fileset.apply(plan)
    except OSError as err:
        module.fail_json(msg=f"{err.filename}: {err.strerror}")
    except (fileset.FilesError, ValueError) as err:
        module.fail_json(msg=str(err))
    result = {
        "changed": bool(plan.files or plan.directories),
        "changed_files": [str(item.spec.dest) for item in plan.files if item.after is not None],
        "removed_files": [str(item.spec.dest) for item in plan.files if item.after is None],
        "changed_directories": [str(item.spec.path) for item in plan.directories if item.spec.present],
        "removed_directories": [str(item.spec.path) for item in plan.directories if not item.spec.present],
        "notes": plan.notes,
    }
    if module._diff:
        result["diff"] = filecheck.diff(plan)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
