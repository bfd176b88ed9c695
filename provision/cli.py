"""The command line: `python -m provision VERB`. One module per verb under `provision/commands/`."""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from provision.commands.lab import lab
from provision.commands.model import model
from provision.commands.phases import phases
from provision.commands.plane import plane
from provision.commands.receipts import receipts
from provision.commands.status import status
from provision.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, ProvisionError
from provision.project import Project


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 2 a phase failed, 3 bad input, 4 unreachable, 130 interrupted.",
)
def provision() -> None:
    """Spark Plane: bare DGX Spark hosts become one serving cluster, phase by phase."""


for _command in (plane, model, phases, status, receipts, lab):
    provision.add_command(_command)


def main(arguments: list[str] | None = None, project: Project | None = None) -> NoReturn:
    """Run the command line and exit with the code of the project's table; a problem is a line, never a stack trace."""
    words = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        code = provision.main(words, prog_name="provision", standalone_mode=False, obj=project or Project.here())
        sys.exit(code if isinstance(code, int) else 0)
    except ProvisionError as error:
        _refuse(words, error.exit_code, error.lines)
    except click.ClickException as error:
        # click's own code for a wrong option is 2, which here says that a phase failed.
        _refuse(words, EXIT_BAD_INPUT, (error.format_message(),))
    except OSError as error:
        _refuse(words, EXIT_FAILED, (str(error),))
    except (KeyboardInterrupt, click.Abort):
        _refuse(words, EXIT_INTERRUPTED, ("interrupted",))


def _refuse(words: list[str], code: int, lines: tuple[str, ...]) -> NoReturn:
    for line in lines:
        click.echo(f"provision: {line}", err=True)
    if "--json" in words:
        answer: dict[str, Any] = {"status": "refused", "exit_code": code, "problems": list(lines)}
        click.echo(json.dumps(answer, indent=2))
    sys.exit(code)


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
