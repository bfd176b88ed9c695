"""The command line a unit file and its drop-ins give a service, each word with the line it stands on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
_PREFIX = "@-:+!|"
"""Characters before an ExecStart path that change how it runs (systemd.service(5))."""


@dataclass(frozen=True)
class Line:
    """One logical line (continuations joined) of a [Service] section."""

    key: str
    value: str
    where: str


@dataclass(frozen=True)
class Word:
    """One argument and where it was written: `/path/file:line`."""

    text: str
    where: str


def find(unit: str, root: Path = Path("/")) -> list[str]:
    """Unit file and drop-ins as systemd would find them, for hosts where it cannot be asked."""
    bases = ("etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system",
             "lib/systemd/system")  # fmt: skip
    fragments = [f"/{base}/{unit}" for base in bases if (root / base / unit).is_file()]
    dropins: dict[str, str] = {}
    for base in reversed(bases):
        directory = root / base / f"{unit}.d"
        if directory.is_dir():
            dropins.update((path.name, f"/{base}/{unit}.d/{path.name}") for path in directory.glob("*.conf"))
    return fragments[:1] + [dropins[name] for name in sorted(dropins)]


def merged(loaded: Sequence[str], on_disk: Sequence[str]) -> list[str]:
    """What systemd runs a unit on after its next daemon-reload: what it has loaded, and drop-ins written since."""
    every = [*loaded, *(path for path in on_disk if path not in loaded)]
    fragments = [path for path in every if not path.endswith(".conf")]
    return fragments[:1] + sorted((path for path in every if path.endswith(".conf")), key=lambda path: Path(path).name)


def service_lines(paths: Sequence[str], root: Path = Path("/")) -> list[Line]:
    """The [Service] lines of a unit file and its drop-ins, in order."""
    lines: list[Line] = []
    for path in paths:
        try:
            text = (root / path.lstrip("/")).read_text("utf-8", "replace")
        except OSError:
            continue
        section, start, joined = "", 0, ""
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if line[:1] in ("#", ";"):
                # A comment does not end a continued line (systemd.syntax(7)).
                continue
            start = start or number
            if line.endswith("\\"):
                joined += line[:-1] + " "
                continue
            joined += line
            if joined.startswith("["):
                section = joined
            elif section == "[Service]" and "=" in joined:
                key, _, value = joined.partition("=")
                lines.append(Line(key.strip(), value.strip(), f"{path}:{start}"))
            start, joined = 0, ""
    return lines


def command(lines: Sequence[Line], root: Path = Path("/")) -> list[Word]:
    """The words of the last ExecStart that counts, with variables from Environment and EnvironmentFile put in.

    As systemd has it: a service has one ExecStart (an empty one forgets the earlier); `$NAME` alone becomes as many
    words as it holds; `${NAME}` is replaced inside its word.
    """
    last = Line("ExecStart", "", "")
    environment: dict[str, Word] = {}
    from_files: dict[str, Word] = {}
    for line in lines:
        if line.key == "ExecStart":
            last = line
        elif line.key == "Environment":
            if not line.value:
                environment.clear()
            for item in _split(line.value):
                name, _, value = item.partition("=")
                environment[name] = Word(value, line.where)
        elif line.key == "EnvironmentFile":
            if not line.value:
                from_files.clear()
            from_files.update(_environment_file(line.value.lstrip("-"), root))
    # EnvironmentFile wins over Environment whatever the order (systemd.exec(5)).
    variables = {**environment, **from_files}
    words: list[Word] = []
    for index, text in enumerate(_split(last.value)):
        if index == 0:
            words.append(Word(text.lstrip(_PREFIX), last.where))
            continue
        whole = re.fullmatch(r"\$(\w+)", text)
        if whole:
            held = variables.get(whole[1], Word("", last.where))
            words += [Word(part, held.where) for part in _split(held.text)]
        else:
            words.append(_substitute(text, last.where, variables))
    return words


def _substitute(text: str, where: str, variables: dict[str, Word]) -> Word:
    origin = where

    def value(match: re.Match[str]) -> str:
        nonlocal origin
        found = variables.get(match[1] or match[2])
        if found is None:
            return ""
        origin = found.where
        return found.text

    return Word(_VARIABLE.sub(value, text), origin)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _environment_file(path: str, root: Path) -> dict[str, Word]:
    variables: dict[str, Word] = {}
    try:
        text = (root / path.lstrip("/")).read_text("utf-8", "replace")
    except OSError:
        return variables
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if "=" not in line or line[0] in "#;":
            continue
        name, _, value = line.partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        variables[name.strip().removeprefix("export ").strip()] = Word(value, f"{path}:{number}")
    return variables
