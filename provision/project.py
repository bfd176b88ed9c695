"""Where things are: every path hangs on the project's root, so that a test can bring a project of its own."""

from __future__ import annotations

import configparser
import functools
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from provision.errors import BadInput


@dataclass(frozen=True)
class Git:
    """The commit the working tree stands on (None outside a repository) and whether files differ from it."""

    commit: str | None
    dirty: bool


@dataclass(frozen=True)
class Project:
    """A checkout: `site.yml`, `playbooks/`, `roles/`, `inventory/` and `runs/` under *root* (absolute)."""

    root: Path

    @classmethod
    def here(cls) -> Project:
        """Return the checkout this package lies in."""
        return cls(Path(__file__).resolve().parent.parent)

    @property
    def site_yml(self) -> Path:
        """The order of phases."""
        return self.root / "site.yml"

    @property
    def ansible_cfg(self) -> Path:
        """Ansible's settings for every run."""
        return self.root / "ansible.cfg"

    @property
    def inventory(self) -> Path:
        """The directory of sites."""
        return self.root / "inventory"

    @property
    def runs(self) -> Path:
        """The directory of receipts; SPARK_PLANE_RUNS puts it elsewhere."""
        return Path(os.environ.get("SPARK_PLANE_RUNS") or self.root / "runs")

    def shown(self, path: Path) -> str:
        """Return *path* as a reader of a message wants it: relative to the root when it lies below."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def ansible_setting(self, section: str, key: str) -> str | None:
        """Return one value of `ansible.cfg`, or None.

        Raises:
            BadInput: the file is not there, or broken.

        """
        return self._ansible_settings.get(section, key, fallback=None)

    @functools.cached_property
    def _ansible_settings(self) -> configparser.ConfigParser:
        parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(";",))
        try:
            parser.read_string(self.ansible_cfg.read_text(encoding="utf-8"))
        except (OSError, configparser.Error) as error:
            raise BadInput(f"{self.shown(self.ansible_cfg)}: {str(error).splitlines()[0]}") from None
        return parser

    def environment(self) -> dict[str, str]:
        """Return what every ansible process of this project is given on top of the caller's environment.

        ansible-runner turns host key checking off unless the environment says otherwise: what `ansible.cfg` says is
        repeated there. The interpreter's own directory comes first in PATH, so an environment that was not activated works.
        """
        checking = (self.ansible_setting("defaults", "host_key_checking") or "True").strip()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {
            "ANSIBLE_CONFIG": str(self.ansible_cfg),
            "ANSIBLE_HOST_KEY_CHECKING": os.environ.get("ANSIBLE_HOST_KEY_CHECKING", checking),
            "PATH": path,
        }

    def git(self) -> Git:
        """Return commit and state of the working tree; without git, or outside a repository, the commit is None."""
        try:
            done = subprocess.run(
                ["git", "-C", str(self.root), "--no-optional-locks", "status", "--porcelain=v2", "--branch"],
                capture_output=True,
                text=True,
                check=True,
                timeout=20,
            )
        except (OSError, subprocess.SubprocessError):
            return Git(None, False)
        lines = done.stdout.splitlines()
        oids = [line.split()[-1] for line in lines if line.startswith("# branch.oid")]
        commit = oids[0] if oids and oids[0] != "(initial)" else None
        return Git(commit, any(not line.startswith("#") for line in lines))

    def versions(self) -> dict[str, str]:
        """Return the versions a receipt names."""
        found = {"python": ".".join(map(str, sys.version_info[:3]))}
        for name in ("ansible-core", "ansible-runner"):
            found[name] = metadata.version(name)
        found["spark-plane"] = self._version()
        return found

    def _version(self) -> str:
        try:
            data = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError):
            return "unknown"
        return str(data.get("project", {}).get("version", "unknown"))
