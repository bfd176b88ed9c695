"""The lab as the default site: brought up when it is down, and named for what it is in the receipt."""

from __future__ import annotations

from collections.abc import Callable

from provision.errors import HostUnreachable, ProvisionError
from provision.inventory import Inventory
from provision.receipt import Standin
from provision.site import Site


def is_the_lab(site: Site, inventory: Inventory) -> bool:
    """Return True for the project's own lab: its inventory, and it calls itself one."""
    return inventory.lab and site.instance is not None


def lab_ready(say: Callable[[str], None]) -> list[Standin]:
    """Bring the lab up when none of its hosts runs, and return what stands in for a real part there.

    A single host that is off is left off: a run says that it is not reached, as it would of a real one.

    Raises:
        ProvisionError: it cannot be brought up; the message says which need is missing.

    """
    from provision.lab import Lab, LabError

    try:
        lab = Lab(say=say)
        if not any(host.state == "running" for host in lab.status().hosts):
            say(f"lab {lab.name} is down: bringing it up")
            lab.up()
        return [Standin(part.name, part.detail) for part in lab.standins()]
    except LabError as error:
        refusal = ProvisionError(*str(error).splitlines())
        refusal.exit_code = error.exit_code
        raise refusal from None


def lab_power_on(hosts: list[str], python: str) -> list[str]:
    """Return the commands that boot those of *hosts* that are off; *python* is their first word."""
    from provision.lab import Lab

    off = [host.host for host in Lab().status().hosts if host.state != "running" and host.host in hosts]
    return [f"{python} -m provision lab power on {host}" for host in off]


def lab_must_run() -> None:
    """Refuse to look at a lab that is down.

    Raises:
        HostUnreachable: it is.

    """
    from provision.lab import Lab

    lab = Lab()
    if not any(host.state == "running" for host in lab.status().hosts):
        raise HostUnreachable(f"lab {lab.name} is down; bring it up with: python -m provision lab up")
