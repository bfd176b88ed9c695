"""The Docker API over its unix socket, as far as two GET requests need it.

HTTP/1.0 is spoken on purpose: the daemon then sends a plain body and closes, so no HTTP library (14 ms of imports) is
needed, and one deadline bounds the whole exchange.
"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

SOCKET = Path("/run/docker.sock")

TIMEOUT = 5.0
"""Seconds for one request, connecting and reading together. A hung daemon accepts and then says nothing."""

_LIMIT = 16 << 20
"""Bytes of one answer."""


class ApiError(Exception):
    """The daemon did not answer, or not as the API does."""


def get(path: str, where: Path = SOCKET, timeout: float = TIMEOUT) -> dict[str, Any]:
    """One GET request for a JSON object.

    Raises:
        ApiError: no socket, refused, silent for `timeout` seconds, or an answer that is not 200 and JSON.
    """
    deadline = time.monotonic() + timeout
    received = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(timeout)
            connection.connect(str(where))
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\nAccept: application/json\r\n\r\n".encode())
            while len(received) < _LIMIT:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                connection.settimeout(left)
                block = connection.recv(1 << 16)
                if not block:
                    break
                received += block
        except TimeoutError:
            raise ApiError(f"{where}: no answer to GET {path} within {timeout:g} s") from None
        except OSError as err:
            raise ApiError(f"{where}: {err.strerror or err}") from err
    head, _, body = received.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    words = status.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/"):
        raise ApiError(f"{where}: GET {path}: not an HTTP answer: {status[:80]!r}")
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if words[1] != "200" or not isinstance(answer, dict):
        said = answer.get("message") if isinstance(answer, dict) else body[:200].decode("utf-8", "replace").strip()
        raise ApiError(f"{where}: GET {path}: {' '.join(words[1:])}: {said}")
    return answer


def info(answer: dict[str, Any]) -> dict[str, Any]:
    """The part of /info that decides anything, under lower-case names."""
    registry = answer.get("RegistryConfig") or {}
    return {
        "storage_driver": answer.get("Driver"),
        "driver_status": dict(pair for pair in answer.get("DriverStatus") or [] if len(pair) == 2),
        "logging_driver": answer.get("LoggingDriver"),
        "cgroup_driver": answer.get("CgroupDriver"),
        "cgroup_version": answer.get("CgroupVersion"),
        "docker_root_dir": answer.get("DockerRootDir"),
        "live_restore": answer.get("LiveRestoreEnabled"),
        "default_runtime": answer.get("DefaultRuntime"),
        "runtimes": sorted(answer.get("Runtimes") or {}),
        "registry_mirrors": registry.get("Mirrors") or [],
        "containers_running": answer.get("ContainersRunning"),
        "swarm": (answer.get("Swarm") or {}).get("LocalNodeState"),
        "warnings": answer.get("Warnings") or [],
    }
