"""Runs that are stopped, killed, or meet each other: what is left is valid, nothing works on unseen, and it resumes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema

from provision.lock import SCRATCH_PREFIX
from provision.process import Process
from tests.runner.fake_project import FakeProject
from tests.runner.test_runs import SCHEMA, statuses


def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.03)


def reached(fake: FakeProject, line: str) -> Callable[[], bool]:
    return lambda: line in fake.done()


def child(fake: FakeProject) -> Process:
    record = json.loads((fake.root / "inventory/fake/.state/run.child").read_text())
    return Process(record["pid"], record["started"])


def scratch(fake: FakeProject) -> set[Path]:
    return set(fake.scratch.glob(f"{SCRATCH_PREFIX}*"))


def below(pid: int) -> list[int]:
    from provision.guard import descendants

    return descendants(pid)


def test_a_stop_ends_ansible_cleanly_and_resumes(fake: FakeProject) -> None:
    sleep = fake.world("sleep-docker", "30")
    run = fake.start("plane", "-i", "fake")
    wait_for(reached(fake, "docker h2 task"))
    family = below(run.pid)
    assert len(family) >= 4
    begun = time.monotonic()
    run.terminate()
    out, err = run.communicate(timeout=20)
    assert run.returncode == 130, err
    assert time.monotonic() - begun < 5
    assert "interrupted" in out and "--resume" in out
    assert [pid for pid in family if Process.of(pid)] == []
    receipt = fake.last()
    jsonschema.validate(receipt, SCHEMA)
    assert (receipt["status"], receipt["exit_code"], receipt["failure"]["phase"]) == ("interrupted", 130, "docker")
    assert statuses(receipt) == {"preflight": "done", "host": "done", "docker": "interrupted"}
    sleep.unlink()
    assert fake.run("plane", "-i", "fake", "--resume").code == 0
    assert fake.last()["selection"] == ["preflight", "docker"]


def test_kill_9_leaves_a_valid_receipt_and_nothing_alive(fake: FakeProject) -> None:
    sleep = fake.world("sleep-docker", "30")
    before = scratch(fake)
    run = fake.start("plane", "-i", "fake", "-e", "token=CANARY-kill")
    wait_for(reached(fake, "docker h2 task"))
    family = below(run.pid)
    guard = child(fake)
    assert guard.alive and guard.pid in family
    (ours,) = scratch(fake) - before
    left = [path.name for path in ours.rglob("*") if path.is_file()]
    assert "stdout" not in left, "Ansible's raw output is never on the disk"
    assert not [name for name in left if re.match(r"\d+-", name)], "and no results, but for one on its way"
    run.kill()
    run.wait()
    wait_for(lambda: not any(Process.of(pid) for pid in family))
    wait_for(lambda: not (fake.root / "inventory/fake/.state/run.child").exists())
    assert scratch(fake) <= before, "values given with -e lie in the scratch directory"

    receipt = fake.last()
    jsonschema.validate(receipt, SCHEMA)
    assert receipt["status"] == "running"
    (shown,) = fake.run("receipts", "--json").json
    assert (shown["status"], shown["phases"]["docker"]) == ("interrupted", "interrupted")

    sleep.unlink()
    assert fake.run("plane", "-i", "fake", "--resume", "-e", "token=CANARY-kill").code == 0
    assert fake.last()["selection"] == ["preflight", "docker"]


def test_the_second_run_on_a_site_is_refused(fake: FakeProject) -> None:
    fake.world("sleep-host", "30")
    first = fake.start("plane", "-i", "fake")
    try:
        wait_for(reached(fake, "host h1 task"))
        second = fake.run("plane", "-i", "fake", "--only", "docker")
        assert second.code == 3
        assert re.search(rf"another run is at work \(pid {first.pid}, started 20.*Z: .*plane -i fake\)", second.err)
        assert fake.run("receipts", "--json").json[0]["status"] == "running"
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=20)
    assert len(fake.receipts()) == 1


def test_a_stop_before_ansible_has_started(fake: FakeProject) -> None:
    # A dynamic inventory that takes its time: the signal comes while inputs are still being read.
    script = fake.write("inventory/fake/hosts", f"#!/bin/sh\ntouch {fake.root}/world/asked; sleep 20\n")
    script.chmod(0o755)
    (fake.root / "inventory/fake/hosts.yml").unlink()
    run = subprocess.Popen(fake.command("plane", "-i", "fake"), stderr=subprocess.PIPE, text=True, env=fake.environment())
    wait_for((fake.root / "world/asked").exists)
    family = below(run.pid)
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 130
    assert err.strip() == "provision: interrupted"
    wait_for(lambda: not any(Process.of(pid) for pid in family), 2)
    assert fake.receipts() == []


def test_on_a_terminal_a_table_is_drawn_and_ctrl_c_works(fake: FakeProject) -> None:
    fake.world("sleep-host", "30")
    main, side = pty.openpty()
    environment = fake.environment() | {"TERM": "xterm-256color", "COLUMNS": "110", "LINES": "30"}
    run = subprocess.Popen(
        fake.command("plane", "-i", "fake"), stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    )
    os.close(side)
    seen = b""

    def read() -> bytes:
        nonlocal seen
        try:
            seen += os.read(main, 65536)
        except OSError:
            return b"closed"
        return seen

    wait_for(lambda: b"The host task" in read())
    run.send_signal(signal.SIGINT)
    while read() != b"closed":
        pass
    assert run.wait(20) == 130
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    assert "The host task  h1, h2" in text
    assert "interrupted: waiting for Ansible to end" in text
    assert "phase host, after" in text
