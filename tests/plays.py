"""Runs tasks through ansible-playbook and hands back what each returned. One run costs over a second, a task a quarter."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
Task = dict[str, Any]


@dataclass(frozen=True)
class Played:
    """What ansible-playbook printed and logged, and the result of each task by name."""

    text: str
    results: dict[str, dict[str, Any]]

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The result of one task."""
        return self.results[name]


def play(tree: Path, tasks: list[Task], *options: str, environment: dict[str, str], **variables: Any) -> Played:
    """Run tasks as those of a role named r below `tree`; a task that fails does not stop the others.

    Args:
        tree: where the play, its log and its role live.
        tasks: with unique names.
        options: further options of ansible-playbook, the inventory among them.
        environment: added to that of this process.
        variables: of the play.
    """
    registered = {task["name"]: f"r{index}" for index, task in enumerate(tasks)}
    assert len(registered) == len(tasks), "task names must be unique"
    listed = [{**task, "register": registered[task["name"]], "ignore_errors": True} for task in tasks]
    (tree / "roles/r/tasks").mkdir(parents=True, exist_ok=True)
    (tree / "roles/r/tasks/main.yml").write_text(yaml.safe_dump(listed, sort_keys=False))
    collected = ", ".join(f"{json.dumps(name)}: {variable}" for name, variable in registered.items())
    # As one line of JSON: output formats differ between callbacks, a marked string does not.
    message = "COLLECTED {{ {" + collected + "} | to_json | b64encode }} DONE"
    playbook = {
        "hosts": "all",
        "gather_facts": False,
        "vars": variables,
        "roles": ["r"],
        "post_tasks": [{"name": "Collect", "ansible.builtin.debug": {"msg": message}}],
    }
    (tree / "play.yml").write_text(yaml.safe_dump([playbook], sort_keys=False))
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), *options, "play.yml"],
        cwd=tree,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_LOCAL_TEMP": str(tree / "tmp"),
            "ANSIBLE_LOG_PATH": str(tree / "log"),
            "ANSIBLE_NOCOLOR": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    packed = text.rpartition("COLLECTED ")[2].partition(" DONE")[0]
    results = json.loads(base64.b64decode(packed))
    log = (tree / "log").read_text()
    return Played((text + log).replace(packed, ""), results)
