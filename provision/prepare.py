"""Everything that is read and judged before a run may begin."""

from __future__ import annotations

from dataclasses import dataclass

from provision.command_line import RunOptions
from provision.extravars import ExtraVars, parse_extra_vars
from provision.inputs import read_inputs
from provision.inventory import Inventory, InventoryQuery
from provision.phases import Phases, read_phases
from provision.project import Git, Project
from provision.receipt import GitRecord, Inputs
from provision.redact import Redactor
from provision.site import Site, encrypted_values, resolve


@dataclass(frozen=True)
class Prepared:
    """The site and what it is made of; *redactor* knows its secrets."""

    site: Site
    phases: Phases
    extra_vars: ExtraVars
    inventory: Inventory
    inputs: Inputs
    git: GitRecord
    redactor: Redactor


def prepare(project: Project, options: RunOptions, *, recorded: bool = True) -> Prepared:
    """Read and judge all inputs. Ansible reads the inventory in a process of its own meanwhile.

    A run that is not *recorded* needs no digests of its inputs, and leaves nothing in the site's state.

    Raises:
        BadInput: something given cannot be used; nothing was changed.

    """
    options.refuse_conflicts()
    site = resolve(project, options.site)
    phases = read_phases(project)
    extra_vars = parse_extra_vars(options.extra_vars)
    query = InventoryQuery(
        project,
        site,
        encrypted_values(project, site),
        limit=options.limit,
        vault_password_file=options.vault_password_file,
    )
    try:
        inputs = read_inputs(project, site, extra_vars) if recorded else Inputs("")
        git = project.git() if recorded else Git(None, False)
        # ansible-runner is needed soon, and its import costs 0.1 s: it too runs beside the query.
        import ansible_runner.interface  # noqa: F401
    except BaseException:
        query.abandon()
        raise
    inventory = query.answer()
    redactor = Redactor(site.secrets)
    for name, value in extra_vars.values.items():
        redactor.add(f"value of {name}", [value])
    redactor.add("secret of the site", inventory.secrets)
    return Prepared(site, phases, extra_vars, inventory, inputs, GitRecord(git.commit, git.dirty), redactor)
