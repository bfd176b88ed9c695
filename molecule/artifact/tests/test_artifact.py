"""What the role placed."""

from __future__ import annotations

from typing import Any


def test_the_pinned_file_runs(host: Any) -> None:
    assert host.check_output("/usr/local/bin/pinned") == "pinned"
    assert host.file("/usr/local/bin/pinned").mode == 0o755


def test_the_learnt_file_is_whole(host: Any) -> None:
    learnt = host.file("/opt/learnt/1.0/learnt.txt")
    assert learnt.content_string == "learnt\n"
    assert (learnt.user, learnt.group, learnt.mode) == ("root", "root", 0o644)


def test_nothing_half_written_stays(host: Any) -> None:
    assert host.file("/opt/learnt/1.0").listdir() == ["learnt.txt"]
