"""Whole runs of the command line, with the real ansible-runner, on hosts that are this machine."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import jsonschema

from tests.runner.fake_project import PACKAGE, Ended, FakeProject

SCHEMA = json.loads((PACKAGE / "provision/receipt.schema.json").read_text())
BROKEN_SSH = """
all:
  vars: {ansible_ssh_common_args: "-F none -o ProxyCommand=false"}
  children:
    server: {hosts: {h1: {ansible_connection: local}}}
    ring: {hosts: {h1: {}, far: {}}}
"""
RAW_PLAY = """
- name: The host play
  hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Hosts answer
      ansible.builtin.raw: "true"
"""


def statuses(receipt: dict[str, Any]) -> dict[str, str]:
    return {phase["name"]: phase["status"] for phase in receipt["phases"]}


def test_a_run_that_ends_well(finished: tuple[FakeProject, Ended]) -> None:
    fake, ended = finished
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "preflight: starts (Inputs are fit)"
    assert "docker: changed: The docker task (h1, h2)" in lines
    assert "-old" in lines and "+new" in lines
    assert any(line.startswith("docker: done in") and line.endswith("gate 2 passed") for line in lines)
    assert "2 task results changed, on 2 hosts" in lines[-1]
    assert [line.split()[0] for line in fake.done()] == ["preflight"] * 4 + ["host"] * 4 + ["docker"] * 4
    assert "docker" in (fake.root / "run.svg").read_text()


def test_its_receipt(finished: tuple[FakeProject, Ended]) -> None:
    fake, _ = finished
    receipt = fake.last()
    jsonschema.validate(receipt, SCHEMA)
    assert (receipt["status"], receipt["exit_code"], receipt["failure"]) == ("done", 0, None)
    assert statuses(receipt) == {"preflight": "done", "host": "done", "docker": "done"}
    docker = receipt["phases"][2]
    assert docker["hosts"]["h1"] == {"ok": 2, "changed": 1, "failed": 0, "unreachable": 0, "skipped": 0}
    assert [(gate["host"], gate["status"]) for gate in docker["gates"]] in (
        [("h1", "passed"), ("h2", "passed")],
        [("h2", "passed"), ("h1", "passed")],
    )
    assert receipt["command"][:4] == ["python", "-m", "provision", "plane"]
    assert "plugins/action/act.py" not in receipt["inputs"]["files"]
    assert receipt["inputs"]["files"].keys() >= {
        "site.yml",
        "ansible.cfg",
        "playbooks/docker.yml",
        "inventory/fake/hosts.yml",
    }


def test_what_is_kept_of_a_run(finished: tuple[FakeProject, Ended]) -> None:
    fake, _ = finished
    (directory,) = (fake.root / "runs").iterdir()
    assert sorted(path.name for path in directory.iterdir()) == ["ansible.log", "receipt.json"]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    log = (directory / "ansible.log").read_text()
    assert "PLAY [The docker play]" in log and "PLAY RECAP" in log
    assert "\x1b" not in log and "\r" not in log
    assert sorted(path.name for path in (fake.root / "inventory/fake/.state").iterdir()) == [".gitignore", "run.lock"]


def test_receipts_and_nothing_to_resume(finished: tuple[FakeProject, Ended]) -> None:
    fake, _ = finished
    (line,) = fake.run("receipts", "--json").json
    assert (line["site"], line["status"], line["phases"]) == ("fake", "done", statuses(fake.last()))
    assert line["id"] in fake.run("receipts").out
    shown = fake.run("receipts", "show", "last", "--json").json
    assert shown == fake.last()
    assert "Docker runs" in fake.run("receipts", "show", line["id"][:13]).out
    resumed = fake.run("plane", "-i", "fake", "--resume")
    assert resumed.code == 0
    assert f"nothing to resume: run {line['id']}" in resumed.out
    assert len(fake.receipts()) == 1


def test_a_failure_then_a_resume(fake: FakeProject) -> None:
    broken = fake.world("break-docker-h2", "no disk left")
    failed = fake.run("plane", "-i", "fake", "-e", "token=CANARY-one")
    assert failed.code == 2
    assert "docker: failed: h2: The docker task: no disk left" in failed.out
    for words in (
        "phase docker on h2",
        "The docker task",
        "no disk left",
        "playbooks/docker.yml:6",
        "plane -i fake --resume",
    ):
        assert words in failed.out.split("\n\n")[-1]
    receipt = fake.last()
    assert statuses(receipt) == {"preflight": "done", "host": "done", "docker": "failed"}
    assert receipt["failure"]["host"] == "h2"

    role = fake.root / "roles/thing/tasks/main.yml"
    before = role.read_text()
    role.write_text("[ ]\n")
    refused = fake.run("plane", "-i", "fake", "--resume", "-e", "token=CANARY-two", "--json")
    assert refused.code == 3
    assert "file roles/thing/tasks/main.yml: changed" in refused.err
    assert "variable token: changed" in refused.err
    assert refused.json["exit_code"] == 3
    assert "CANARY" not in refused.err + refused.out
    assert len(fake.receipts()) == 1

    role.write_text(before)
    broken.unlink()
    done = len(fake.done())
    resumed = fake.run("plane", "-i", "fake", "--resume", "--json", "-e", "token=CANARY-one")
    assert resumed.code == 0
    jsonschema.validate(resumed.json, SCHEMA)
    assert statuses(resumed.json) == {"preflight": "done", "docker": "done"}
    assert resumed.json["resumed_from"] == receipt["id"]
    assert "host" not in {line.split()[0] for line in fake.done()[done:]}
    assert "docker: done in" in resumed.err


def test_resume_keeps_the_limit_and_the_phases_of_the_run(fake: FakeProject) -> None:
    broken = fake.world("break-host", "x")
    assert fake.run("plane", "-i", "fake", "--to", "host", "--limit", "h1").code == 2
    broken.unlink()
    assert fake.run("plane", "-i", "fake", "--resume").code == 0
    receipt = fake.last()
    assert (receipt["limit"], receipt["selection"]) == ("h1", ["preflight", "host"])
    assert not any("h2" in line for line in fake.done())


def test_a_gate_that_fails_and_one_not_provable(fake: FakeProject) -> None:
    fake.world("gate-host", "not provable")
    fake.world("gate-docker-h1", "failed")
    failed = fake.run("plane", "-i", "fake")
    assert failed.code == 2
    assert "host: done" in failed.out and "gate 2 not provable" in failed.out
    assert "not provable here" in failed.out and "host is real (for a test) on h1, h2" in failed.out
    receipt = fake.last()
    assert {gate["status"] for gate in receipt["phases"][1]["gates"]} == {"not provable"}
    (fake.root / "world/gate-docker-h1").unlink()
    resumed = fake.run("plane", "-i", "fake", "--resume")
    assert resumed.code == 0
    assert fake.last()["selection"] == ["preflight", "docker"]


def test_check_changes_nothing_and_is_not_resumed(fake: FakeProject) -> None:
    fake.world("change-host")
    checked = fake.run("plane", "-i", "fake", "--check", "--only", "host", "-v")
    assert checked.code == 0
    assert "2 task results would change" in checked.out
    assert "host: ok: The host gate (h1, h2)" in checked.out
    assert "host: would change: The host task (h1, h2)" in checked.out
    receipt = fake.last()
    assert (receipt["mode"], receipt["selection"]) == ("check", ["preflight", "host"])
    assert fake.run("plane", "-i", "fake", "--resume").code == 3


def test_unreachable_in_the_words_of_ssh(fake: FakeProject) -> None:
    # A module must be sent for ssh to be tried: the fake action never leaves the controller.
    fake.write("playbooks/host.yml", RAW_PLAY)
    fake.write("inventory/fake/hosts.yml", BROKEN_SSH)
    lost = fake.run("plane", "-i", "fake")
    assert lost.code == 4
    failure = fake.last()["failure"]
    assert (failure["kind"], failure["host"], failure["phase"], failure["task"]) == (
        "unreachable",
        "far",
        "host",
        "Hosts answer",
    )
    # One line, ssh's own; OpenSSH 9 and 10 word it differently.
    assert "Connection closed by" in failure["message"] and "\n" not in failure["message"]
    assert statuses(fake.last())["docker"] == "pending"


def test_bad_input_found_by_a_task(fake: FakeProject) -> None:
    fake.world("refuse-preflight")
    refused = fake.run("plane", "-i", "fake")
    assert refused.code == 3
    assert "hosts.yml: x: seen 1, wanted 2" in refused.out
    assert fake.last()["status"] == "bad input"
    assert "--resume" not in refused.out


def test_a_broken_role_is_bad_input_with_its_place(fake: FakeProject) -> None:
    fake.write("roles/thing/tasks/main.yml", "- name: x\n  no_such_module: {}\n")
    fake.write("playbooks/docker.yml", "- name: The docker play\n  hosts: all\n  gather_facts: false\n  roles: [thing]\n")
    refused = fake.run("plane", "-i", "fake")
    assert refused.code == 3
    assert fake.last()["failure"]["message"].startswith("roles/thing/tasks/main.yml:1:3: couldn't resolve module/action")
    assert fake.done() == []


def test_status_reads_every_gate_and_writes_nothing(fake: FakeProject) -> None:
    passed = fake.run("status", "-i", "fake", "--json", "-e", "a=b")
    assert (passed.code, passed.json["exit_code"]) == (0, 0)
    assert [(gate["name"], gate["status"]) for gate in passed.json["gates"]] == [("verify", "passed")] * 2
    broken = fake.world("break-verify-h2", "no disk left")
    stopped = fake.run("status", "-i", "fake")
    assert stopped.code == 2
    assert "stopped  h2: The verify task: no disk left" in stopped.out
    assert stopped.out.splitlines()[1].split()[0] == "h1"
    broken.unlink()
    fake.world("gate-verify-h2", "failed")
    failed = fake.run("status", "-i", "fake")
    assert failed.code == 2
    assert "verify on h2: verify is real: seen a, wanted b (for a test)" in failed.out
    assert fake.receipts() == []
    assert not (fake.root / "inventory/fake/.state").exists()
    assert {line.split()[0] for line in fake.done()} == {"verify"}


def test_secrets_stand_nowhere(fake: FakeProject, tmp_path: Path) -> None:
    play = """
    - name: The host play
      hosts: all
      gather_facts: false
      any_errors_fatal: true
      tasks:
        - name: A task with {{ token }}
          ansible.builtin.set_fact: {seen: "{{ token }} {{ other.deep }} {{ stored }}"}
        - name: Its words
          ansible.builtin.debug: {var: seen}
        - name: A hidden failure
          ansible.builtin.fail: {msg: CANARY-nolog}
          no_log: true
          ignore_errors: true
        - name: A hidden loop
          ansible.builtin.fail: {msg: "CANARY-nolog {{ item }}"}
          loop: [1, 2]
          no_log: true
          ignore_errors: true
        - name: A failure with a secret
          ansible.builtin.fail: {msg: "cannot log in with {{ token }}"}
    """
    fake.write("playbooks/host.yml", play)
    fake.write("inventory/fake/.state/secrets.yml", "stored: CANARY-stored\n")
    fake.write(
        "inventory/fake/group_vars/all.yml", "stored: \"{{ lookup('file', inventory_dir ~ '/.state/secrets.yml') }}\"\n"
    )
    words = ("-e", "token=CANARY-token", "-e", '{"other": {"deep": "CANARY-deep"}}', "-vv")
    ended = fake.run("plane", "-i", "fake", *words)
    assert ended.code == 2
    kept = "".join(path.read_text() for path in (fake.root / "runs").rglob("*") if path.is_file())
    for text in (kept, ended.out, ended.err, (fake.root / "inventory/fake/.state/run.lock").read_text()):
        assert "CANARY" not in text
    assert "cannot log in with <value of token>" in fake.last()["failure"]["message"]
    assert "token=..." in fake.last()["command"]
    assert "A failure with a secret" in kept
