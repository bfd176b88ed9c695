"""Hosts with nothing but a system: check changes no file, and refusals come before the first change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.plane import ROOT, Plane, copy_site

pytestmark = pytest.mark.lab


def test_check_on_freshly_booted_hosts_changes_no_file(bare: Plane) -> None:
    before = bare.written()
    bare.run("--check", "--diff")
    assert bare.written() == before


def edit(site: Path, change: Callable[[dict[str, object]], None]) -> None:
    path = site / "hosts.yml"
    inventory = yaml.safe_load(path.read_text())
    change(inventory["all"]["children"])
    path.write_text(yaml.safe_dump(inventory))


def one_name(site: Path) -> None:
    (site / "host_vars").mkdir()
    for host in ("spark-a", "spark-b"):
        (site / "host_vars" / f"{host}.yml").write_text("host_name: spark\n")


def link_local(site: Path) -> None:
    (site / "host_vars").mkdir()
    (site / "host_vars" / "spark-c.yml").write_text("host_management_address: 169.254.7.7\n")


def no_server(site: Path) -> None:
    edit(site, lambda groups: groups.pop("server"))  # type: ignore[arg-type]


def two_servers(site: Path) -> None:
    edit(site, lambda groups: groups.update(server={"hosts": {"spark-a": None, "spark-b": None}}))


def wrong_type(site: Path) -> None:
    (site / "group_vars" / "all" / "docker.yml").write_text("docker_engine_start_timeout: soon\n")


def text_for_list(site: Path) -> None:
    (site / "group_vars" / "all" / "ntp.yml").write_text("host_ntp_servers: ntp.example.org\n")


def bad_size(site: Path) -> None:
    (site / "group_vars" / "all" / "docker.yml").write_text("docker_engine_log_max_size: lots\n")


def typo(site: Path) -> None:
    (site / "group_vars" / "all" / "docker.yml").write_text("docker_engine_live_restor: true\n")


def wrong_sha256(site: Path) -> None:
    mirror = site / "mirror"
    mirror.mkdir()
    (mirror / "tool").write_text("served")
    file = {"url": "https://x.example.org/tool", "sha256": "0" * 64}
    pin = {"version": "v1", "roles": ["docker_engine"], "files": {"all": file}}
    variables = {"artifact_mirror": str(mirror), "artifact_cache": str(site / "cache"), "pins_artifacts": {"tool": pin}}
    (site / "group_vars" / "all" / "pins.yml").write_text(yaml.safe_dump(variables))


def broken_yaml(site: Path) -> None:
    (site / "group_vars" / "all" / "docker.yml").write_text("docker_engine_log_max_size: 50m\n  bad: [\n")


def vault(site: Path) -> None:
    (site / "group_vars" / "all" / "vault.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n3131\n")


def missing(site: Path) -> None:
    shutil.rmtree(site)


REFUSED: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "two hosts with one hostname": (one_name, [], ["spark-a, spark-b: host_name is 'spark'"]),
    "management address in 169.254/16": (
        link_local,
        [],
        ["spark-c: host_management_address is 169.254.7.7", "169.254/16"],
    ),
    "no server": (no_server, [], ["server", "exactly one", "no host"]),
    "two servers": (two_servers, [], ["server", "exactly one", "spark-a", "spark-b"]),
    "wrong type for the last role": (
        wrong_type,
        [],
        ["docker_engine_start_timeout is 'soon'", "whole number", "docker.yml:1"],
    ),
    "text where a list is wanted": (
        text_for_list,
        [],
        ["host_ntp_servers is 'ntp.example.org'", "wanted a list", "ntp.yml:1"],
    ),
    "a size that is none": (bad_size, ["--limit", "spark-b"], ["spark-b: docker_engine_log_max_size is 'lots'"]),
    "a variable no role has": (typo, [], ["docker_engine_live_restor", "did you mean docker_engine_live_restore?"]),
    "wrong sha256 in pins": (wrong_sha256, [], ["artifact tool v1", "expected " + "0" * 64]),
    "broken YAML": (broken_yaml, [], ["docker.yml", "2"]),
    "unreadable vault": (vault, [], ["vault.yml"]),
    "missing site": (missing, [], ["no such directory"]),
    "unknown phase": (lambda site: None, ["--only", "dokcer"], ["dokcer", "docker"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_the_first_change_with_one_line(bare: Plane, tmp_path: Path, case: str) -> None:
    change, words, said = REFUSED[case]
    plane = Plane(bare.lab, copy_site(tmp_path))
    change(plane.site)
    before = bare.written()
    ran = plane.run(*words, expect=3)
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if all(word in line for word in said)]
    assert len(lines) >= 1, f"no single line says {said}:\n{ran.stdout}\n{ran.stderr}"
    assert "Traceback" not in ran.stdout + ran.stderr
    assert bare.written() == before


def test_ansible_alone_refuses_an_unknown_tag(bare: Plane) -> None:
    ran = bare.playbook("--tags", "dokcer")
    assert ran.returncode != 0 and "did you mean docker?" in ran.stdout + ran.stderr


def test_the_site_example_is_fit_for_a_reader_of_the_readme() -> None:
    inventory = yaml.safe_load((ROOT / "inventory" / "sparks" / "hosts.yml").read_text())["all"]["children"]
    assert len(inventory["server"]["hosts"]) == 1 and len(inventory["ring"]["hosts"]) == 4
    assert json.dumps(inventory).find("plane_site_is_lab") == -1
