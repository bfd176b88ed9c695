"""Shared by all tests: where the checkout is, and the project's own collection beside those of the `ansible` package."""

from __future__ import annotations

import sys
from pathlib import Path

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
