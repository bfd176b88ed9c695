#!/usr/bin/python
"""Everything about a host's Docker engine in one read-only call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_facts
short_description: Reads the Docker engine of a host
version_added: 0.1.0
description:
  - Packages, unit, API, C(daemon.json) and the flags on dockerd's command line, with one module call.
  - Works on a host without Docker, with a stopped daemon and with a hung one. It uses no C(docker) command and does not
    wake a daemon through its socket unit.
  - Changes nothing, in check mode or out of it.
options:
  socket:
    description: The API's unix socket.
    type: path
    default: /run/docker.sock
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
- name: The engine the host has is known
  spark.plane.docker_facts:
  register: engine

- name: No key of ours is already on dockerd's command line
  ansible.builtin.assert:
    that: (wanted.keys() | intersect(engine.docker_facts.flags.keys()) | difference(['runtimes'])) == []
"""

RETURN = r"""
docker_facts:
  description: What was seen.
  type: dict
  returned: always
  contains:
    installed:
      description: Whether there is a dockerd, from a package, a snap or by hand.
      type: bool
      returned: always
    binary:
      description: Path of dockerd, or null.
      type: str
      returned: always
    snap:
      description: Whether Docker comes from a snap.
      type: bool
      returned: always
    packages:
      description: Versions of the installed packages among docker-ce, docker.io, docker-cli and so on.
      type: dict
      returned: always
      sample: {docker-ce: "5:28.3.3-1~ubuntu.24.04~noble", containerd.io: 1.7.27-1}
    running:
      description: Whether the daemon answered.
      type: bool
      returned: always
    unit:
      description: docker.service, or null when systemd cannot be asked.
      type: dict
      returned: always
      sample:
        load: loaded
        active: active
        main_pid: 812
        invocation: 1b0c0a3f5d6e4f0c9f6f6f1f2f3f4f5f
        exec_start: /usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
        fragment: /usr/lib/systemd/system/docker.service
        dropins: [/etc/systemd/system/docker.service.d/override.conf]
    server_version:
      description: Version of the daemon, or null.
      type: str
      returned: always
    api_version:
      description: Newest API version it speaks, or null.
      type: str
      returned: always
    min_api_version:
      description: Oldest API version it speaks, or null.
      type: str
      returned: always
    info:
      description:
        - From C(/info), or null. C(driver_status["driver-type"]) is V(io.containerd.snapshotter.v1) with the
          containerd image store, and absent with the classic overlay2 driver.
      type: dict
      returned: always
      sample:
        storage_driver: overlay2
        driver_status: {Backing Filesystem: extfs}
        logging_driver: json-file
        cgroup_driver: systemd
        cgroup_version: "2"
        docker_root_dir: /var/lib/docker
        live_restore: true
        default_runtime: nvidia
        runtimes: [io.containerd.runc.v2, nvidia, runc]
        registry_mirrors: []
        containers_running: 3
        warnings: []
    daemon_json:
      description: The configuration file, at the path dockerd is given. C(content) is null when it is missing or broken.
      type: dict
      returned: always
      sample:
        path: /etc/docker/daemon.json
        exists: true
        content: null
        error: "/etc/docker/daemon.json is not JSON: Expecting ',' delimiter at line 3 column 5"
        sha256: 0b1c
    flags:
      description:
        - Settings on dockerd's command line, by their C(daemon.json) key. dockerd refuses to start when one of them stands
          in both places, unless C(merged) is true.
      type: dict
      returned: always
      sample:
        data-root:
          value: /data/docker
          where: /etc/systemd/system/docker.service.d/override.conf:3
          flag: --data-root
          merged: false
    error:
      description: Why the daemon or systemd could not be asked, or null.
      type: str
      returned: always
"""

import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spark.plane.plugins.module_utils import (
    dockerapi,
    dockerd,
    dpkg,
    systemd,
    unitfile,
)

PACKAGES = (
    "docker-ce", "docker.io", "docker-cli", "docker-ce-cli", "docker-buildx-plugin", "docker-compose-plugin", "moby-engine",
    "containerd.io", "containerd", "runc", "nvidia-container-toolkit", "podman-docker",
)  # fmt: skip
_UNITS = ("docker.service", "docker.socket")
_PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "InvocationID", "ExecStart", "FragmentPath",
    "DropInPaths",
)  # fmt: skip
_SNAP = Path("snap/docker/current")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def unit_facts(block: dict[str, str]) -> dict[str, Any]:
    """docker.service from its properties."""
    return {
        "load": block.get("LoadState", ""),
        "active": block.get("ActiveState", ""),
        "sub": block.get("SubState", ""),
        "enabled": block.get("UnitFileState", ""),
        "main_pid": systemd.number(block, "MainPID"),
        "invocation": block.get("InvocationID", ""),
        "exec_start": systemd.argv(block.get("ExecStart", "")),
        "fragment": block.get("FragmentPath") or None,
        "dropins": block.get("DropInPaths", "").split(),
    }


def would_wake(units: dict[str, dict[str, str]]) -> bool:
    """Whether connecting to the socket would start a stopped daemon."""
    service, listener = (units.get(name, {}).get("ActiveState") for name in _UNITS)
    return listener == "active" and service not in ("active", "reloading")


def collect(socket: Path, root: Path = Path("/")) -> dict[str, Any]:
    """Read everything."""
    errors: list[str] = []
    units: dict[str, dict[str, str]] = {}
    try:
        units = systemd.show(_UNITS, _PROPERTIES)
    except systemd.SystemdError as err:
        errors.append(str(err))
    unit = unit_facts(units[_UNITS[0]]) if units else None
    loaded = [path for path in (unit["fragment"], *unit["dropins"]) if path] if unit else []
    paths = unitfile.merged(loaded, unitfile.find(_UNITS[0], root))
    flags, config = dockerd.flags(unitfile.command(unitfile.service_lines(paths, root), root))
    snap = (root / _SNAP).exists()
    if snap and not (root / config.lstrip("/")).exists():
        config = "/var/snap/docker/current/config/daemon.json"
    packages = dpkg.query(PACKAGES, root).packages
    binary = shutil.which("dockerd", path=os.pathsep.join((os.environ.get("PATH", ""), _PATH)))
    facts: dict[str, Any] = {
        "installed": binary is not None or snap or (unit is not None and unit["load"] == "loaded"),
        "binary": binary,
        "snap": snap,
        "packages": {name: package.version for name, package in packages.items() if package.version},
        "held": sorted(name for name, package in packages.items() if package.version and package.held),
        "unit": unit,
        "daemon_json": dockerd.daemon_json(config, root),
        "flags": flags,
        **_api(socket, units, errors),
    }
    facts["error"] = "; ".join(errors) or None
    return facts


def _api(socket: Path, units: dict[str, dict[str, str]], errors: list[str]) -> dict[str, Any]:
    facts: dict[str, Any] = dict.fromkeys(("server_version", "api_version", "min_api_version", "info"))
    facts["running"] = False
    if would_wake(units) or not socket.exists():
        return facts
    try:
        version = dockerapi.get("/version", socket)
        facts.update(
            running=True,
            server_version=version.get("Version"),
            api_version=version.get("ApiVersion"),
            min_api_version=version.get("MinAPIVersion"),
        )
        facts["info"] = dockerapi.info(dockerapi.get("/info", socket))
    except dockerapi.ApiError as err:
        errors.append(str(err))
    return facts


def main() -> None:
    """Read and report."""
    module = AnsibleModule(
        argument_spec={"socket": {"type": "path", "default": str(dockerapi.SOCKET)}},
        supports_check_mode=True,
    )
    module.exit_json(changed=False, docker_facts=collect(Path(module.params["socket"])))


if __name__ == "__main__":
    main()
