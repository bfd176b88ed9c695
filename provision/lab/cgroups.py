"""Control groups of a lab: one per host in every hierarchy the machine has mounted, v1, hybrid or v2."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provision.lab.process import wait_for

PARENT = "spark-plane"
# The supervisors' own group: in v2 a group that hands controllers down may hold no process itself.
SUPERVISORS = "supervisors"
_CONTROLLERS_V2 = ("cpu", "cpuset", "io", "memory", "pids", "hugetlb")


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy. `options` are what mount(2) needs to mount it again inside a host."""

    path: Path
    v2: bool
    options: str

    def group(self, lab: str, *names: str) -> Path:
        """Directory of a lab's group, or of one below it."""
        return self.path.joinpath(PARENT, lab, *names)


def parse_mounts(mountinfo: str) -> list[Hierarchy]:
    """Hierarchies in the text of /proc/self/mountinfo (proc(5)), each once."""
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fstype, _, rest = right.partition(" ")
        if fstype not in ("cgroup", "cgroup2"):
            continue
        path = Path(left.split()[4])
        if fstype == "cgroup2":
            found.setdefault("cgroup2", Hierarchy(path, True, ""))
            continue
        words = rest.split()[-1].split(",")
        named = [word for word in words if word.startswith("name=")]
        controllers = [
            word for word in words if word not in ("rw", "ro", "xattr", "clone_children", "noprefix") and "=" not in word
        ]
        options = ",".join(["none", *named] if named and not controllers else [*controllers, *named])
        found.setdefault(options, Hierarchy(path, False, options))
    return list(found.values())


def hierarchies() -> list[Hierarchy]:
    """The hierarchies mounted on this machine."""
    return parse_mounts(Path("/proc/self/mountinfo").read_text())


def layout(found: list[Hierarchy]) -> str:
    """`v1`, `hybrid` or `v2`."""
    kinds = {hierarchy.v2 for hierarchy in found}
    return {frozenset({False}): "v1", frozenset({True}): "v2"}.get(frozenset(kinds), "hybrid")


def create(lab: str, name: str) -> list[Path]:
    """Make a group in every hierarchy; returns their `cgroup.procs` files."""
    files = []
    for hierarchy in hierarchies():
        group = hierarchy.group(lab, name)
        _make(group)
        above = [hierarchy.path, hierarchy.path / PARENT, group.parent]
        if hierarchy.v2:
            for directory in above:
                _hand_down(directory)
        if (hierarchy.path / "cpuset.cpus").exists() and not hierarchy.v2:
            _fill_cpuset([*above[1:], group], hierarchy.path)
        files.append(group / "cgroup.procs")
    return files


def join(files: list[Path]) -> None:
    """Move the calling process into the groups; 0 means itself in whichever pid namespace it is."""
    for file in files:
        file.write_text("0")


def pids(lab: str) -> set[int]:
    """Every process of a lab's groups."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        for directory in _walk(hierarchy.group(lab)):
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in (directory / "cgroup.procs").read_text().split())
    return found - {0}


def remove(lab: str) -> bool:
    """Kill what still runs in a lab's groups and remove them; False when something would not go within 10 s."""

    def gone() -> bool:
        for pid in pids(lab):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        left = False
        for hierarchy in hierarchies():
            for directory in _walk(hierarchy.group(lab)):
                try:
                    directory.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    left = True
            # Other labs may live beside this one.
            with contextlib.suppress(OSError):
                (hierarchy.path / PARENT).rmdir()
        return not left

    return wait_for(gone, 10)


def cpu_seconds(lab: str, name: str) -> float:
    """CPU time a group's processes have used since it was made, in seconds; 0 when it does not exist."""
    for hierarchy in hierarchies():
        group = hierarchy.group(lab, name)
        usage = group / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text()) / 1e9
        if hierarchy.v2 and (group / "cpu.stat").exists() and layout(hierarchies()) == "v2":
            stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            return int(stat["usage_usec"]) / 1e6
    return 0.0


def _make(group: Path) -> None:
    """Make directories, against another lab's `remove` that takes an empty parent away in between."""
    for _ in range(10):
        with contextlib.suppress(FileNotFoundError):
            group.mkdir(parents=True, exist_ok=True)
            return
    group.mkdir(parents=True, exist_ok=True)


def _walk(group: Path) -> Iterator[Path]:
    """Directories of a group's tree, deepest first."""
    if not group.is_dir():
        return
    for directory, _, _ in os.walk(group, topdown=False):
        yield Path(directory)


def _hand_down(directory: Path) -> None:
    """Enable each controller for the groups below; one the kernel lacks or keeps is left out."""
    for controller in _CONTROLLERS_V2:
        with contextlib.suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{controller}")


def _fill_cpuset(directories: list[Path], root: Path) -> None:
    """A v1 cpuset starts empty and then takes no process: give each level all CPUs and memory nodes."""
    for key in ("cpuset.cpus", "cpuset.mems"):
        value = (root / key).read_text()
        for directory in directories:
            if not (directory / key).read_text().strip():
                (directory / key).write_text(value)
