"""Testinfra's `host` is the scenario's lab host, reached by the lab's own ssh settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import testinfra

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from provision.lab import Lab  # noqa: E402


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The one host of the scenario's lab."""
    argv = Lab(os.environ["SPARK_PLANE_LAB"]).ssh("spark-a")
    options = [argv[place + 1].replace("=", " ", 1) for place, word in enumerate(argv) if word == "-o"]
    keys = [f"IdentityFile {argv[place + 1]}" for place, word in enumerate(argv) if word == "-i"]
    config = tmp_path_factory.mktemp("ssh") / "config"
    config.write_text("\n".join(["Host spark-a", *options, *keys, ""]))
    return testinfra.get_host("ssh://root@spark-a", ssh_config=str(config))
