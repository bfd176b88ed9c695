"""A marked block at the top of a file that others also own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.spark.plane.plugins.module_utils import fileset
from ansible_collections.spark.plane.plugins.module_utils.filespec import parse

# The owner under which these tests run; on a host it is root.
ME = {"owner": str(os.getuid()), "group": str(os.getgid())}


def run(path: Path, content: bytes | None, state: str = "present") -> bool:
    request = parse([{"dest": str(path), "block": "spark plane", "state": state, **ME}], [], packed=True)
    assert not request.problems
    plan = fileset.plan(request, [content], check=False)
    fileset.apply(plan)
    return bool(plan.files)


def test_foreign_lines_stay_and_the_block_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n127.0.1.1 old\n")
    assert run(path, b"10.0.0.1 a\n")
    assert path.read_text() == "# BEGIN spark plane\n10.0.0.1 a\n# END spark plane\n127.0.0.1 localhost\n127.0.1.1 old\n"


def test_second_run_changes_nothing_and_new_content_replaces(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("x\n")
    run(path, b"1")
    assert not run(path, b"1")
    assert run(path, b"2")
    assert path.read_text() == "# BEGIN spark plane\n2\n# END spark plane\nx\n"


def test_absent_takes_out_the_block_alone(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("x\n")
    run(path, b"1")
    assert run(path, None, "absent")
    assert path.read_text() == "x\n"
    assert not run(path, None, "absent")
    assert not run(tmp_path / "none", None, "absent")


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    assert run(tmp_path / "hosts", b"1")
    assert (tmp_path / "hosts").read_text() == "# BEGIN spark plane\n1\n# END spark plane\n"


def test_a_begin_without_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# BEGIN spark plane\nx\n")
    with pytest.raises(fileset.FilesError, match="# END spark plane"):
        run(path, b"1")
    assert path.read_text() == "# BEGIN spark plane\nx\n"
