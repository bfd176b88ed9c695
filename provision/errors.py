"""Exit codes, and the errors that become them.

The codes are part of the command line's contract (README): a script may branch on them.
"""

from __future__ import annotations

from collections.abc import Iterable

EXIT_DONE = 0
EXIT_FAILED = 2
EXIT_BAD_INPUT = 3
EXIT_UNREACHABLE = 4
EXIT_INTERRUPTED = 130


class ProvisionError(Exception):
    """A problem that ends a command with its own exit code and a few plain lines, never a stack trace."""

    exit_code = EXIT_FAILED

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class BadInput(ProvisionError):
    """What was given cannot be used: nothing was changed. Each line says where, what was seen, what is wanted."""

    exit_code = EXIT_BAD_INPUT


class HostUnreachable(ProvisionError):
    """A host, or the lab that holds it, does not answer."""

    exit_code = EXIT_UNREACHABLE


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ` (did you mean NAME?)` for a near miss of *wrong* in *known*, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
