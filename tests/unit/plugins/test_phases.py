"""Phases are read from site.yml; tags select them as Ansible does."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.spark.plane.plugins.plugin_utils import phases
from ansible_collections.spark.plane.plugins.plugin_utils.variables import load_yaml

ROOT = Path(__file__).resolve().parents[3]


def picked(*run: str, skip: tuple[str, ...] = ()) -> list[str]:
    return [p.name for p in phases.read(ROOT / "site.yml") if p.selected(frozenset(run), frozenset(skip))]


def test_preflight_is_first_and_always_runs() -> None:
    assert picked("all")[0] == "preflight"
    assert picked("docker") == ["preflight", "docker"]
    assert "verify" not in picked("all") and picked("verify") == ["preflight", "verify"]
    assert "docker" not in picked("all", skip=("docker",))


def test_every_phase_has_a_line_a_group_and_its_own_name_as_tag() -> None:
    for phase in phases.read(ROOT / "site.yml"):
        assert phase.line and phase.name in phase.tags
        assert phase.tags & {"plane", "model", "never"}


def test_roles_are_found_in_roles_and_in_tasks() -> None:
    by_name = {phase.name: phase for phase in phases.read(ROOT / "site.yml")}
    assert [use.role for use in by_name["docker"].uses] == ["docker_engine"]
    assert {use.role for use in by_name["verify"].uses} == {"host", "docker_engine"}


def test_unknown_tags() -> None:
    assert phases.unknown_tags(phases.read(ROOT / "site.yml"), frozenset({"docker", "plane", "all", "dokcer"})) == ["dokcer"]


def test_play_names_are_unique_so_that_a_play_names_its_phase() -> None:
    names = [play["name"] for book in sorted((ROOT / "playbooks").glob("*.yml")) for play in load_yaml(book)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("text", ["{}", "- hosts: all\n"])
def test_a_site_that_is_no_list_of_imports(tmp_path: Path, text: str) -> None:
    (tmp_path / "site.yml").write_text(text)
    with pytest.raises(ValueError, match=r"site\.yml"):
        phases.read(tmp_path / "site.yml")
