"""A small project with the shape of the real one: hosts are this machine, and what tasks do is told from outside.

A file under `world/` makes a task act (`break-docker` fails it, `sleep-docker` makes it last): it is no input of a run,
so that a resumed run finds the same inputs in a mended world.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.project import Project

PACKAGE = Path(__file__).resolve().parents[2]

_CFG = """
[defaults]
gathering = explicit
host_key_checking = True
action_plugins = plugins/action
roles_path = roles
localhost_warning = False
[inventory]
any_unparsed_is_failed = True
"""

_SITE = """
- name: Inputs are fit
  ansible.builtin.import_playbook: playbooks/preflight.yml
  tags: [always, plane, model, preflight]
- name: Hosts are prepared
  ansible.builtin.import_playbook: playbooks/host.yml
  tags: [plane, host]
- name: Docker runs
  ansible.builtin.import_playbook: playbooks/docker.yml
  tags: [plane, docker]
- name: Gates are read
  ansible.builtin.import_playbook: playbooks/verify.yml
  tags: [never, verify]
"""

_PLAY = """
- name: The {phase} play
  hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: The {phase} task
      act: {{phase: {phase}, world: "{{{{ playbook_dir }}}}/../world"}}
    - name: The {phase} gate
      act: {{phase: {phase}, world: "{{{{ playbook_dir }}}}/../world", gate: true}}
"""

# Returns what the files under world/ ask for.
_ACTION = """
import json, time
from pathlib import Path
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    _supports_check_mode = True
    def run(self, tmp=None, task_vars=None):
        args, host = self._task.args, task_vars["inventory_hostname"]
        world, phase = Path(args["world"]), args["phase"]
        def asked(what):
            return next((p for p in (world / f"{what}-{phase}", world / f"{what}-{phase}-{host}") if p.exists()), None)
        with (world / "done").open("a") as done:
            done.write(f"{phase} {host} {'gate' if args.get('gate') else 'task'}\\n")
        if args.get("gate"):
            status = asked("gate").read_text().strip() if asked("gate") else "passed"
            check = {"what": f"{phase} is real", "status": status, "seen": "a", "wanted": "b", "reason": "for a test"}
            gate = {"name": phase, "status": status, "checks": [check]}
            return {"changed": False, "failed": status == "failed", "msg": f"gate {phase}: {status}", "gate": gate}
        if asked("sleep"):
            time.sleep(float(asked("sleep").read_text()))
        if asked("break"):
            return {"failed": True, "msg": asked("break").read_text().strip()}
        if asked("refuse"):
            return {"failed": True, "msg": "hosts.yml: x: seen 1, wanted 2", "bad_input": True}
        return {"changed": bool(asked("change")), "diff": {"before": "old\\n", "after": "new\\n"} if asked("change") else []}
"""

_HOSTS = """
all:
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  children:
    server:
      hosts:
        h1:
    ring:
      hosts:
        h1:
        h2:
"""


@dataclass
class Ended:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class FakeProject:
    """The project under *root*, and ways to run its command line."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> FakeProject:
        fake = cls(root)
        fake.write("ansible.cfg", _CFG)
        fake.write("site.yml", _SITE)
        for phase in ("preflight", "host", "docker", "verify"):
            fake.write(f"playbooks/{phase}.yml", _PLAY.format(phase=phase))
        fake.write("plugins/action/act.py", _ACTION)
        fake.write("inventory/fake/hosts.yml", _HOSTS)
        fake.write("roles/thing/tasks/main.yml", "[]\n")
        (root / "world").mkdir()
        return fake

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"))
        return target

    def world(self, name: str, text: str = "") -> Path:
        return self.write(f"world/{name}", text)

    @property
    def project(self) -> Project:
        return Project(self.root)

    def command(self, *words: str) -> list[str]:
        start = "import sys; from pathlib import Path; from provision.cli import main; from provision.project import Project"
        call = f"main(sys.argv[1:], Project(Path({str(self.root)!r})))"
        return [sys.executable, "-c", f"{start}; {call}", *words]

    @property
    def scratch(self) -> Path:
        """Where this project's runners keep what is gone after a run; its own, so that tests side by side do not meet.

        A short path: ansible-core 2.21 binds a unix socket below it, and those end at 108 bytes.
        """
        return Path(tempfile.gettempdir()) / f"fake-{zlib.crc32(str(self.root).encode()):08x}"

    def environment(self) -> dict[str, str]:
        self.scratch.mkdir(exist_ok=True)
        plain = {name: value for name, value in os.environ.items() if name != "SPARK_PLANE_RUNS"}
        return plain | {"PYTHONPATH": str(PACKAGE), "COLUMNS": "110", "TMPDIR": str(self.scratch)}

    def run(self, *words: str, timeout: float = 60) -> Ended:
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, env=self.environment(), timeout=timeout, check=False
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()
        )

    def receipts(self) -> list[Path]:
        return sorted(self.root.glob("runs/*/receipt.json"))

    def last(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.receipts()[-1].read_text())
        return found

    def done(self) -> list[str]:
        file = self.root / "world" / "done"
        return file.read_text().splitlines() if file.exists() else []
