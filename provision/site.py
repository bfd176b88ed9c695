"""A site: which directory is meant, and whether Ansible will be able to read it. All of it before Ansible starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from provision.errors import BadInput, did_you_mean
from provision.project import Project
from provision.yamlfiles import VaultText, load, vault_texts

STATE = ".state"
LAB = "lab"
_YAML = (".yml", ".yaml")
_INVENTORY_NAMES = ("hosts.yml", "hosts.yaml", "hosts.json", "hosts", "hosts.ini")


@dataclass(frozen=True)
class EncryptedValue:
    """A vault-encrypted value or file of the site: *where* is file and line."""

    where: str
    ciphertext: str


@dataclass(frozen=True)
class Site:
    """A directory with an inventory and its variables; *name* is the directory's.

    The lab's one inventory serves several labs side by side: *instance* is the name of the lab meant, None elsewhere.
    """

    name: str
    path: Path
    inventory: Path
    instance: str | None = None

    @property
    def state(self) -> Path:
        """What the site keeps for itself: the run lock, secrets, the key of digests. Never part of the inputs."""
        return self.path / STATE

    @property
    def run_state(self) -> Path:
        """What tells runs apart: of two labs, each has its own."""
        return self.state / self.instance if self.instance else self.state

    @property
    def secrets(self) -> Path:
        """The one home of secrets."""
        return self.state / "secrets.yml"


def resolve(project: Project, given: str) -> Site:
    """Return the site *given* as a name under `inventory/` or as a path.

    Raises:
        BadInput: there is no such directory, or no inventory in it.

    """
    as_path = os.sep in given or given in (".", "..")
    path = Path(given).expanduser().absolute() if as_path else project.inventory / given
    shown = project.shown(path)
    if not path.is_dir() and as_path:
        raise BadInput(f"site {given}: no such directory (a site is a directory with a hosts.yml)")
    if not path.is_dir():
        known = sorted(entry.name for entry in project.inventory.glob("*") if entry.is_dir())
        hint = did_you_mean(given, known)
        raise BadInput(f"site {given}: no directory {shown}{hint}; known: {', '.join(known) or 'none'}")
    found = [path / name for name in _INVENTORY_NAMES if (path / name).is_file()]
    if not found:
        raise BadInput(f"site {given}: {shown} has no hosts.yml")
    path = path.resolve()
    instance = (os.environ.get("SPARK_PLANE_LAB") or LAB) if path == project.inventory / LAB else None
    return Site(path.name, path, found[0].resolve(), instance)


def variable_files(site: Site) -> list[Path]:
    """Return the files of *site* that Ansible or the project's own plugins read as YAML."""
    found: list[Path] = []
    for directory, subdirectories, names in os.walk(site.path):
        subdirectories[:] = sorted(name for name in subdirectories if name == STATE or not name.startswith("."))
        # Below group_vars and host_vars a file needs no extension.
        bare = Path(directory).relative_to(site.path).parts[:1] in (("group_vars",), ("host_vars",))
        for name in sorted(names):
            suffix = Path(name).suffix
            if not name.startswith(".") and (suffix in _YAML or (bare and not suffix)):
                found.append(Path(directory, name))
    return found


def encrypted_values(project: Project, site: Site) -> list[EncryptedValue]:
    """Read every variable file of *site* and return what is encrypted in them.

    Raises:
        BadInput: a file is broken; file, line and column are named.

    """
    found: list[EncryptedValue] = []
    for path in variable_files(site):
        shown = project.shown(path)
        data = load(path, shown)
        if isinstance(data, VaultText):
            found.append(EncryptedValue(shown, data.ciphertext))
        else:
            found += [EncryptedValue(f"{shown}:{text.line}", text.ciphertext) for text in vault_texts(data)]
    return found
