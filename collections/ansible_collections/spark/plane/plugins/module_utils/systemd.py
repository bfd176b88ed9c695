"""Talking to systemd in as few processes as possible: one `systemctl show` reads any number of units."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

QUERY_TIMEOUT = 20
"""Seconds for a read from systemd; a busy manager answers in well under one."""

SUFFIXES = (
    ".service", ".socket", ".timer", ".mount", ".automount", ".target", ".path", ".slice", ".scope", ".swap", ".device",
)  # fmt: skip

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARGV = re.compile(r"argv\[\]=(.*?) ; (?:ignore_errors|flags)=")


class SystemdError(Exception):
    """systemd could not be asked, or refused."""


@dataclass(frozen=True)
class Output:
    """What a command left behind. `code` is None when it ran out of time."""

    code: int | None
    text: str


def run(argv: Sequence[str], timeout: float) -> Output:
    """Run a command without a shell; stdout and stderr together.

    Raises:
        SystemdError: the command is not installed.
    """
    search = os.pathsep.join((os.environ.get("PATH", ""), _PATH))
    binary = shutil.which(argv[0], path=search)
    if binary is None:
        raise SystemdError(f"{argv[0]} is not installed on this host")
    try:
        done = subprocess.run(
            [binary, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"},
        )
    except subprocess.TimeoutExpired as err:
        return Output(None, (err.stdout or b"").decode("utf-8", "replace"))
    return Output(done.returncode, done.stdout.decode("utf-8", "replace"))


def full_name(name: str) -> str:
    """The unit's name with its type: `docker` means `docker.service`, as systemctl takes it."""
    return name if name.endswith(SUFFIXES) else f"{name}.service"


def parse_show(text: str) -> list[dict[str, str]]:
    """Split the output of `systemctl show` into one mapping per unit, in the order asked.

    A property that comes several times (ExecStart, EnvironmentFiles) is joined by newlines.
    """
    blocks: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        if not line:
            blocks.append({})
            continue
        key, found, value = line.partition("=")
        if found:
            block = blocks[-1]
            block[key] = f"{block[key]}\n{value}" if key in block else value
    return [block for block in blocks if block]


def show(units: Sequence[str], properties: Sequence[str], *options: str) -> dict[str, dict[str, str]]:
    """Read properties of many units with one process; keyed by the names asked for.

    Further `options` go to `systemctl show`.

    Raises:
        SystemdError: systemd does not run here, or a name is not a unit name.
    """
    if not units:
        return {}
    names = [full_name(name) for name in units]
    wanted = ",".join(dict.fromkeys(("Id", *properties)))
    output = run(["systemctl", "show", *options, f"--property={wanted}", "--", *names], QUERY_TIMEOUT)
    blocks = parse_show(output.text) if output.code == 0 else []
    if len(blocks) != len(names):
        if output.code is None:
            raise SystemdError(f"systemd gave no answer within {QUERY_TIMEOUT} s")
        raise SystemdError(f"systemd cannot be asked about {', '.join(names)}: {output.text.strip()[:500]}")
    return dict(zip(units, blocks, strict=True))


def manager(properties: Sequence[str]) -> dict[str, str]:
    """Read properties of the manager itself, such as DefaultLimitNOFILE.

    Raises:
        SystemdError: systemd does not run here.
    """
    output = run(["systemctl", "show", f"--property={','.join(properties)}"], QUERY_TIMEOUT)
    if output.code != 0:
        raise SystemdError(f"systemd cannot be asked: {output.text.strip()[:500]}")
    return parse_show(output.text)[0] if output.text.strip() else {}


def argv(exec_start: str) -> str:
    """The command line inside an ExecStart property; the last one when there are several."""
    found = _ARGV.findall(exec_start)
    return str(found[-1]) if found else ""


def number(block: Mapping[str, str], key: str) -> int:
    """A numeric property; 0 when it is missing or `[not set]`."""
    value = block.get(key, "")
    return int(value) if value.isdigit() else 0
