"""What Ansible makes of a site's inventory, asked of a process that runs beside other preparations."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from provision.errors import BadInput, ProvisionError
from provision.project import Project
from provision.site import EncryptedValue, Site

# Reading an inventory takes under a second; a dynamic one may call a service. Then something hangs.
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Inventory:
    """Groups and hosts by name; *chosen* are the hosts that `--limit` leaves; *secrets* the decrypted values."""

    groups: dict[str, list[str]]
    hosts: list[str]
    chosen: list[str]
    lab: bool
    connections: dict[str, dict[str, Any]]
    secrets: list[str]


class InventoryQuery:
    """A question under way: started at once, answered by `answer()`."""

    def __init__(
        self,
        project: Project,
        site: Site,
        encrypted: list[EncryptedValue],
        *,
        limit: str | None = None,
        vault_password_file: Path | None = None,
        connections: bool = False,
    ) -> None:
        self._where = project.shown(site.inventory)
        self._limit = limit
        request = {
            "inventory": str(site.inventory),
            "shown": self._where,
            "limit": limit,
            "vault_password_file": str(vault_password_file) if vault_password_file else None,
            "connections": connections,
            "encrypted": [asdict(value) for value in encrypted],
        }
        package = Path(__file__).resolve().parent.parent
        search = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
        environment = os.environ | project.environment() | {"PYTHONPATH": search, "ANSIBLE_NOCOLOR": "1"}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "provision.inventory_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            # Its own session: an inventory script it started ends with it.
            start_new_session=True,
        )
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(request))
        self._child.stdin.close()
        self._child.stdin = None

    def answer(self) -> Inventory:
        """Wait for the answer and judge it.

        Raises:
            BadInput: the inventory cannot be read or decrypted, has no single server, or `--limit` leaves no host.

        """
        try:
            out, err = self._child.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise BadInput(f"{self._where}: not read within {_PATIENCE_S:.0f} s") from None
        finally:
            self.abandon()
        if self._child.returncode:
            last = (err.strip().splitlines() or ["no word of why"])[-1]
            raise ProvisionError(f"{self._where}: reading it failed: {last}")
        data = json.loads(out)
        problems = data.pop("problems")
        if problems:
            raise BadInput(*problems)
        inventory = Inventory(**data)
        self._judge(inventory)
        return inventory

    def abandon(self) -> None:
        """End the process when its answer is no longer wanted."""
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()

    def _judge(self, inventory: Inventory) -> None:
        servers = inventory.groups.get("server", [])
        if not inventory.hosts:
            raise BadInput(f"{self._where}: no hosts")
        if len(servers) != 1:
            seen = f"{len(servers)} hosts ({', '.join(servers)})" if servers else "no host"
            raise BadInput(f"{self._where}: group server holds {seen}; exactly one is wanted")
        if not inventory.chosen:
            raise BadInput(f"--limit {self._limit}: leaves no host; known: {', '.join(inventory.hosts)}")
