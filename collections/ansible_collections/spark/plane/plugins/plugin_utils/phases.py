"""The phases of `site.yml`, and the roles and hosts of each, read from the playbooks themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .variables import load_yaml

# Ansible's own tag words (ansible-core docs, "Special tags").
SPECIAL_TAGS = frozenset({"all", "always", "never", "tagged", "untagged"})
_IMPORT = ("ansible.builtin.import_playbook", "import_playbook")
_ROLE = ("ansible.builtin.import_role", "ansible.builtin.include_role", "import_role", "include_role")
_TASK_LISTS = ("pre_tasks", "tasks", "post_tasks", "block", "rescue", "always")


@dataclass(frozen=True)
class Use:
    """One role on the hosts of one play."""

    role: str
    hosts: str


@dataclass(frozen=True)
class Phase:
    """One entry of site.yml."""

    name: str
    line: str
    tags: frozenset[str]
    uses: tuple[Use, ...] = field(default=())

    def selected(self, run: frozenset[str], skip: frozenset[str]) -> bool:
        """Whether Ansible runs this phase for these tags, by Ansible's own rules."""
        if self.tags & skip or ("always" in skip and "always" in self.tags):
            return False
        if "never" in self.tags:
            return bool((self.tags - {"never"}) & run)
        return "all" in run or "tagged" in run or "always" in self.tags or bool(self.tags & run)


def _roles(node: Mapping[str, Any]) -> Iterator[str]:
    for entry in node.get("roles") or []:
        yield str(entry.get("role") or entry.get("name")) if isinstance(entry, Mapping) else str(entry)
    for key in _TASK_LISTS:
        for task in node.get(key) or []:
            if not isinstance(task, Mapping):
                continue
            for word in _ROLE:
                if isinstance(task.get(word), Mapping):
                    yield str(task[word]["name"])
            yield from _roles(task)


def read(site: Path) -> list[Phase]:
    """Read the phases of `site`, in order. Raises ValueError naming the file when one is not a playbook."""
    entries = load_yaml(site)
    if not isinstance(entries, list):
        raise ValueError(f"{site}: wanted a list of import_playbook, seen {type(entries).__name__}")
    found: list[Phase] = []
    for entry in entries:
        target = next((entry[word] for word in _IMPORT if word in entry), None)
        if target is None:
            raise ValueError(f"{site}: an entry without import_playbook: {sorted(entry)}")
        playbook = site.parent / target
        plays = load_yaml(playbook)
        if not isinstance(plays, list):
            raise ValueError(f"{playbook}: wanted a list of plays, seen {type(plays).__name__}")
        tags = entry.get("tags") or []
        uses = tuple(Use(role, str(play.get("hosts", "all"))) for play in plays for role in _roles(play))
        found.append(
            Phase(
                name=playbook.stem,
                line=str(entry.get("name", playbook.stem)),
                tags=frozenset([tags] if isinstance(tags, str) else tags),
                uses=uses,
            )
        )
    return found


def unknown_tags(phases: list[Phase], asked: frozenset[str]) -> list[str]:
    """Tags that were asked for and that no phase has."""
    known = SPECIAL_TAGS.union(*(phase.tags for phase in phases))
    return sorted(asked - known)
