"""Phases come from `site.yml` alone, and what cannot be told apart is refused."""

from __future__ import annotations

import pytest

from provision.errors import BadInput
from provision.phases import read_phases, select
from tests.runner.fake_project import PACKAGE, FakeProject

PLAY = "- name: {name}\n  hosts: all\n  tasks: []\n"


def test_order_names_and_plays(fake: FakeProject) -> None:
    phases = read_phases(fake.project)
    assert [phase.name for phase in phases.all] == ["preflight", "host", "docker", "verify"]
    assert [phase.name for phase in phases.of_group("plane")] == ["preflight", "host", "docker"]
    assert phases.of_group("model") == []
    docker = phases.of_play("The docker play")
    assert docker is not None
    assert (docker.name, docker.title, docker.groups) == ("docker", "Docker runs", ("plane",))
    assert phases.of_play("no such play") is None


def test_the_project_itself_reads() -> None:
    from provision.project import Project

    phases = read_phases(Project(PACKAGE))
    assert [phase.name for phase in phases.all if phase.always] == ["preflight"]
    assert phases.of_group("plane")[0].name == "preflight"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["preflight", "host", "docker"]),
        ({"first": "docker"}, ["preflight", "docker"]),
        ({"last": "host"}, ["preflight", "host"]),
        ({"first": "host", "last": "host"}, ["preflight", "host"]),
        ({"only": ("docker",)}, ["preflight", "docker"]),
        ({"only": ("docker", "host")}, ["preflight", "host", "docker"]),
        ({"last": "preflight"}, ["preflight"]),
    ],
)
def test_selection(fake: FakeProject, options: dict[str, str], wanted: list[str]) -> None:
    chosen = select(read_phases(fake.project), "plane", **options)  # type: ignore[arg-type]
    assert [phase.name for phase in chosen] == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"first": "dokcer"}, "unknown phase dokcer (did you mean docker?); known: preflight, host, docker"),
        ({"only": ("k3s",)}, "unknown phase k3s; known:"),
        ({"last": "verify"}, "unknown phase verify"),
        ({"first": "docker", "last": "host"}, "--from docker comes after --to host"),
    ],
)
def test_refused_selection(fake: FakeProject, options: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        select(read_phases(fake.project), "plane", **options)  # type: ignore[arg-type]


def test_model_without_phases_is_refused(fake: FakeProject) -> None:
    with pytest.raises(BadInput, match="no phase of the model"):
        select(read_phases(fake.project), "model")


def test_an_imported_playbook_gives_its_plays(fake: FakeProject) -> None:
    fake.write("playbooks/parts/inner.yml", PLAY.format(name="An inner play"))
    fake.write(
        "playbooks/docker.yml", "- ansible.builtin.import_playbook: parts/inner.yml\n" + PLAY.format(name="An outer play")
    )
    docker = read_phases(fake.project).of_play("An inner play")
    assert docker is not None
    assert docker.plays == ("An inner play", "An outer play")


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("playbooks/docker.yml", PLAY.format(name="The host play"), "play name used twice: The host play"),
        ("playbooks/docker.yml", "- hosts: all\n", "play 1 has no fixed name"),
        ("playbooks/docker.yml", PLAY.format(name='"{{ x }}"'), "play 1 has no fixed name"),
        ("playbooks/docker.yml", "hosts: all\n", "a list of plays is wanted"),
        ("playbooks/docker.yml", "- import_playbook: docker.yml\n", "imports itself"),
        ("playbooks/docker.yml", "- name: x\n  hosts: [\n", "playbooks/docker.yml:3:1: broken YAML"),
        ("site.yml", "- hosts: all\n", "entry 1 is no import_playbook"),
        ("site.yml", "- import_playbook: playbooks/host.yml\n  tags: [host]\n", "has no name"),
        ("site.yml", "- import_playbook: playbooks/host.yml\n  name: x\n", "does not carry the tag host"),
        ("site.yml", "- import_playbook: playbooks/no.yml\n  name: x\n  tags: no\n", "does not carry the tag no"),
        ("site.yml", "- import_playbook: playbooks/gone.yml\n  name: x\n  tags: gone\n", "no such playbook"),
        ("site.yml", "{}\n", "a list of import_playbook entries"),
    ],
)
def test_refused_files(fake: FakeProject, path: str, text: str, words: str) -> None:
    fake.write(path, text)
    with pytest.raises(BadInput, match=words):
        read_phases(fake.project)


def test_a_phase_twice_is_refused(fake: FakeProject) -> None:
    fake.write(
        "site.yml", fake.project.site_yml.read_text() + "- name: x\n  import_playbook: playbooks/host.yml\n  tags: host\n"
    )
    with pytest.raises(BadInput, match="phase used twice: host"):
        read_phases(fake.project)
