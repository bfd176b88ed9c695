"""The process that keeps one host running: boots it, boots it again after `reboot`, ends when it is powered off.

    python -m provision.lab.supervise HOST_JSON LOCK_FD FRESH

FRESH is 1 when the host's network namespace was just made, 0 when an earlier boot has used it.

It is the one process to kill for a hard power-off: the kernel then kills the process below it and with that the
host's init, and a pid namespace without init holds nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path

from provision.lab import cgroups, kernel, network, settings
from provision.lab.boot import HostConfig, boot
from provision.lab.paths import NETNS_DIR
from provision.lab.process import Process, write_json

# What unshare(1) reports as 129 and 130: reboot(2) ends a pid namespace's init with these signals.
REBOOT = signal.SIGHUP
POWER_OFF = signal.SIGINT


def main(arguments: list[str]) -> int:
    """Detach from the launcher and run the host until it is powered off."""
    config_file, lock, fresh = Path(arguments[0]), int(arguments[1]), arguments[2] == "1"
    config = HostConfig(**json.loads(config_file.read_text()))
    if os.fork():
        os._exit(0)
    os.setsid()
    os.set_inheritable(lock, False)
    record = config_file.parent / "supervisor.json"
    me = Process.of(os.getpid())
    write_json(record, {"supervisor": me.as_json(), "init": None, "boots": 0})
    cgroups.join(cgroups.create(config.lab, cgroups.SUPERVISORS))
    boots = 0
    while True:
        boots += 1
        if boots > 1 or not fresh:
            network.renew(config.netns, config.management, config.address, config.fabric)
        ended = _run_once(config, record, me, boots)
        print(f"{config.host}: boot {boots} ended by {signal.Signals(ended).name if ended else 'init itself'}", flush=True)
        if ended != REBOOT:
            break
    network.unplug(config.netns)
    write_json(record, {"supervisor": None, "init": None, "boots": boots, "ended": ended})
    return 0


def _run_once(config: HostConfig, record: Path, me: Process, boots: int) -> int:
    """One boot of the host; returns the signal that ended its init (0: it exited)."""
    groups = cgroups.create(config.lab, config.host)
    middle = os.fork()
    if middle == 0:
        try:
            os._exit(_middle(config, groups, record, me, boots))
        except BaseException:
            traceback.print_exc()
            os._exit(70)
    _, status = os.waitpid(middle, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code in (REBOOT, POWER_OFF) else max(0, -code)


def _middle(config: HostConfig, groups: list[Path], record: Path, me: Process, boots: int) -> int:
    """Enter new namespaces and wait for the init in them; exits with the number of the signal that ended it.

    A process of its own, because a pid namespace for children can be unshared once in a process's life.
    """
    _die_with(os.getppid(), me.pid)
    kernel.enter_netns(NETNS_DIR / config.netns)
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWPID)
    ours, theirs = socket.socketpair()
    init = os.fork()
    if init == 0:
        try:
            ours.close()
            # Each side speaks once, so that init is never left alone: it asks to die with its parent before the
            # parent goes on, and goes on only when the parent was alive to record it.
            kernel.die_with_parent(signal.SIGKILL)
            theirs.send(b"1")
            if theirs.recv(1):
                cgroups.join(groups)
                kernel.unshare(kernel.CLONE_NEWCGROUP)
                os.setsid()
                boot(config, theirs)
        except BaseException:
            traceback.print_exc()
        os._exit(70)
    theirs.close()
    ours.recv(1)
    write_json(record, {"supervisor": me.as_json(), "init": Process.of(init).as_json(), "boots": boots})
    ours.send(b"1")
    _, stores, _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    for store in stores:
        settings.watch(store, init)
    _, status = os.waitpid(init, 0)
    code = os.waitstatus_to_exitcode(status)
    return -code if code < 0 else 0


def _die_with(parent: int, expected: int) -> None:
    """End when the parent ends, also when it ended before the request was made."""
    kernel.die_with_parent(signal.SIGKILL)
    if parent != expected or os.getppid() != expected:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
