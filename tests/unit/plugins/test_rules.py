"""Inventory rules: each names the host, what was seen and what is wanted."""

from __future__ import annotations

import pytest
from ansible_collections.spark.plane.plugins.plugin_utils import rules


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"all": []}, ["no hosts"]),
        ({"all": ["a"]}, ["`server`", "exactly one", "none"]),
        ({"all": ["a", "b"], "server": ["a", "b"]}, ["`server`", "a, b"]),
        ({"all": ["a"], "server": ["a"], "ring": ["a"]}, ["`ring`", "a alone"]),
        ({"all": ["a", "b"], "server": ["a"], "ring": ["a", "b"]}, []),
        ({"all": ["a"], "server": ["a"]}, []),
    ],
)
def test_groups(groups: dict[str, list[str]], words: list[str]) -> None:
    found = rules.groups(groups)
    assert bool(found) == bool(words)
    assert all(word in "\n".join(found) for word in words)


def test_two_hosts_with_one_name_are_named_together() -> None:
    (line,) = rules.names({"spark-a": "spark", "spark-b": "spark", "spark-c": "other"})
    assert line.startswith("spark-a, spark-b:") and "'spark'" in line


@pytest.mark.parametrize("name", ["Spark", "a.b", "-a", "a-", "", "a" * 64, None, 7])
def test_names_that_no_node_can_have(name: object) -> None:
    assert rules.names({"h": name})


@pytest.mark.parametrize("name", ["a", "spark-a", "0", "a" * 63])
def test_names_that_a_node_can_have(name: str) -> None:
    assert rules.names({"h": name}) == []


@pytest.mark.parametrize("address", ["169.254.0.1", "169.254.255.254"])
def test_link_local_management_address_is_refused_by_name(address: str) -> None:
    (line,) = rules.addresses({"spark-b": address}, required=True)
    assert line.startswith("spark-b:") and address in line and "169.254/16" in line


@pytest.mark.parametrize("address", ["127.0.0.1", "224.0.0.1", "0.0.0.0", "10.0.0", "fe80::1", "host"])
def test_unusable_addresses(address: str) -> None:
    assert rules.addresses({"h": address}, required=False)


def test_an_address_is_required_once_facts_are_read() -> None:
    assert rules.addresses({"h": ""}, required=False) == []
    assert "unknown" in rules.addresses({"h": ""}, required=True)[0]


def test_one_address_on_two_hosts() -> None:
    (line,) = rules.addresses({"a": "10.0.0.1", "b": "10.0.0.1"}, required=True)
    assert line.startswith("a, b:")


def test_missing_interface_lists_those_that_exist() -> None:
    (line,) = rules.interfaces({"e": "enP7s7"}, {"e": ["lo", "eno1"]})
    assert "'enP7s7'" in line and "eno1, lo" in line


def test_one_machine_under_two_names() -> None:
    assert rules.machines({"a": "m1", "b": "m1", "c": "m2"})[0].startswith("a, b:")
    assert rules.doors({"a": ("h", 22), "b": ("h", 22), "c": ("h", 23), "d": None, "e": None}) != []
    assert rules.doors({"a": ("h", 22), "b": ("h", 23)}) == []


def test_equal_texts_share_a_line() -> None:
    assert rules.together([("a", "x"), ("b", "x"), ("c", "y")]) == ["a, b: x", "c: y"]


def test_suggestion() -> None:
    assert rules.suggestion("dokcer", ["docker", "host"]) == "; did you mean docker?"
    assert rules.suggestion("zzz", ["docker"]) == ""
