"""Up and down: idempotent, and healed after a kill at any point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.lab import Lab, NeedError, cgroups, network
from provision.lab.paths import PROJECT_ROOT
from provision.lab.process import Process

pytestmark = pytest.mark.lab


def leftovers(lab: Lab) -> list[str]:
    """What of a lab can still be seen on the machine."""
    found = [f"namespace {name}" for name in network.namespaces(lab.name)]
    found += [f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines() if f"{lab.paths.root}/" in line]
    found += [f"cgroup {one.group(lab.name)}" for one in cgroups.hierarchies() if one.group(lab.name).exists()]
    found += [f"file {lab.paths.root}"] if lab.paths.root.exists() else []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            groups = (directory / "cgroup").read_text()
        except OSError:
            continue
        # What is dead but not yet collected by the machine's own init (its command line is empty) holds nothing.
        if (
            command
            and int(directory.name) != os.getpid()
            and (f"/{lab.name}/" in groups or f"{lab.paths.root}/" in command or f" {lab.name}." in command)
        ):
            found.append(f"process {directory.name} {command}")
    return found


def start(lab: Lab, *words: str) -> subprocess.Popen[bytes]:
    """`provision lab WORDS` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "provision", "lab", *words, "--name", lab.name],
        cwd=PROJECT_ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    """SIGKILL the launcher, and only it, `seconds` after its start."""
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def pids(lab: Lab) -> list[int | None]:
    return [host.pid for host in lab.status().hosts]


def test_up_twice_keeps_the_hosts_that_run(lab: Lab) -> None:
    before = pids(lab)
    lab.up()
    lab.up(5, "spark")
    assert pids(lab) == before
    assert None not in before
    assert lab.status().up


def test_up_with_other_hosts_is_refused(lab: Lab) -> None:
    with pytest.raises(NeedError, match="has 5 hosts of flavour spark, asked for 3"):
        lab.up(3)
    with pytest.raises(NeedError, match="asked for 5 of flavour bare"):
        lab.up(flavour="bare")


def test_down_leaves_nothing(small: Lab, lab: Lab) -> None:
    machine_links = network_of_machine()
    small.up(2, "bare")
    assert small.exec("spark-b", ["true"]).returncode == 0
    assert leftovers(small)
    init = Process.of(small.status().hosts[0].pid or 0)
    small.down()
    small.down()
    assert leftovers(small) == []
    assert not init.alive
    assert network_of_machine() == machine_links
    # Side by side: the other lab did not notice.
    assert lab.exec("spark-a", ["true"]).returncode == 0


def network_of_machine() -> str:
    return subprocess.run(["ip", "-o", "-br", "address"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("seconds", [0.45, 0.9])
def test_a_launcher_killed_in_up_is_healed(seconds: float, small: Lab) -> None:
    kill_after(start(small, "up", "--hosts", "2", "--flavour", "bare"), seconds)
    small.up(2, "bare")
    assert [small.exec(host, ["true"]).returncode for host in small.hosts()] == [0, 0]
    small.down()
    assert leftovers(small) == []


def test_a_launcher_killed_in_down_is_healed(small: Lab) -> None:
    small.up(2, "bare")
    kill_after(start(small, "down"), 0.3)
    small.up(2, "bare")
    assert [small.exec(host, ["true"]).returncode for host in small.hosts()] == [0, 0]
    kill_after(start(small, "down"), 0.4)
    small.down()
    assert leftovers(small) == []


@pytest.mark.long
@pytest.mark.parametrize("step", range(14))
def test_a_kill_at_any_point_is_healed(step: int, small: Lab) -> None:
    kill_after(start(small, "up", "--hosts", "3", "--flavour", "bare"), 0.2 + step * 0.12)
    if step % 2:
        small.down()
        assert leftovers(small) == []
    small.up(3, "bare")
    assert [small.exec(host, ["true"]).returncode for host in small.hosts()] == [0, 0, 0]
    kill_after(start(small, "down"), 0.2 + step * 0.02)
    small.down()
    assert leftovers(small) == []


def test_two_launchers_at_once_make_one_lab(small: Lab) -> None:
    launchers = [start(small, "up", "--hosts", "1", "--flavour", "bare") for _ in range(2)]
    assert [launcher.wait(60) for launcher in launchers] == [0, 0]
    assert [(host.state, host.boots) for host in small.status().hosts] == [("running", 1)]


def test_up_after_the_machine_was_restarted(small: Lab) -> None:
    """Files are all that is left then."""
    small.up(2, "bare")
    for host in small.hosts():
        small.power.stop(host)
    cgroups.remove(small.name)
    network.remove(small.name)
    small.up()
    assert [small.exec(host, ["true"]).returncode for host in small.hosts()] == [0, 0]


def test_a_killed_supervisor_takes_its_host_along(small: Lab) -> None:
    small.up(1, "bare")
    init = Process.of(small.status().hosts[0].pid or 0)
    supervisor = small.power.record("spark-a", "supervisor")
    assert supervisor
    supervisor.kill()
    assert init.wait(5)
    assert [host.state for host in small.status().hosts] == ["off"]
    small.up()
    assert small.exec("spark-a", ["true"]).returncode == 0


@pytest.mark.long
def test_pure_v2_boots(small: Lab) -> None:
    """On a machine with cgroup v2 alone; made here in a mount namespace where the v1 hierarchies are unmounted."""
    if cgroups.layout(cgroups.hierarchies()) != "hybrid":
        pytest.skip("not a hybrid machine")
    script = """
        set -e
        umount -R /sys/fs/cgroup
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        "$0" -m provision lab up --hosts 2 --name "$1"
        "$0" -m provision lab status --json --name "$1"
        "$0" -m provision lab exec --name "$1" spark-a -- systemctl is-system-running
        "$0" -m provision lab exec --name "$1" spark-a -- test -e /sys/fs/cgroup/cgroup.controllers
        "$0" -m provision lab down --name "$1"
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, sys.executable, small.name],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"cgroups": "v2"' in done.stdout
    assert leftovers(small) == []
