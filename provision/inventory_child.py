"""Reads an inventory with Ansible's own code, in a process of its own: `python -m provision.inventory_child`.

A process of its own because Ansible takes its settings from the environment once, at import, and so that this work
runs beside the runner's other preparations (it costs about 0.6 s, nearly all of it import). The request comes as JSON
on stdin, the answer goes as JSON to stdout; neither ever stands in an argument list, since both may hold secrets.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from provision.errors import BadInput
from provision.yamlfiles import VAULT_HEADER, VaultText, parse, strings

# What ssh needs to know (ansible.builtin.ssh's own variable names), plus what tells a lab from a real site.
CONNECTION = (
    "ansible_connection",
    "ansible_host",
    "ansible_ssh_host",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_private_key_file",
    "ansible_ssh_private_key_file",
    "ansible_ssh_executable",
    "ansible_ssh_args",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_control_path",
    "ansible_control_path_dir",
    "ansible_host_key_checking",
    "ansible_ssh_host_key_checking",
)
LAB_FLAG = "plane_site_is_lab"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return groups, hosts and secrets of the inventory, or the lines that say what is wrong with it."""
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    from ansible.vars.manager import VariableManager

    init_plugin_loader()
    loader = DataLoader()
    secrets, problems = _decrypt(loader, request)
    if problems:
        return {"problems": problems}
    try:
        inventory = InventoryManager(loader=loader, sources=[request["inventory"]])
        if request["limit"]:
            inventory.subset(request["limit"])
        chosen = [host.name for host in inventory.list_hosts()]
        inventory.subset(None)
        manager = VariableManager(loader=loader, inventory=inventory)
        variables = {host.name: manager.get_vars(host=host, include_hostvars=False) for host in inventory.list_hosts()}
        connections = _connections(loader, variables) if request["connections"] else {}
    except AnsibleError as error:
        return {"problems": [f"{request['shown']}: {' '.join(str(error).split())}"]}
    return {
        "groups": {name: list(hosts) for name, hosts in inventory.get_groups_dict().items()},
        "hosts": list(variables),
        "chosen": chosen,
        "lab": any(hostvars.get(LAB_FLAG) is True for hostvars in variables.values()),
        "connections": connections,
        "secrets": secrets,
        "problems": [],
    }


def _decrypt(loader: Any, request: dict[str, Any]) -> tuple[list[str], list[str]]:
    encrypted = request["encrypted"]
    if not encrypted and not request["vault_password_file"]:
        return [], []
    from ansible import constants
    from ansible.cli import CLI
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import VaultLib

    files = [request["vault_password_file"]] if request["vault_password_file"] else []
    identities = [entry for entry in constants.DEFAULT_VAULT_IDENTITY_LIST if not entry.endswith("@prompt")]
    first = encrypted[0]["where"] if encrypted else ""
    if not (files or identities or constants.DEFAULT_VAULT_PASSWORD_FILE):
        return [], [f"{first}: encrypted, and no vault password is given: --vault-password-file FILE is wanted"]
    try:
        vault_secrets = CLI.setup_vault_secrets(loader, identities, vault_password_files=files, auto_prompt=False)
    except AnsibleError as error:
        return [], [f"vault password: {' '.join(str(error).split())}"]
    vault = VaultLib(vault_secrets)
    found: list[str] = []
    problems: list[str] = []
    for value in encrypted:
        text = value["ciphertext"].strip()
        if not text.startswith(VAULT_HEADER):
            problems.append(f"{value['where']}: not vault text: it does not begin with {VAULT_HEADER}")
            continue
        try:
            plain = vault.decrypt(text.encode()).decode()
        except Exception:
            problems.append(f"{value['where']}: the vault password given does not open it")
            continue
        try:
            data = parse(plain, value["where"])
        except BadInput as error:
            # Inside an encrypted file that is a mistake; a single encrypted value need be no YAML.
            if ":" not in value["where"]:
                problems += error.lines
            data = None
        found += strings(data) if isinstance(data, dict) else [plain]
    return found, problems


def _connections(loader: Any, variables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from ansible.template import Templar

    found: dict[str, dict[str, Any]] = {}
    for host, hostvars in variables.items():
        templar = Templar(loader=loader, variables=hostvars)
        found[host] = {name: templar.template(hostvars[name]) for name in CONNECTION if name in hostvars}
    return found


def _plain(value: Any) -> Any:
    return value.ciphertext if isinstance(value, VaultText) else str(value)


def main() -> None:
    """Answer the one request on stdin."""
    # Ansible prints warnings wherever it likes: the answer alone may reach stdout.
    with contextlib.redirect_stdout(sys.stderr):
        reply = json.dumps(answer(json.load(sys.stdin)), default=_plain)
    sys.stdout.write(reply)


if __name__ == "__main__":
    main()
