"""Merging daemon.json, naming conflicts, placing versions."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.filter.docker import (
    api_serves,
    daemon_conflicts,
    daemon_merge,
    engine_support,
)
from hypothesis import given
from hypothesis import strategies as st

PIN = {"minimum": "25", "maximum": "29", "unproven": ["29"]}


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        ([{"a": 1, "n": {"x": 1}}, {"n": {"y": 2}}], {"a": 1, "n": {"x": 1, "y": 2}}),
        ([{"registry-mirrors": ["m1"]}, {"registry-mirrors": ["m2", "m1"]}], {"registry-mirrors": ["m1", "m2"]}),
        (
            [{"exec-opts": ["native.cgroupdriver=cgroupfs", "other=1"]}, {"exec-opts": ["native.cgroupdriver=systemd"]}],
            {"exec-opts": ["other=1", "native.cgroupdriver=systemd"]},
        ),
        ([{"debug": True}, {"debug": False}], {"debug": False}),
        ([{"debug": True, "log-opts": {"tag": "t"}}, {"debug": None, "log-opts": {"tag": None}}], {"log-opts": {}}),
        (
            [{"log-opts": {"max-size": "1m", "tag": "t"}}, {"log-opts": {"max-size": "50m"}}],
            {"log-opts": {"max-size": "50m", "tag": "t"}},
        ),
    ],
)
def test_merge(layers: list[dict[str, Any]], merged: dict[str, Any]) -> None:
    assert daemon_merge(layers) == merged


_scalar = st.booleans() | st.integers() | st.text(max_size=3)
_json = st.recursive(_scalar, lambda value: st.dictionaries(st.text(max_size=2), value, max_size=3), max_leaves=8)
_list = st.lists(st.text(max_size=3), max_size=3, unique=True)
_layer = st.dictionaries(st.sampled_from(["a", "b", "exec-opts", "hosts"]), _json | _list, max_size=4)


@given(_layer, _layer)
def test_merging_again_changes_nothing(below: dict[str, Any], above: dict[str, Any]) -> None:
    once = daemon_merge([below, above])
    assert daemon_merge([once, above]) == once


@given(_layer, _layer)
def test_foreign_keys_stay(below: dict[str, Any], above: dict[str, Any]) -> None:
    merged = daemon_merge([below, above])
    assert all(merged[key] == value for key, value in below.items() if key not in above)


def test_conflict_names_key_and_file() -> None:
    flags: dict[str, dict[str, Any]] = {
        "data-root": {"value": "/mnt", "where": "/etc/systemd/system/docker.service.d/o.conf:3"},
        "hosts": {"value": "fd://", "where": "docker.service:1"},
        "runtimes": {"value": {}, "where": "docker.service:1", "merged": True},
    }
    (line,) = daemon_conflicts({"data-root": "/data", "runtimes": {}}, flags)
    assert "'data-root'" in line and "o.conf:3" in line and "'/mnt'" in line


@pytest.mark.parametrize(
    ("version", "support"),
    [
        ("24.0.7", "outside"),
        ("25.0.0", "supported"),
        ("5:28.3.2-1~ubuntu.24.04~noble", "supported"),
        ("26.1.5+dfsg1", "supported"),
        ("29.9.1", "unproven"),
        ("30.0.0", "outside"),
        ("", "outside"),
        ("dev", "outside"),
    ],
)
def test_engine_support(version: str, support: str) -> None:
    assert engine_support(version, PIN) == support


@pytest.mark.parametrize(
    ("low", "high", "serves"),
    [("1.24", "1.45", True), ("1.44", "1.52", True), ("1.45", "1.52", False), ("1.24", "1.43", False), (None, None, False)],
)
def test_api_range(low: str | None, high: str | None, serves: bool) -> None:
    assert api_serves("1.44", low, high) is serves
