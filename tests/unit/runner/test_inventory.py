"""Ansible's own reading of an inventory, and what is refused about one. Each case starts a process: about 0.6 s."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provision.errors import BadInput
from provision.inventory import Inventory, InventoryQuery
from provision.site import encrypted_values, resolve
from tests.runner.fake_project import FakeProject

TWO_SERVERS = "all: {children: {server: {hosts: {h1: , h2: }}}}\n"
NO_SERVER = "all: {hosts: {h1: , h2: }}\n"


def ask(
    fake: FakeProject, limit: str | None = None, password: Path | None = None, *, connections: bool = False
) -> Inventory:
    site = resolve(fake.project, "fake")
    encrypted = encrypted_values(fake.project, site)
    return InventoryQuery(
        fake.project, site, encrypted, limit=limit, vault_password_file=password, connections=connections
    ).answer()


def encrypt(text: str, password: str) -> str:
    from ansible.constants import DEFAULT_VAULT_ID_MATCH  # noqa: F401  (loads Ansible's settings once, quietly)
    from ansible.parsing.vault import VaultLib, VaultSecret

    return str(VaultLib().encrypt(text, VaultSecret(password.encode())), "ascii")


def test_groups_hosts_limit_and_templated_connection_settings(fake: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PLACE", "/a place")
    fake.write(
        "inventory/fake/group_vars/all/x.yml", "plane_site_is_lab: true\nplace: \"{{ lookup('env', 'SOME_PLACE') }}\"\n"
    )
    fake.write(
        "inventory/fake/host_vars/h2.yml",
        'ansible_ssh_extra_args: "-o UserKnownHostsFile={{ place }}/{{ inventory_hostname }}"\n',
    )
    found = ask(fake, limit="h2", connections=True)
    assert found.groups["server"] == ["h1"]
    assert (found.hosts, found.chosen, found.lab) == (["h1", "h2"], ["h2"], True)
    assert found.connections["h2"]["ansible_ssh_extra_args"] == "-o UserKnownHostsFile=/a place/h2"
    assert found.connections["h1"]["ansible_connection"] == "local"


@pytest.mark.parametrize(
    ("hosts", "limit", "words"),
    [
        (NO_SERVER, None, "inventory/fake/hosts.yml: group server holds no host; exactly one is wanted"),
        (TWO_SERVERS, None, "inventory/fake/hosts.yml: group server holds 2 hosts (h1, h2); exactly one is wanted"),
        ("all:\n", None, "inventory/fake/hosts.yml: no hosts"),
        (None, "h9", "--limit h9: leaves no host; known: h1, h2"),
        ("just words\n", None, "inventory/fake/hosts.yml: "),
    ],
)
def test_refused(fake: FakeProject, hosts: str | None, limit: str | None, words: str) -> None:
    if hosts:
        fake.write("inventory/fake/hosts.yml", hosts)
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        ask(fake, limit)
    assert "Traceback" not in str(caught.value)


def test_vault(fake: FakeProject, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("open sesame\n")
    wrong.write_text("open barley\n")
    lines = encrypt("inline-secret", "open sesame").splitlines()
    inline = "plain: 1\ntoken: !vault |\n" + "".join(f"  {line}\n" for line in lines)
    fake.write("inventory/fake/group_vars/all/inline.yml", inline)
    fake.write(
        "inventory/fake/group_vars/all/whole.yml", encrypt("password: whole-secret\nlist: [deeper-secret]\n", "open sesame")
    )
    found = ask(fake, password=right)
    assert {"inline-secret", "whole-secret", "deeper-secret"} <= set(found.secrets)
    with pytest.raises(BadInput) as caught:
        ask(fake, password=wrong)
    assert caught.value.lines == (
        "inventory/fake/group_vars/all/inline.yml:2: the vault password given does not open it",
        "inventory/fake/group_vars/all/whole.yml: the vault password given does not open it",
    )
    with pytest.raises(
        BadInput, match=r"inline.yml:2: encrypted, and no vault password is given: --vault-password-file FILE"
    ):
        ask(fake)


def test_a_vault_password_from_the_settings_file(fake: FakeProject, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    fake.write(
        "ansible.cfg",
        fake.project.ansible_cfg.read_text().replace("[defaults]", f"[defaults]\nvault_password_file = {password}"),
    )
    fake.write("inventory/fake/group_vars/all/whole.yml", encrypt("a: broken: yaml: [\n", "open sesame"))
    with pytest.raises(BadInput, match=r"group_vars/all/whole.yml:1:10: broken YAML"):
        ask(fake)
    fake.write("inventory/fake/group_vars/all/whole.yml", "$ANSIBLE_VAULT;1.1;AES256\nnonsense\n")
    with pytest.raises(BadInput, match=r"whole\.yml: the vault password given does not open it"):
        ask(fake)
