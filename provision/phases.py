"""The phases, read from `site.yml`: the one list there is.

Nothing here knows a phase by name: a phase tagged `always` runs with every selection, one tagged `never` only when
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import BadInput, did_you_mean
from provision.project import Project
from provision.yamlfiles import load

_IMPORT = ("ansible.builtin.import_playbook", "import_playbook")
_CONTROL_TAGS = ("always", "never")


@dataclass(frozen=True)
class Phase:
    """One entry of `site.yml`.

    *name* is the playbook's file stem, *title* the line that says what will be true, *groups* the verbs that run it
    (`plane`, `model`), *plays* the names of its plays, by which an event of Ansible's finds its phase.
    """

    name: str
    title: str
    groups: tuple[str, ...]
    always: bool
    never: bool
    plays: tuple[str, ...]


@dataclass(frozen=True)
class Phases:
    """All phases in order."""

    all: tuple[Phase, ...]

    def of_play(self, play: str) -> Phase | None:
        """Return the phase the play named *play* belongs to."""
        return next((phase for phase in self.all if play in phase.plays), None)

    def of_group(self, group: str) -> list[Phase]:
        """Return the phases the verb *group* runs, in order, those that always run among them."""
        found = [phase for phase in self.all if group in phase.groups and not phase.never]
        # A group that has nothing of its own has nothing to run, whatever else carries its tag.
        return found if any(not phase.always for phase in found) else []

    def named(self, names: tuple[str, ...]) -> list[Phase]:
        """Return the phases called *names*, and those that always run, in the order of `site.yml`."""
        return [phase for phase in self.all if phase.name in names or phase.always]


def read_phases(project: Project) -> Phases:
    """Read `site.yml` and the playbooks it imports.

    Raises:
        BadInput: a file is missing or broken, an entry is no named import with tags, or two plays or phases share a
            name (a play name is the only thing an event of Ansible's carries).

    """
    where = project.shown(project.site_yml)
    entries = load(project.site_yml, where)
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{where}: a list of import_playbook entries is wanted")
    phases = tuple(_phase(project, where, number, entry) for number, entry in enumerate(entries, start=1))
    _refuse_doubles(where, "phase", [phase.name for phase in phases])
    _refuse_doubles(where, "play name", [play for phase in phases for play in phase.plays])
    return Phases(phases)


def _phase(project: Project, where: str, number: int, entry: Any) -> Phase:
    target = next((entry[key] for key in _IMPORT if key in entry), None) if isinstance(entry, dict) else None
    if not isinstance(target, str):
        raise BadInput(f"{where}: entry {number} is no import_playbook")
    path = project.root / target
    title, tags = entry.get("name"), entry.get("tags", [])
    tags = [tags] if isinstance(tags, str) else tags
    if not isinstance(title, str) or not title.strip():
        raise BadInput(f"{where}: {target} has no name: one line is wanted that says what will be true")
    if not isinstance(tags, list) or path.stem not in tags:
        raise BadInput(f"{where}: {target} does not carry the tag {path.stem}, the name of its phase")
    groups = tuple(tag for tag in tags if tag not in (*_CONTROL_TAGS, path.stem))
    plays = tuple(_plays(project, path, {project.site_yml}))
    return Phase(path.stem, title.strip(), groups, "always" in tags, "never" in tags, plays)


def _plays(project: Project, path: Path, seen: set[Path]) -> list[str]:
    where = project.shown(path)
    if path in seen:
        raise BadInput(f"{where}: imports itself")
    if not path.is_file():
        raise BadInput(f"{where}: no such playbook, named in {project.shown(project.site_yml)}")
    plays = load(path, where)
    if not isinstance(plays, list):
        raise BadInput(f"{where}: a list of plays is wanted")
    names: list[str] = []
    for number, play in enumerate(plays, start=1):
        target = next((play[key] for key in _IMPORT if key in play), None) if isinstance(play, dict) else None
        if isinstance(target, str):
            names += _plays(project, path.parent / target, seen | {path})
            continue
        name = play.get("name") if isinstance(play, dict) else None
        if not isinstance(name, str) or "{{" in name:
            raise BadInput(f"{where}: play {number} has no fixed name: by it the play's events find their phase")
        names.append(name)
    return names


def _refuse_doubles(where: str, what: str, names: list[str]) -> None:
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise BadInput(f"{where}: {what} used twice: {', '.join(doubles)}")


def select(
    phases: Phases,
    group: str,
    *,
    first: str | None = None,
    last: str | None = None,
    only: tuple[str, ...] = (),
) -> list[Phase]:
    """Return the phases of *group* to run: all, or from *first* to *last* (both inclusive), or *only* some.

    Raises:
        BadInput: a name is unknown, the two ends are the wrong way round, or the group has no phase.

    """
    known = phases.of_group(group)
    if not known:
        raise BadInput(f"site.yml lists no phase of the {group} yet: nothing to run")
    names = [phase.name for phase in known]
    for wanted in (first, last, *only):
        if wanted is not None and wanted not in names:
            raise BadInput(f"unknown phase {wanted}{did_you_mean(wanted, names)}; known: {', '.join(names)}")
    if only:
        return [phase for phase in known if phase.name in only or phase.always]
    start = names.index(first) if first else 0
    end = names.index(last) if last else len(names) - 1
    if start > end:
        raise BadInput(f"--from {first} comes after --to {last}; the order is: {', '.join(names)}")
    return [phase for index, phase in enumerate(known) if start <= index <= end or phase.always]
