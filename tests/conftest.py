"""Shared by all tests: where the checkout is, and the project's own collection beside those of the `ansible` package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
for path in (ROOT, ROOT / "collections"):
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))

# The `ansible` package ships `ansible_collections` as a package of its own; ours joins its search path.
import ansible_collections  # noqa: E402

_OWN = str(ROOT / "collections" / "ansible_collections")
if _OWN not in list(ansible_collections.__path__):
    ansible_collections.__path__.insert(0, _OWN)

from hypothesis import HealthCheck, settings  # noqa: E402

# Machines are noisy: no verdict by time, and the same examples on each run.
settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("suite")


# Tests that share a lab stay in one process; what takes longest begins first.
_GROUPS = (
    ("tests/e2e/test_plane", "e2e-spark"),
    ("tests/molecule/", None),
    ("tests/e2e/", "e2e-bare"),
    ("tests/lab_modules/", "lab-modules"),
    ("tests/lab/", "lab"),
    ("tests/runner/", "runner"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Place every test in its group for `--dist loadgroup`, and the groups in order."""
    placed: list[tuple[int, int, pytest.Item]] = []
    for place, item in enumerate(items):
        path = item.path.relative_to(ROOT).as_posix()
        rank, group = next(
            ((rank, group) for rank, (prefix, group) in enumerate(_GROUPS) if path.startswith(prefix)), (len(_GROUPS), path)
        )
        item.add_marker(pytest.mark.xdist_group(group or item.nodeid))
        placed.append((rank, place, item))
    items[:] = [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]
