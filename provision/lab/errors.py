"""What can go wrong with the lab."""

from __future__ import annotations

from provision.errors import EXIT_BAD_INPUT, EXIT_FAILED, ProvisionError


class LabError(ProvisionError):
    """A step failed. `exit_code` follows the project's table: EXIT_UNREACHABLE where a host takes no login."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(*message.splitlines())
        self.exit_code = exit_code


class NeedError(LabError):
    """The machine, or the request, lacks something the lab cannot do without."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=EXIT_BAD_INPUT)
