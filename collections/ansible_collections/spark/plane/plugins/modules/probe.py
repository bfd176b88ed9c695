#!/usr/bin/python
"""One read-only look at a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: probe
short_description: Reads the state of a host in one call
version_added: 0.1.0
description:
  - Packages, units, sysctls, kernel modules, files and the host's identity, limits and clock, with one module call.
  - Reads files where it can; runs at most three short processes (two C(systemctl show), one clock query).
  - Changes nothing, in check mode or out of it.
options:
  packages:
    description: Debian package names; a shell pattern such as V(linux-image-*) is looked up among installed packages.
    type: list
    elements: str
    default: []
  units:
    description: systemd unit names; a name without a type means a service.
    type: list
    elements: str
    default: []
  sysctl:
    description: Keys as sysctl(8) takes them.
    type: list
    elements: str
    default: []
  modules:
    description: Kernel module names.
    type: list
    elements: str
    default: []
  files:
    description: Absolute paths.
    type: list
    elements: str
    default: []
  clock:
    description: Whether to ask about the clock, which costs a process.
    type: bool
    default: true
attributes:
  check_mode:
    support: full
    description: It only reads.
  diff_mode:
    support: none
    description: It changes nothing.
author:
  - The Spark Plane maintainers (@spark-plane)
"""

EXAMPLES = r"""
- name: What the host has is known
  spark.plane.probe:
    packages: [chrony, "linux-image-*"]
    units: [chrony, docker.service]
    sysctl: [vm.swappiness, net.ipv4.ip_forward]
    modules: [br_netfilter, overlay]
    files: [/etc/docker/daemon.json]
  register: seen
"""

RETURN = r"""
probe:
  description: What was seen.
  type: dict
  returned: always
  contains:
    packages:
      description: Per name asked for, and per installed package that a pattern matched.
      type: dict
      returned: always
      sample: {chrony: {version: 4.6.1-3, held: false, architecture: arm64}}
    matched:
      description: Per pattern, the installed packages it matched.
      type: dict
      returned: always
      sample: {"linux-image-*": [linux-image-6.14.0-1013-nvidia]}
    dpkg_interrupted:
      description: Whether dpkg was killed in the middle and wants C(dpkg --configure -a).
      type: bool
      returned: always
    units:
      description: Per name asked for; null when systemd cannot be asked (see RV(probe.errors)).
      type: dict
      returned: always
      sample:
        docker.service:
          load: loaded
          active: active
          sub: running
          enabled: enabled
          main_pid: 812
          restarts: 0
          invocation: 1b0c0a3f5d6e4f0c9f6f6f1f2f3f4f5f
          result: success
          exec_start: /usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
    sysctl:
      description: Running value per key, whitespace collapsed; null where the kernel has no such key.
      type: dict
      returned: always
      sample: {vm.swappiness: "10"}
    modules:
      description: Per module C(loaded), C(builtin), C(loadable) or C(absent).
      type: dict
      returned: always
      sample: {overlay: builtin}
    files:
      description: Per path; a symbolic link is followed and its target named under C(link).
      type: dict
      returned: always
      sample:
        /etc/hosts:
          {exists: true, type: file, sha256: 9f2c, mode: "0644", owner: root, group: root, size: 220, link: null}
    swaps:
      description: Active swap areas.
      type: list
      returned: always
      sample: [/swap.img]
    fstab_swaps:
      description: Swap lines of /etc/fstab that are not commented out.
      type: list
      returned: always
      sample: ["/swap.img none swap sw 0 0"]
    hostname:
      description: The running host name.
      type: str
      returned: always
    static_hostname:
      description: What /etc/hostname holds.
      type: str
      returned: always
    boot_id:
      description: Changes with every boot.
      type: str
      returned: always
    machine_id:
      description: What /etc/machine-id holds.
      type: str
      returned: always
    product_uuid:
      description: The firmware's id of the machine, or null.
      type: str
      returned: always
    kernel:
      description: Release of the running kernel.
      type: str
      returned: always
    arch:
      description: Machine architecture of the running kernel.
      type: str
      returned: always
    virt:
      description: What systemd takes the machine for (C(none), C(kvm), C(lxc)); null when it cannot be asked.
      type: str
      returned: always
    limits:
      description:
        - "C(nofile) and C(memlock) as [soft, hard]: what systemd gives a new service that sets nothing itself
          (DefaultLimitNOFILE and DefaultLimitMEMLOCK). A number, C(infinity) or null. A login through PAM may get others."
      type: dict
      returned: always
      sample: {nofile: [1024, 524288], memlock: [8388608, 8388608]}
    clock:
      description: Null when O(clock=false). C(offset_seconds) is positive when the host's clock is slow.
      type: dict
      returned: always
      sample:
        {synchronised: true, source: chrony, offset_seconds: 0.000021, leap: Normal, reference: 192.0.2.1, stratum: 3}
    journald:
      description: The [Journal] settings in force; what is not set is not in it.
      type: dict
      returned: always
      sample: {SystemMaxUse: 1G}
    errors:
      description: What could not be read, a line each.
      type: list
      returned: always
      sample: []
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spark.plane.plugins.module_utils import clock, dpkg, hostfacts, systemd

_UNIT = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "InvocationID", "Result", "ExecStart",
)  # fmt: skip
_LIMITS = ("NOFILE", "MEMLOCK")


def unit_facts(block: dict[str, str]) -> dict[str, Any]:
    """One unit's facts from its properties."""
    return {
        "load": block.get("LoadState", ""),
        "active": block.get("ActiveState", ""),
        "sub": block.get("SubState", ""),
        "enabled": block.get("UnitFileState", ""),
        "main_pid": systemd.number(block, "MainPID"),
        "restarts": systemd.number(block, "NRestarts"),
        "invocation": block.get("InvocationID", ""),
        "result": block.get("Result", ""),
        "exec_start": systemd.argv(block.get("ExecStart", "")),
    }


def limit(value: str | None) -> int | str | None:
    """A limit as systemd prints it: a number, or the word infinity."""
    if value is None:
        return None
    return int(value) if value.isdigit() else value


def collect(params: dict[str, Any]) -> dict[str, Any]:
    """Read everything that was asked for."""
    errors: list[str] = []
    units: dict[str, Any] = dict.fromkeys(params["units"])
    manager: dict[str, str] = {}
    try:
        units = {name: unit_facts(block) for name, block in systemd.show(params["units"], _UNIT).items()}
        names = [f"DefaultLimit{name}{kind}" for name in _LIMITS for kind in ("", "Soft")]
        manager = systemd.manager(["Virtualization", *names])
    except systemd.SystemdError as err:
        errors.append(str(err))
    found = dpkg.query(params["packages"])
    return {
        **hostfacts.identity(),
        "packages": {name: asdict(package) for name, package in found.packages.items()},
        "matched": found.matched,
        "dpkg_interrupted": found.interrupted,
        "units": units,
        "sysctl": hostfacts.sysctls(params["sysctl"]),
        "modules": hostfacts.modules(params["modules"]),
        "files": {path: hostfacts.file(Path(path)) for path in params["files"]},
        "swaps": hostfacts.swaps(),
        "fstab_swaps": hostfacts.fstab_swaps(),
        "virt": (manager.get("Virtualization") or "none") if manager else None,
        "limits": {
            name.lower(): [limit(manager.get(f"DefaultLimit{name}{kind}")) for kind in ("Soft", "")] for name in _LIMITS
        },
        "clock": asdict(clock.read()) if params["clock"] else None,
        "journald": hostfacts.journald(),
        "errors": errors,
    }


def main() -> None:
    """Read and report."""
    names = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            **dict.fromkeys(("packages", "units", "sysctl", "modules", "files"), names),
            "clock": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, probe=collect(module.params))


if __name__ == "__main__":
    main()
