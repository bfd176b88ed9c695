"""The options of a run, and how they are written down again: in the receipt, and in the command that resumes."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from provision.errors import BadInput
from provision.extravars import parse_extra_vars
from provision.project import Project
from provision.site import LAB

DEFAULT_SITE = LAB


@dataclass(frozen=True)
class RunOptions:
    """What the command line said. *first* and *last* are --from and --to; *extra_vars* the -e options as given."""

    site: str = DEFAULT_SITE
    first: str | None = None
    last: str | None = None
    only: tuple[str, ...] = ()
    limit: str | None = None
    check: bool = False
    diff: bool = False
    resume: bool = False
    extra_vars: tuple[str, ...] = ()
    json: bool = False
    verbosity: int = 0
    vault_password_file: Path | None = None
    svg: Path | None = None

    def refuse_conflicts(self) -> None:
        """Refuse options that contradict each other.

        Raises:
            BadInput: naming both.

        """
        part = [name for name, given in (("--from", self.first), ("--to", self.last), ("--only", self.only)) if given]
        if self.only and len(part) > 1:
            raise BadInput(f"--only and {part[0]} contradict each other")
        if self.resume and part:
            raise BadInput(f"--resume and {part[0]} contradict each other: --resume goes on where the last run ended")
        if self.resume and self.check:
            raise BadInput("--resume and --check contradict each other: a check changes nothing that could be resumed")
        if self.vault_password_file and not self.vault_password_file.is_file():
            raise BadInput(f"--vault-password-file {self.vault_password_file}: no such file")
        if self.svg and not self.svg.absolute().parent.is_dir():
            raise BadInput(f"--svg {self.svg}: no directory {self.svg.absolute().parent}")

    def words(self, verb: str) -> list[str]:
        """Return the command as words, the values given with -e left out."""
        words = ["python", "-m", "provision", verb]
        if self.site != DEFAULT_SITE:
            words += ["-i", self.site]
        for name, value in (("--from", self.first), ("--to", self.last), ("--limit", self.limit)):
            if value:
                words += [name, value]
        for phase in self.only:
            words += ["--only", phase]
        flags = (
            ("--check", self.check),
            ("--diff", self.diff),
            ("--resume", self.resume),
            ("--json", self.json),
        )
        words += [name for name, given in flags if given]
        for option in parse_extra_vars(self.extra_vars).shown:
            words += ["-e", option]
        if self.verbosity:
            words.append("-" + "v" * self.verbosity)
        if self.vault_password_file:
            words += ["--vault-password-file", str(self.vault_password_file)]
        return words

    def shown(self, verb: str) -> str:
        """Return the command as one line."""
        return shlex.join(self.words(verb))

    def again(self, verb: str, python: str, *, resume: bool) -> str:
        """Return the command that runs this again, or goes on where it ended; *python* is its first word."""
        options = replace(self, resume=resume or self.resume, limit=None if resume else self.limit)
        if resume:
            options = replace(options, first=None, last=None, only=())
        return shlex.join([python, *options.words(verb)[1:]])


def python_word(project: Project) -> str:
    """Return the interpreter as a person in the project's root would type it: `python` where that is this one."""
    found = shutil.which("python")
    return "python" if found and Path(found) == Path(sys.executable) else project.shown(Path(sys.executable))
