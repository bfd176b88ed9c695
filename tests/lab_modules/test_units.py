"""`spark.plane.units` against a real systemd: which start, restart or refusal follows from which content."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lab_modules.conftest import Host
from tests.plays import Played, Task

pytestmark = pytest.mark.lab

CONF = "/etc/mods/daemon.conf"
DROP_IN = "/etc/systemd/system/mods.service.d/10-test.conf"

# Reads its configuration when it starts, as the real ones do: `good...` runs, `hang` is never ready, the rest is refused.
DAEMON = """\
#!/usr/bin/python3
import os, signal, socket, sys
conf = open("/etc/mods/daemon.conf").read().strip()
print("read", conf, flush=True)
if not conf.startswith(("good", "hang")):
    sys.exit(f"daemon.conf: key {conf!r} is not known")
if conf != "hang":
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(os.environ["NOTIFY_SOCKET"])
        s.send(b"READY=1")
signal.pause()
"""
UNIT = """\
[Unit]
StartLimitIntervalSec=600
StartLimitBurst=30
[Service]
Type=notify
ExecStart=/usr/local/sbin/mods-daemon
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
"""
ONCE = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/cat /etc/mods/daemon.conf
[Install]
WantedBy=multi-user.target
"""
LOOP = """\
[Service]
ExecStart=/bin/sh -c 'sleep 0.2; echo loop gives up; exit 7'
Restart=always
RestartSec=30
"""


DAEMON_UNIT = {"name": "mods", "state": "started", "enabled": True, "content": [CONF]}
ONESHOT = {"name": "mods-once", "state": "started", "content": [CONF]}


def files(name: str, *entries: dict[str, Any], **more: Any) -> Task:
    """A files task."""
    directories = [{"path": path} for path in ("/etc/mods", "/etc/systemd/system/mods.service.d")]
    return {"name": name, "spark.plane.files": {"files": list(entries), "directories": directories}, **more}


def units(name: str, *entries: dict[str, Any], **more: Any) -> Task:
    """A units task; the daemon with its configuration unless others are named."""
    return {"name": name, "spark.plane.units": {"units": list(entries or (DAEMON_UNIT,))}, **more}


def shell(name: str, command: str) -> Task:
    """A command, outside the modules."""
    return {"name": name, "ansible.builtin.shell": command, "changed_when": False}


INSTALL = files(
    "install",
    {"dest": "/usr/local/sbin/mods-daemon", "content": DAEMON, "mode": "0755"},
    {"dest": "/etc/systemd/system/mods.service", "content": UNIT},
    {"dest": "/etc/systemd/system/mods-once.service", "content": ONCE},
    {"dest": "/etc/systemd/system/mods-loop.service", "content": LOOP},
    {"dest": CONF, "content": "good 1\n"},
)
PID = "systemctl show -P MainPID mods"


# One long run, since each run of ansible-playbook costs over a second; the tests below read its steps.
STEPS: list[Task] = [
    INSTALL,
    units("first"),
    shell("pid after first", PID),
    units("again"),
    shell("touch", f"sleep 0.1; touch {CONF}"),
    units("touched"),
    shell("pid after touched", PID),
    files("write 2", {"dest": CONF, "content": "good 2\n"}),
    units("content differs", check_mode=True),
    units("content"),
    units("content again"),
    files("add drop-in", {"dest": DROP_IN, "content": "[Service]\nEnvironment=A=1\n"}),
    units("drop-in added"),
    units("drop-in again"),
    files("remove drop-in", {"dest": DROP_IN, "state": "absent"}),
    units("drop-in removed"),
    shell("restart", "sleep 0.1; systemctl restart mods"),
    shell("pid after restart", PID),
    units("by hand", check_mode=True),
    units("by hand adopted"),
    units("one more", {"name": "mods", "state": "started", "content": [CONF, "/etc/hostname", "/no/such"]}),
    units("one less"),
    shell("pid after one less", PID),
    shell("lose stamps", f"sleep 0.1; touch {CONF}; rm -r /var/lib/spark-plane/units"),
    units("never stamped and newer"),
    shell("stop", "systemctl stop mods"),
    units("stopped by hand"),
    units("oneshot", ONESHOT),
    units("oneshot again", ONESHOT),
    files("write 3", {"dest": CONF, "content": "good 3\n"}),
    units("both", ONESHOT, DAEMON_UNIT),
    units("off", {"name": "mods", "state": "stopped", "enabled": False}),
    units("off again", {"name": "mods", "state": "stopped", "enabled": False}),
    units("mask", {"name": "mods-masked", "state": "stopped", "masked": True}),
    units("mask again", {"name": "mods-masked", "state": "stopped", "masked": True}),
    units("masked and started", {"name": "mods-masked", "state": "started"}),
    units("not installed", {"name": "mods", "state": "started"}, {"name": "nope", "state": "started"}),
    units("not installed in check mode", {"name": "nope", "state": "started", "enabled": True}, check_mode=True),
    shell("starts", "journalctl -u mods -o cat | grep '^read '"),
    shell("enabled", "systemctl is-enabled mods || true"),
]


@pytest.fixture(scope="module")
def steps(host: Host) -> Played:
    return host.play(STEPS, "--diff")


@pytest.mark.parametrize(
    ("step", "key", "unit", "reason"),
    [
        ("first", "started", "mods.service", "was inactive"),
        ("content differs", "restarted", "mods.service", f"content of {CONF} differs from what it was started with"),
        ("content", "restarted", "mods.service", f"content of {CONF} differs from what it was started with"),
        ("drop-in added", "restarted", "mods.service", f"{DROP_IN} is newer than its start"),
        ("drop-in removed", "restarted", "mods.service", f"{DROP_IN} was removed since it was started"),
        ("never stamped and newer", "restarted", "mods.service", f"{CONF} is newer than its start"),
        ("stopped by hand", "started", "mods.service", "was inactive"),
        ("oneshot", "started", "mods-once.service", "was inactive"),
        ("both", "restarted", "mods-once.service", f"content of {CONF} differs from what it was started with"),
        ("off", "stopped", "mods.service", "was active"),
        ("not installed in check mode", "started", "nope.service", "was not there"),
    ],
)
def test_a_step_that_acts_says_what_and_why(steps: Played, step: str, key: str, unit: str, reason: str) -> None:
    result = steps[step]
    assert result["changed"]
    assert unit in result[key]
    assert result["reasons"][unit] == reason
    assert f"{unit}: {reason}" in result["diff"]["before"]


@pytest.mark.parametrize(
    ("step", "adopted"),
    [
        ("again", []),
        ("touched", []),
        ("content again", []),
        ("drop-in again", []),
        ("by hand", ["mods.service"]),
        ("by hand adopted", ["mods.service"]),
        ("one more", ["mods.service"]),
        ("one less", ["mods.service"]),
        ("oneshot again", []),
        ("off again", []),
        ("mask again", []),
    ],
)
def test_a_step_with_nothing_to_do_changes_nothing(steps: Played, step: str, adopted: list[str]) -> None:
    assert (steps[step]["changed"], steps[step]["reasons"], steps[step]["adopted"]) == (False, {}, adopted)


def test_a_process_lives_on_through_steps_with_nothing_to_do(steps: Played) -> None:
    assert steps["pid after first"]["stdout"] == steps["pid after touched"]["stdout"]
    assert steps["pid after restart"]["stdout"] == steps["pid after one less"]["stdout"]


def test_both_units_were_restarted_once_for_one_change(steps: Played) -> None:
    assert steps["both"]["restarted"] == ["mods-once.service", "mods.service"]
    # first, content, drop-in added, removed, by hand, never stamped, stopped by hand, both
    assert steps["starts"]["stdout_lines"] == ["read good 1"] + ["read good 2"] * 6 + ["read good 3"]


def test_enabled_disabled_and_masked(steps: Played) -> None:
    assert (steps["first"]["enabled"], steps["off"]["disabled"]) == (["mods.service"], ["mods.service"])
    assert steps["enabled"]["stdout"] == "disabled"
    assert steps["mask"]["masked"] == ["mods-masked.service"]
    assert "say masked: false to unmask it" in steps["masked and started"]["msg"]


def test_a_unit_that_is_not_there_stops_the_call_before_it_acts(steps: Played) -> None:
    result = steps["not installed"]
    assert result["msg"] == "nope.service is not installed on this host: systemd knows no unit file of that name"
    assert (result["changed"], result["started"]) == (False, [])
    assert steps["not installed in check mode"]["enabled"] == ["nope.service"]


def test_a_failed_start_says_why_within_its_time_and_heals(host: Host) -> None:
    hang = {**DAEMON_UNIT, "timeout": 2}
    refusals = [units(f"bad {number}") for number in range(3)]
    begun = time.monotonic()
    seen = host.play(
        [
            INSTALL,
            files("write bad", {"dest": CONF, "content": "bad\n"}),
            *refusals,
            units("bad beside good", ONESHOT, DAEMON_UNIT),
            units("loop", {"name": "mods-loop", "state": "started"}),
            shell("forget the loop", "systemctl stop mods-loop"),
            files("write hang", {"dest": CONF, "content": "hang\n"}),
            units("hang", hang),
            shell("hung", "systemctl show -P ActiveState mods"),
            units("hang again", hang),
            files("write good", {"dest": CONF, "content": "good again\n"}),
            units("healed"),
            units("healed again"),
        ]
    )
    assert time.monotonic() - begun < 60
    for number in range(3):
        message = seen[f"bad {number}"]["msg"].splitlines()
        assert message[0].startswith("mods.service did not start: it is failed/failed, result exit-code, exit status 1")
        assert any("daemon.conf: key 'bad' is not known" in line for line in message)
        assert len(message) <= 17
        assert seen[f"bad {number}"]["failed_units"] == ["mods.service"]
    beside = seen["bad beside good"]
    assert beside["failed_units"] == ["mods.service"]
    assert "Already acted on: mods-once.service." in beside["msg"]
    assert beside["changed"]
    assert "activating/auto-restart" in seen["loop"]["msg"]
    assert "loop gives up" in seen["loop"]["msg"]
    assert "mods.service did not start: it was still activating/start after 2 s" in seen["hang"]["msg"]
    assert seen["hung"]["stdout"] == "activating"
    assert "still activating" in seen["hang again"]["msg"]
    assert seen["healed"]["restarted"] == ["mods.service"]
    assert not seen["healed again"]["changed"]


def test_after_a_reboot_units_are_adopted_and_a_changed_one_restarted(host: Host) -> None:
    host.play([INSTALL, units("up", DAEMON_UNIT, {**ONESHOT, "enabled": True})])
    host.reboot()
    seen = host.play(
        [
            shell("pid", PID),
            units("adopt", DAEMON_UNIT, ONESHOT),
            shell("pid again", PID),
            units("quiet", DAEMON_UNIT, ONESHOT),
        ]
    )
    assert (seen["adopt"]["changed"], seen["adopt"]["adopted"]) == (False, ["mods.service", "mods-once.service"])
    assert seen["pid"]["stdout"] == seen["pid again"]["stdout"] != "0"
    assert seen["quiet"]["adopted"] == []
    host.reboot()
    seen = host.play(
        [
            files("write", {"dest": CONF, "content": "good after boot\n"}),
            units("changed", DAEMON_UNIT, ONESHOT),
            units("quiet", DAEMON_UNIT, ONESHOT),
        ]
    )
    assert seen["changed"]["restarted"] == ["mods.service", "mods-once.service"]
    assert seen["changed"]["reasons"]["mods.service"] == f"{CONF} is newer than its start"
    assert not seen["quiet"]["changed"]


SLOW = "/etc/systemd/system/mods.service.d/20-slow.conf"


def test_a_run_killed_in_the_middle_of_a_restart_is_healed_by_the_next(host: Host) -> None:
    """The module and its systemctl die by SIGKILL while the unit is starting; systemd goes on, the next run adopts."""
    slow = files("slow", {"dest": SLOW, "content": "[Service]\nExecStartPre=/bin/sleep 3\n"})
    begin = {**units("cut short"), "async": 60, "poll": 0}
    kill = shell(
        "kill",
        "for i in $(seq 100); do for p in /proc/[0-9]*; do"
        " if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '^[^ ]*systemctl --no-ask-password.*start.*mods'; then"
        " kill -9 $(awk '/^PPid/ {print $2}' $p/status) ${p#/proc/}; exit 0; fi; done; sleep 0.1; done; exit 1",
    )
    seen = host.play(
        [
            INSTALL,
            units("up"),
            slow,
            files("write", {"dest": CONF, "content": "good and slow\n"}),
            begin,
            kill,
            shell("stamp", "cat /var/lib/spark-plane/units/mods.service.json"),
            units("next"),
            shell("pid", PID),
            units("last"),
            shell("pid again", PID),
            shell("starts", "journalctl -u mods -o cat | grep -c '^read good and slow'"),
            files("not slow", {"dest": SLOW, "state": "absent"}),
            units("restored"),
        ]
    )
    assert not seen["kill"]["failed"]
    assert json.loads(seen["stamp"]["stdout"])["digest"] != ""
    assert (seen["next"]["changed"], seen["next"]["adopted"]) == (False, ["mods.service"])
    assert (seen["last"]["changed"], seen["last"]["adopted"]) == (False, [])
    assert seen["pid"]["stdout"] == seen["pid again"]["stdout"]
    assert seen["starts"]["stdout"] == "1"
    assert seen["restored"]["restarted"] == ["mods.service"]


def test_check_mode_on_a_host_without_any_of_it_changes_no_file(host: Host) -> None:
    before = host.files()
    wanted = {"dest": "/etc/other/new.conf", "content": "x", "validate": "other-daemon --check %s", "owner": "other"}
    written = files("files", wanted, {"dest": CONF, "content": "good pending\n"})
    other = {"name": "other", "state": "started", "enabled": True, "content": ["/etc/other/new.conf"]}
    task = units("units", other, DAEMON_UNIT)
    task["spark.plane.units"]["pending"] = [CONF]
    seen = host.play([written, task], "--check", "--diff")
    assert seen["files"]["changed_files"] == ["/etc/other/new.conf", CONF]
    assert len(seen["files"]["notes"]) == 3
    assert seen["units"]["started"] == ["other.service"]
    assert seen["units"]["reasons"]["mods.service"] == f"{CONF} would be written"
    assert "other.service is not installed on this host" in seen["units"]["notes"][0]
    assert host.files() == before
