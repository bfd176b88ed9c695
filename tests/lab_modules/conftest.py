"""One lab host for the modules' tests, of a lab of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provision.lab import Lab, NeedError
from tests.plays import ROOT, Played, Task, play

NAME = "mods"
HOST = "spark-a"


class Host:
    """The host, the modules on it, and a shell beside them."""

    def __init__(self, lab: Lab, tree: Path) -> None:
        self.lab = lab
        self.tree = tree

    def play(self, tasks: list[Task], *options: str, **variables: Any) -> Played:
        """Run tasks on the host over ssh, as the project's ansible.cfg has it."""
        return play(
            self.tree,
            tasks,
            "-i",
            str(ROOT / "inventory/lab/hosts.yml"),
            "--limit",
            HOST,
            *options,
            environment={"SPARK_PLANE_LAB": NAME},
            **variables,
        )

    def sh(self, script: str) -> str:
        """Run a shell script on the host and return what it printed."""
        done = self.lab.exec(HOST, ["sh", "-c", script])
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout).strip()

    def reboot(self) -> None:
        """Switch the host off and on again."""
        self.lab.power_off(HOST)
        self.lab.power_on(HOST)

    def files(self) -> set[str]:
        """Every path this host has changed under /etc, /usr and /var/lib, with its change time."""
        upper = self.lab.upper(HOST)
        return {
            f"{path.relative_to(upper)} {path.lstat().st_ctime_ns}"
            for top in ("etc", "usr", "var/lib")
            for path in (upper / top).rglob("*")
            if not path.is_dir()
        }


@pytest.fixture(scope="package")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The host, freshly booted, and taken down at the end."""
    lab = Lab(NAME, say=lambda _: None)
    try:
        lab.down()
        lab.up(hosts=1)
    except NeedError as err:
        pytest.skip(str(err))
    try:
        yield Host(lab, tmp_path_factory.mktemp("mods"))
    finally:
        lab.down()
