"""A lab with a copy of the lab's site: what the tests start, look at and compare."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
# What differs between two hosts, or two boots, that are otherwise the same: identities, caches, times.
VOLATILE = re.compile(
    r"etc/(machine-id|mtab|docker/key\.json|ssh/ssh_host_.*|\.pwd\.lock|ld\.so\.cache|hosts|hostname|subu?g?id-?)\Z"
    r"|.*__pycache__.*|usr/share/mime/.*"
)
# Started on demand, ended when idle.
PASSING = re.compile(r"(user@\d+|systemd-(hostnamed|timedated|localed)|dbus-.*)\.service\Z")


@dataclass(frozen=True)
class Plane:
    """One lab and one site; runs of several labs do not meet."""

    lab: Lab
    site: Path

    @property
    def hosts(self) -> list[str]:
        return self.lab.hosts()

    @property
    def environment(self) -> dict[str, str]:
        own = {"SPARK_PLANE_LAB": self.lab.name, "SPARK_PLANE_RUNS": str(self.site.parent / "runs")}
        return {**os.environ, **own, "NO_COLOR": "1", "COLUMNS": "240"}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "provision", "plane", "-i", str(self.site), *words]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a run and return it; its plain lines come on stdout."""
        return subprocess.Popen(
            self.argv(*words), cwd=ROOT, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run to the end; a wrong exit code fails with what was printed."""
        ran = subprocess.run(self.argv(*words), cwd=ROOT, env=self.environment, text=True, capture_output=True, timeout=400)
        assert expect is None or ran.returncode == expect, f"exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran

    def receipt(self, ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        """The receipt that a run with --json printed."""
        return dict(json.loads(ran.stdout))

    def playbook(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The second used-by form: Ansible alone."""
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(self.site), "site.yml", *words]
        return subprocess.run(argv, cwd=ROOT, env=self.environment, text=True, capture_output=True, timeout=400)

    def write(self, host: str, path: str, text: str) -> None:
        """Write a file on a host as somebody else would."""
        self.lab.exec(host, ["sh", "-c", f"mkdir -p {shlex.quote(str(Path(path).parent))}"], check=True)
        self.lab.exec(host, ["sh", "-c", f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"], check=True)

    def read(self, host: str, *argv: str) -> str:
        """What a command prints on a host."""
        return self.lab.exec(host, list(argv), check=True).stdout

    def everywhere(self, *argv: str) -> dict[str, str]:
        """What a command prints on every host."""
        with ThreadPoolExecutor(5) as pool:
            return dict(zip(self.hosts, pool.map(lambda host: self.read(host, *argv), self.hosts), strict=True))

    def services(self) -> dict[str, dict[str, str]]:
        """Main pid and invocation of every running service, by host."""
        shown = self.everywhere(
            "sh", "-c", "systemctl show --type=service --state=running --property=Id,MainPID,InvocationID '*'"
        )
        found: dict[str, dict[str, str]] = {}
        for host, text in shown.items():
            blocks = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n"))
            # Sessions, and services that end by themselves when nobody asks them any more, come and go.
            found[host] = {
                block["Id"]: f"{block['MainPID']} {block['InvocationID']}"
                for block in blocks
                if block.get("Id") and not PASSING.match(block["Id"])
            }
            assert {"docker.service", "chrony.service", "ssh.service"} <= set(found[host])
        return found

    def written(self) -> dict[str, dict[str, str]]:
        """Digest of every file that a host has beyond its image under /etc, /usr and /var/lib, by host."""
        return {host: _digests(self.lab.upper(host)) for host in self.hosts}

    def end_state(self) -> dict[str, Any]:
        """What a finished run leaves: files by digest, units, packages and holds, by host."""
        packages = self.everywhere("dpkg-query", "-W", "-f", "${Package} ${Version} ${Status}\\n")
        units = self.everywhere("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "--no-pager")
        active = self.everywhere("systemctl", "is-active", "docker", "chrony")
        info = self.everywhere("docker", "info", "--format", "{{.Driver}} {{.LiveRestoreEnabled}} {{.CgroupDriver}}")
        files = {
            host: {name: digest for name, digest in found.items() if name.startswith(("etc/", "usr/")) and _kept(name)}
            for host, found in self.written().items()
        }
        return {
            host: {
                "files": files[host],
                "packages": packages[host],
                "units": units[host],
                "active": active[host],
                "docker": info[host],
            }
            for host in self.hosts
        }


def _kept(name: str) -> bool:
    return not VOLATILE.match(name)


def _digests(upper: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for top in ("etc", "usr", "var/lib"):
        for path in sorted((upper / top).rglob("*")):
            name = str(path.relative_to(upper))
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            elif path.is_file():
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            elif not path.is_dir():
                found[name] = "removed or special"
    return found


def copy_site(where: Path, source: str = "lab") -> Path:
    """A site of its own: the same inventory, another place, so that two labs never share a lock."""
    target = where / "site"
    shutil.copytree(ROOT / "inventory" / source, target, ignore=shutil.ignore_patterns(".state"))
    return target
