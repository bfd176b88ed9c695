"""What is said when a run is over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from provision.command_line import RunOptions, python_word
from provision.errors import BadInput
from provision.labsite import lab_power_on
from provision.project import Project
from provision.receipt import BAD_INPUT, DONE, UNREACHABLE, Receipt
from provision.render import save_picture, summary
from provision.views import plain_marks, print_block

LOG = "ansible.log"


def report(
    project: Project, verb: str, options: RunOptions, receipt: Receipt, directory: Path, console: Console, hosts: int
) -> None:
    """Print the summary, on failure with why and how to go on; with --json the receipt goes to stdout."""
    then = _then(project, verb, options, receipt)
    whole = outcome(project, receipt, directory, hosts, ascii_only=plain_marks(console), then=then)
    print_block(console, Group(Text(), whole))
    if options.svg:
        draw(options.svg, whole, receipt)
    if options.json:
        print(receipt.to_json(), end="")


def outcome(
    project: Project, receipt: Receipt, directory: Path, hosts: int, *, ascii_only: bool = False, then: Sequence[str] = ()
) -> RenderableType:
    """Return everything there is to see of a finished run."""
    names = {"receipt": directory / "receipt.json", "log": directory / LOG}
    files = {name: project.shown(path) for name, path in names.items() if path.is_file()}
    return summary(receipt, hosts, ascii_only=ascii_only, files=files, then=then)


def draw(path: Path, whole: RenderableType, receipt: Receipt) -> None:
    """Write *whole* as an SVG picture, titled with the run's command.

    Raises:
        BadInput: the file cannot be written.

    """
    try:
        save_picture(path, whole, " ".join(receipt.command))
    except OSError as error:
        raise BadInput(f"--svg {path}: {error.strerror}") from None


def _then(project: Project, verb: str, options: RunOptions, receipt: Receipt) -> list[str]:
    if receipt.status == DONE:
        return []
    # Inputs must change before bad input can end well, and a check has nothing to resume: both start anew.
    anew = receipt.status == BAD_INPUT or receipt.mode == "check"
    again = options.again(verb, python_word(project), resume=not anew)
    if receipt.status != UNREACHABLE or receipt.site.instance is None or receipt.failure is None:
        return [again]
    return [*lab_power_on(receipt.failure.hosts, python_word(project)), again]
