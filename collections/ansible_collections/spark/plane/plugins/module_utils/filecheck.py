"""The `validate` commands and the diff of `spark.plane.files`."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ansible_collections.spark.plane.plugins.module_utils.fileset import FileChange, Plan

VALIDATE_TIMEOUT = 60
"""Seconds one validate command may take; the slowest in use (`dockerd --validate`) takes under one."""

DIFF_LIMIT = 104448
"""Bytes of content shown in a diff; the same as Ansible's default `max_diff_size`."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def validate(plan: Plan, *, check: bool) -> list[str]:
    """Run every validate command against a private copy of the new content.

    Returns:
        One line per failure. A missing validator is a failure, except in check mode, where it is noted in the plan: an
        earlier step of a real run would have installed it.
    """
    pending = [item for item in plan.files if item.rewrite and item.after is not None and item.spec.validate]
    if not pending:
        return []
    problems: list[str] = []
    # /run is memory: a secret under validation never reaches the disk.
    base = "/run" if os.access("/run", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="spark-plane-", dir=base) as scratch:
        for index, item in enumerate(pending):
            directory = Path(scratch, str(index))
            directory.mkdir(mode=0o700)
            # The same name as in the end: validators such as netplan and systemd-analyze judge by suffix.
            path = directory / item.spec.dest.name
            path.touch(mode=0o600)
            path.write_bytes(item.after or b"")
            problem = _run(item, path, plan.notes, check)
            if problem:
                problems.append(problem)
    return problems


def _run(item: FileChange, path: Path, notes: list[str], check: bool) -> str | None:
    command = shlex.split(item.spec.validate or "")
    argv = [word.replace("%s", str(path)) for word in command]
    name = item.spec.dest
    search = os.pathsep.join((os.environ.get("PATH", ""), _PATH))
    binary = shutil.which(argv[0], path=search)
    if binary is None:
        if check:
            notes.append(f"{name}: not validated, {argv[0]} is not installed yet")
            return None
        return f"{name}: its validator {argv[0]} is not installed on this host"
    try:
        done = subprocess.run(
            [binary, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VALIDATE_TIMEOUT,
            check=False,
            env={**os.environ, "PATH": search, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        return f"{name}: its validator `{item.spec.validate}` gave no answer within {VALIDATE_TIMEOUT} s"
    if done.returncode == 0:
        return None
    if item.spec.secret:
        said = "(its output is withheld: the file is secret)"
    else:
        text = done.stdout.decode("utf-8", "replace").replace(str(path), str(name)).strip()
        said = "\n  ".join(["", *text.splitlines()[-15:]]) if text else "(no output)"
    return f"{name}: refused by its validator `{item.spec.validate}` (exit {done.returncode}): {said}"


def diff(plan: Plan) -> list[dict[str, str]]:
    """Ansible's diff entries for a plan; of a secret file only the fact that it differs."""
    entries: list[dict[str, str]] = []
    for change in plan.directories:
        entries.append(_attributes(str(change.spec.path), change.attributes_before, change.attributes_after))
    for item in plan.files:
        path = str(item.spec.dest)
        if item.after is None or item.rewrite:
            entries.append(
                {
                    "before_header": path,
                    "after_header": path if item.after is not None else f"{path} (absent)",
                    "before": _shown(item.before, item.spec.secret, "old"),
                    "after": _shown(item.after, item.spec.secret, "new"),
                }
            )
        if item.before is not None and item.attributes_before != item.attributes_after:
            entries.append(_attributes(path, item.attributes_before, item.attributes_after))
    return entries


def _attributes(path: str, before: str, after: str) -> dict[str, str]:
    header = f"{path} (attributes)"
    return {"before_header": header, "after_header": header, "before": f"{before}\n", "after": f"{after}\n"}


def _shown(content: bytes | None, secret: bool, word: str) -> str:
    if content is None:
        return ""
    if secret:
        return f"({word} secret content, not shown)\n"
    if b"\0" in content or len(content) > DIFF_LIMIT:
        return f"({len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()})\n"
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()})\n"
