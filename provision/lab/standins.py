"""What in a lab is the real thing, and what stands in for something the lab cannot have.

A stand-in is a directory under tests/standins/ with a `standin.toml`, so a new one shows up by itself.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from provision.lab import kernel
from provision.lab.errors import LabError
from provision.lab.paths import PROJECT_ROOT

STANDINS = PROJECT_ROOT / "tests" / "standins"


@dataclass(frozen=True)
class Component:
    """One part of a lab. `real` is False for a stand-in; `detail` says how it is made and why."""

    name: str
    real: bool
    detail: str


# The lab's own means that a reader of a receipt must know about; they have no directory of their own.
_BUILT_IN = (
    Component("systemd, sshd, apt, python3", True, "Debian's own packages, one instance per host"),
    Component("Docker Engine, containerd", True, "Debian's own packages, run inside the host"),
    Component("management network", False, "veth pairs on a bridge, for the 10 GbE ports"),
    Component("ring cables", False, "veth pairs under the Spark's interface names, for 200G DACs"),
    Component("machine-wide sysctls", False, "copies (kernel, vm, fs, net.core): a write changes no kernel behaviour"),
    Component("clock", False, "the machine's: chronyd runs with -x and disciplines nothing"),
    Component("DMI", False, "a built /sys/class/dmi/id: the machine has none, or its own"),
)


def components() -> list[Component]:
    """Every component of a lab."""
    found = [*_BUILT_IN, *_limits()]
    for file in sorted(STANDINS.glob("*/standin.toml")):
        data = tomllib.loads(file.read_text())
        found.append(Component(data["stands_for"], False, f"{data['how']} ({data['why']})"))
    return found


def _limits() -> list[Component]:
    """The limits hosts cannot raise above the machine's own, where that lacks the capability to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if kernel.has_capability(kernel.CAP_SYS_RESOURCE) or hard == resource.RLIM_INFINITY:
        return []
    detail = f"the machine's: open files stay at {hard} at most (no CAP_SYS_RESOURCE); pam_limits is optional for that"
    return [Component("resource limits", False, detail)]


def load_rdma() -> ModuleType:
    """The module that builds /sys/class/infiniband. Loaded by path: tests/ is no package of the runner's."""
    return _load(STANDINS / "rdma" / "tree.py", "spark_plane_rdma_tree")


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LabError(f"stand-in {path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)

    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
