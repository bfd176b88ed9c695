"""A lab: a few real hosts on one Linux machine, each with its own init, network and Docker."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from provision.lab import cables, cgroups, identity, needs, network
from provision.lab.boot import HostConfig
from provision.lab.errors import LabError, NeedError
from provision.lab.layers import FLAVOURS, Cache, Say
from provision.lab.paths import HostPaths, LabPaths, check_name, default_lab, home, host_names
from provision.lab.power import Power
from provision.lab.process import Process, locked, read_json, write_json
from provision.lab.standins import Component, components
from provision.lab.state import HostStatus, LabStatus

DEFAULT_HOSTS = 5
DEFAULT_FLAVOUR = "spark"
# An `up` that boots from a cold cache is the longest thing another command waits for.
LOCK_SECONDS = 300


class Lab:
    """The lab called `name`, kept under `home`. Making the object touches nothing."""

    def __init__(self, name: str | None = None, home_directory: Path | None = None, say: Say = lambda _: None) -> None:
        self.name = check_name(name or default_lab())
        self.paths = LabPaths((home_directory or home()).absolute(), self.name)
        self._say = say
        self.power = Power(self.paths, lambda host, argv, seconds: self.exec(host, argv, timeout=seconds), say)

    def running(self, host: str) -> bool:
        """Whether a host's init runs (it may still be booting)."""
        return self.power.running(host)

    # Up and down

    def up(self, hosts: int | None = None, flavour: str | None = None) -> None:
        """Make the lab if need be and boot every host that is off. Repeats safely after any interruption.

        Raises NeedError where the machine lacks something, or where the lab exists with other hosts or another
        flavour than asked for; LabError where a step fails.
        """
        needs.check(self.paths.home)
        if flavour is not None and flavour not in FLAVOURS:
            raise NeedError(f"flavour {flavour!r}: there are {', '.join(FLAVOURS)}")
        names = host_names(hosts or DEFAULT_HOSTS)
        cache = Cache(self.paths.cache, self._say)
        known = read_json(self.paths.state)
        layers = [] if known else cache.layers(flavour or DEFAULT_FLAVOUR)
        with self._locked("lab up"):
            known = read_json(self.paths.state)
            if known is None:
                layers = layers or cache.layers(flavour or DEFAULT_FLAVOUR)
                self._create(names, flavour or DEFAULT_FLAVOUR, layers, cache.repository())
            else:
                self._refuse_another(known, names if hosts else None, flavour)
            present = self.hosts()
            off = [host for host in present if not self.running(host)]
            needs.raise_limits(self._say)
            fresh = network.converge(self.paths, present, off)
            self.power.start(off, fresh)
            self.power.await_login(present)

    def down(self) -> None:
        """Take the lab away: processes, namespaces, control groups and files. Nothing to take away is fine."""
        with self._locked("lab down"):
            self._clear()

    def hosts(self) -> list[str]:
        """The lab's hosts in rank order; empty when it is down."""
        known = read_json(self.paths.state)
        return [str(host) for host in known["hosts"]] if known else []

    def status(self) -> LabStatus:
        """The lab as it is now, read without a lock."""
        known = read_json(self.paths.state)
        names = self.hosts()
        return LabStatus(
            name=self.name,
            home=str(self.paths.home),
            up=bool(names) and all(self.running(host) for host in names),
            flavour=str(known["flavour"]) if known else None,
            cgroups=cgroups.layout(cgroups.hierarchies()),
            hosts=[self._host_status(names, host) for host in names],
            components=components(),
        )

    def standins(self) -> list[Component]:
        """The components that are not the real thing."""
        return [component for component in components() if not component.real]

    # One host

    def ssh(self, host: str) -> list[str]:
        """The ssh command for a host, as an argument list; a remote command may be appended.

        No address is dialled: the connection goes through the host's own network namespace.
        """
        self._known(host)
        proxy = f"ip netns exec {self.paths.host(host).netns} socat STDIO TCP:127.0.0.1:22"
        options = {
            "IdentityFile": str(self.paths.key),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.paths.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "ProxyCommand": proxy,
            "ControlMaster": "auto",
            "ControlPersist": "60",
            "ControlPath": str(self.paths.control / "lab-%n"),
            "LogLevel": "ERROR",
        }
        arguments = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        return ["ssh", "-F", "none", *arguments, "-l", "root", host]

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """The ssh command that runs `argv` on a host, each word kept as it is."""
        return [*self.ssh(host), shlex.join(argv)]

    def exec(
        self, host: str, argv: Sequence[str], *, timeout: float | None = 120, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host by ssh; `timeout` in seconds. Output is captured as text."""
        return subprocess.run(
            self.command(host, argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=check,
        )

    def power_off(self, host: str) -> None:
        """Pull the plug: every process of the host is killed at once, and its links go down."""
        self._known(host)
        with self._locked("lab power off"):
            self.power.stop(host)
            network.unplug(self.paths.host(host).netns)

    def power_on(self, host: str) -> None:
        """Boot a host that is off and wait until it takes a login. A running one is left alone."""
        self._known(host)
        with self._locked("lab power on"):
            off = [] if self.running(host) else [host]
            fresh = network.converge(self.paths, self.hosts(), off)
            self.power.start(off, fresh)

    def reset(self, host: str) -> None:
        """Give a host a fresh root file system and empty volumes, and boot it. Name and keys stay."""
        self._known(host)
        with self._locked("lab reset"):
            self.power.stop(host)
            files = self.paths.host(host)
            wiped = [str(path) for path in (files.upper, files.work, files.volumes)]
            subprocess.run(["rm", "-rf", "--one-file-system", *wiped], check=True)
            self._make_directories(files)
            fresh = network.converge(self.paths, self.hosts(), [host])
            self.power.start([host], fresh)

    def upper(self, host: str) -> Path:
        """Overlay upper directory of a host: the files it wrote, and nothing else."""
        self._known(host)
        return self.paths.host(host).upper

    def cpu_seconds(self, host: str) -> float:
        """CPU time all processes of a host have used since the lab was made, in seconds."""
        self._known(host)
        return cgroups.cpu_seconds(self.name, host)

    # Inside

    def _clear(self) -> None:
        """Remove every trace of the lab, whatever state an interrupted command left it in."""
        directories = self.paths.root / "hosts"
        names = sorted(path.name for path in directories.iterdir()) if directories.is_dir() else []
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(self.power.stop, names))
        # Connections into the hosts (socat) live in their namespaces, not in their control groups.
        for netns in network.namespaces(self.name):
            for pid in network.pids(netns):
                process = Process.find(pid)
                if process:
                    process.kill()
        if not cgroups.remove(self.name):
            raise LabError(f"lab {self.name}: its control groups would not empty within 10 s")
        network.remove(self.name)
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.paths.root)], check=True)

    def _locked(self, what: str) -> Any:
        return locked(self.paths.lock, f"{what} ({self.name})", LOCK_SECONDS)

    def _known(self, host: str) -> None:
        names = self.hosts()
        if not names:
            raise NeedError(f"lab {self.name} is down: bring it up with `lab up`")
        if host not in names:
            raise NeedError(f"host {host!r}: lab {self.name} has {', '.join(names)}")

    def _refuse_another(self, known: dict[str, Any], names: list[str] | None, flavour: str | None) -> None:
        there = f"{len(known['hosts'])} hosts of flavour {known['flavour']}"
        wanted = f"{len(names or known['hosts'])} of flavour {flavour or known['flavour']}"
        if names not in (None, known["hosts"]) or flavour not in (None, known["flavour"]):
            raise NeedError(f"lab {self.name} has {there}, asked for {wanted}: take it down first, or name another lab")
        gone = [layer for layer in known["layers"] if not Path(layer).is_dir()]
        if gone:
            raise NeedError(f"lab {self.name} was made from {gone[0]}, which is gone: take it down and up again")

    def _create(self, names: list[str], flavour: str, layers: list[Path], repository: Path) -> None:
        # No state file: what lies here is the rest of an interrupted `up` or `down`.
        self._clear()
        paths = self.paths
        paths.control.mkdir(parents=True, exist_ok=True, mode=0o700)
        paths.root.chmod(0o755)
        identity.make_key(paths.key, f"lab {self.name}")
        hostnames = identity.factory_names(self.name, names)
        for host in names:
            files = paths.host(host)
            self._make_directories(files)
            identity.write_seed(paths, host, hostnames[host])
            config = HostConfig(
                lab=self.name,
                host=host,
                hostname=hostnames[host],
                product_uuid=identity.product_uuid(self.name, host),
                directory=str(files.root),
                layers=[str(layer) for layer in layers],
                repository=str(repository),
                netns=files.netns,
                management=cables.management(names, host),
                address=cables.address(names, host),
                fabric=cables.fabric_interfaces(names, host),
                hcas=host in cables.ring(names),
            )
            write_json(files.config, config.as_json())
        identity.write_known_hosts(paths, names)
        state = {
            "name": self.name,
            "hosts": names,
            "flavour": flavour,
            "layers": [str(layer) for layer in layers],
            "repository": str(repository),
        }
        write_json(paths.state, state)

    @staticmethod
    def _make_directories(files: HostPaths) -> None:
        for directory in (files.upper, files.work, files.mountpoint, files.shadow, files.volumes):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)

    def _host_status(self, names: list[str], host: str) -> HostStatus:
        config = read_json(self.paths.host(host).config) or {}
        init = self.power.record(host, "init")
        ring = cables.ring(names)
        running = self.running(host)
        return HostStatus(
            host=host,
            hostname=str(config.get("hostname", "")),
            state="running" if running else "off",
            pid=init.pid if running and init else None,
            boots=int((read_json(self.paths.host(host).supervisor) or {}).get("boots", 0)),
            address=cables.address(names, host),
            management=cables.management(names, host),
            rank=ring.index(host) if host in ring else None,
            fabric=cables.fabric_interfaces(names, host),
            netns=self.paths.host(host).netns,
        )
