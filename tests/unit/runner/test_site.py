"""A site is found, and its files are read, before anything starts."""

from __future__ import annotations

import re

import pytest

from provision.errors import BadInput
from provision.site import encrypted_values, resolve
from provision.yamlfiles import VaultText, parse, strings
from tests.runner.fake_project import FakeProject

VAULT = "$ANSIBLE_VAULT;1.1;AES256\n62313365\n"


def test_by_name_and_by_path(fake: FakeProject) -> None:
    site = resolve(fake.project, "fake")
    assert (site.name, site.inventory.name) == ("fake", "hosts.yml")
    assert resolve(fake.project, str(site.path)) == site


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("fkae", "site fkae: no directory inventory/fkae (did you mean fake?); known: empty, fake"),
        ("/no/such/place", "site /no/such/place: no such directory"),
        ("empty", "site empty: inventory/empty has no hosts.yml"),
    ],
)
def test_refused(fake: FakeProject, given: str, words: str) -> None:
    (fake.root / "inventory/empty").mkdir()
    with pytest.raises(BadInput, match=re.escape(words)):
        resolve(fake.project, given)


@pytest.mark.parametrize(
    "path", ["hosts.yml", "group_vars/all.yml", "group_vars/all/x.yaml", "host_vars/h1", ".state/secrets.yml"]
)
def test_broken_yaml_is_named_with_file_line_and_column(fake: FakeProject, path: str) -> None:
    fake.write(f"inventory/fake/{path}", "a: 1\nb: [1, 2\nc: 3\n")
    with pytest.raises(BadInput, match=re.escape(f"inventory/fake/{path}:3:2: broken YAML")):
        encrypted_values(fake.project, resolve(fake.project, "fake"))


def test_files_ansible_does_not_read_may_be_anything(fake: FakeProject) -> None:
    fake.write("inventory/fake/.hidden/x.yml", "a: [")
    fake.write("inventory/fake/README.md", "a: [")
    assert encrypted_values(fake.project, resolve(fake.project, "fake")) == []


def test_encrypted_values_are_found_with_their_place(fake: FakeProject) -> None:
    fake.write("inventory/fake/group_vars/all/a.yml", "x: 1\ny:\n  - !vault |\n    $ANSIBLE_VAULT;1.1;AES256\n    6231\n")
    fake.write("inventory/fake/group_vars/all/b.yml", VAULT)
    found = encrypted_values(fake.project, resolve(fake.project, "fake"))
    assert [value.where for value in found] == [
        "inventory/fake/group_vars/all/a.yml:3",
        "inventory/fake/group_vars/all/b.yml",
    ]
    assert found[0].ciphertext.startswith("$ANSIBLE_VAULT;1.1;AES256\n6231")


def test_ansible_tags_are_understood() -> None:
    data = parse("a: !vault |\n  x\nb: !unsafe '{{ x }}'\nc: !unsafe [1, {d: 2}]\n", "x.yml")
    assert data == {"a": VaultText("x\n", 1), "b": "{{ x }}", "c": [1, {"d": 2}]}
    assert strings(data) == ["{{ x }}", "1", "2"]


def test_another_tag_is_broken_yaml() -> None:
    with pytest.raises(BadInput, match=r"x\.yml:1:4: broken YAML: could not determine a constructor"):
        parse("a: !python/object x\n", "x.yml")


def test_a_file_that_is_no_text(fake: FakeProject) -> None:
    (fake.root / "inventory/fake/group_vars").mkdir()
    (fake.root / "inventory/fake/group_vars/all.yml").write_bytes(b"a: \xff\n")
    with pytest.raises(BadInput, match=r"all.yml: not UTF-8 text \(byte 3\)"):
        encrypted_values(fake.project, resolve(fake.project, "fake"))


def test_two_labs_of_one_inventory_are_two_to_the_lock(fake: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write("inventory/lab/hosts.yml", "all:\n")
    monkeypatch.delenv("SPARK_PLANE_LAB", raising=False)
    first = resolve(fake.project, "lab")
    monkeypatch.setenv("SPARK_PLANE_LAB", "other")
    second = resolve(fake.project, str(fake.root / "inventory/lab"))
    assert (first.instance, second.instance) == ("lab", "other")
    assert first.run_state != second.run_state
    assert resolve(fake.project, "fake").run_state == fake.root / "inventory/fake/.state"
