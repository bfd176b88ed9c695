"""A gate passes only on what was seen; `not provable` exists in the lab alone."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.action.gate import judge, overall


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ({"seen": "overlay2", "wanted": "overlay2"}, "passed"),
        ({"seen": "btrfs", "wanted": "overlay2"}, "failed"),
        ({"seen": 1, "one_of": [1, 2]}, "passed"),
        ({"seen": 3, "one_of": [1, 2]}, "failed"),
        ({"seen": 3, "at_least": 2}, "passed"),
        ({"seen": None, "at_least": 2}, "failed"),
        ({"seen": ["a", "b"], "contains": ["a"]}, "passed"),
        ({"seen": None, "contains": ["a"]}, "failed"),
    ],
)
def test_one_comparison(check: dict[str, Any], status: str) -> None:
    assert judge({"what": "w", **check}, lab=False)["status"] == status


def test_not_provable_is_a_failure_outside_the_lab() -> None:
    check = {"what": "w", "seen": 0, "wanted": 1, "provable": False, "reason": "no GPU"}
    assert judge(check, lab=True)["status"] == "not provable"
    assert judge(check, lab=False)["status"] == "failed"


@pytest.mark.parametrize(
    "check",
    [
        {"what": "w", "seen": 1},
        {"what": "w", "wanted": 1},
        {"seen": 1, "wanted": 1},
        {"what": "w", "seen": 1, "wanted": 1, "one_of": [1]},
        {"what": "w", "seen": 1, "wantd": 1},
        {"what": "w", "seen": 1, "wanted": 1, "provable": False},
    ],
)
def test_a_check_that_could_not_fail_is_refused(check: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="check"):
        judge(check, lab=True)


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([], "failed"),
        (["passed"], "passed"),
        (["passed", "not provable"], "not provable"),
        (["not provable", "failed"], "failed"),
    ],
)
def test_the_worst_check_is_the_gate(statuses: list[str], status: str) -> None:
    assert overall([{"status": s} for s in statuses]) == status
