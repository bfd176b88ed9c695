"""Every wrong argument of `spark.plane.files` is named, with its place, before anything is rendered."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.module_utils.filespec import parse
from ansible_collections.spark.plane.plugins.module_utils.packing import pack, unpack

OK = {"dest": "/etc/x", "content": "y"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"content": "y"}, "files[0]: dest must be an absolute path without '..', seen None"),
        ({"dest": "etc/x", "content": "y"}, "seen 'etc/x'"),
        ({"dest": "/etc/../x", "content": "y"}, "without '..'"),
        ({"dest": "/etc/x"}, "exactly one of template, content, src, json is wanted, seen none"),
        ({**OK, "src": "z"}, "seen content and src"),
        ({**OK, "state": "absent"}, "state absent takes no content"),
        ({**OK, "state": "gone"}, "state must be present or absent, seen 'gone'"),
        ({**OK, "mode": 420}, "mode must be a quoted octal string such as '0644', seen 420"),
        ({**OK, "mode": "0888"}, "seen '0888'"),
        ({**OK, "mode": "u=rw"}, "seen 'u=rw'"),
        ({**OK, "validate": "visudo -c"}, "validate must be a command with %s"),
        ({**OK, "secret": "yes"}, "secret must be true or false, seen 'yes'"),
        ({**OK, "follow": 1}, "follow must be true or false, seen 1"),
        ({**OK, "owner": ""}, "owner must be a name or a number, seen ''"),
        ({**OK, "ower": "root"}, "files[0] (/etc/x): unknown key ower; known are "),
        ("/etc/x", "files[0] is text; wanted a mapping"),
    ],
)
def test_a_wrong_file_entry_is_named(entry: Any, said: str) -> None:
    request = parse([entry], [])
    assert len(request.problems) == 1
    assert said in request.problems[0]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"path": "x"}, "directories[0]: path must be an absolute path"),
        ({"path": "/x", "mode": "7"}, "mode must be a quoted octal string such as '0755', seen '7'"),
        ({"path": "/etc", "state": "absent"}, "a top-level directory is never removed"),
        ({"path": "/", "state": "absent"}, "a top-level directory is never removed"),
        ({"path": "/srv/a", "dest": "/srv/b"}, "unknown key dest"),
    ],
)
def test_a_wrong_directory_entry_is_named(entry: Any, said: str) -> None:
    request = parse([], [entry])
    assert len(request.problems) == 1
    assert said in request.problems[0]


def test_all_problems_are_named_at_once() -> None:
    request = parse([{"dest": "a", "mode": 1}, OK, {**OK, "content": "z"}], [{"path": "/etc/x"}])
    assert len(request.problems) == 5
    assert sum("/etc/x is listed twice" in line for line in request.problems) == 2


@pytest.mark.parametrize("files", ["text", {"dest": "/x"}, 5])
def test_files_must_be_a_list(files: Any) -> None:
    assert "wanted a list of entries" in parse(files, None).problems[0]


def test_defaults() -> None:
    request = parse([OK], [{"path": "/srv/a"}])
    assert not request.problems
    (file,), (directory,) = request.files, request.directories
    assert (file.mode, file.owner, file.group, file.present, file.secret, file.follow) == (
        0o644,
        "root",
        "root",
        True,
        False,
        False,
    )
    assert (file.source, directory.mode) == ("content", 0o755)


def test_null_is_a_json_document_and_no_content() -> None:
    assert parse([{"dest": "/x", "json": None}], []).files[0].source == "json"
    assert parse([{"dest": "/x", "content": None}], []).problems


def test_contents_survive_the_trip_and_do_not_show() -> None:
    contents = ["grün s3cret\n".encode(), None, bytes(range(256)), b""]
    packed = pack(contents)
    assert unpack(packed) == contents
    assert packed.isascii()
    assert "s3cret" not in packed


@pytest.mark.parametrize("broken", ["!", "aGVsbG8=", "abc"])
def test_broken_contents_are_refused(broken: str) -> None:
    with pytest.raises(ValueError):
        unpack(broken)
