"""`spark.plane.files` and `spark.plane.probe` through ansible-playbook, on this machine, in a directory of the test.

Two runs of ansible-playbook serve all tests here: each costs over a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plays import Played, Task, play

SECRET = "hunter2-do-not-show"


def local(tree: Path, tasks: list[Task], *options: str) -> Played:
    """Run tasks on this machine as the host box-7."""
    return play(
        tree,
        tasks,
        "-i",
        "box-7,",
        "-c",
        "local",
        *options,
        environment={"ANSIBLE_PYTHON_INTERPRETER": sys.executable},
        out=str(tree / "out"),
        number=5,
        secret=SECRET,
        nested="{{ {'n': number} }}",
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("play")
    role = tree / "roles/r"
    for path, content in {
        "templates/a.conf.j2": (
            "# plain\nhost={{ inventory_hostname }}\n{% for i in [1, 2] %}\ni={{ i }}\n{% endfor %}\n"
            "{% include 'part.j2' %}\n"
        ),
        "templates/part.j2": "nested={{ nested.n }} \\d",
        "templates/number.j2": "{{ number }}",
        "templates/undefined.j2": "x={{ no_such_variable }}\n",
        "templates/syntax.j2": "{% if %}\n",
        "templates/dict.j2": "{{ nested }}",
        "files/text": "from a file\n",
    }.items():
        (role / path).parent.mkdir(parents=True, exist_ok=True)
        (role / path).write_text(content)
    (role / "files/binary").write_bytes(bytes(range(256)))
    (role / "files/big").write_bytes(b"x" * ((1 << 20) + 1))
    return tree


@pytest.fixture(scope="module")
def first(tree: Path) -> Played:
    files: list[dict[str, Any]] = [
        {"dest": "{{ out }}/a.conf", "template": "a.conf.j2", "mode": "0640"},
        {"dest": "{{ out }}/number", "template": "number.j2"},
        {"dest": "{{ out }}/content", "content": "{{ number }}"},
        {"dest": "{{ out }}/text", "src": "text"},
        {"dest": "{{ out }}/binary", "src": "binary"},
        {"dest": "{{ out }}/j.json", "json": {"b": "{{ nested }}", "a": [True, None, "ü", 1.5], "8080": "p"}},
        {"dest": "{{ out }}/secret", "content": "{{ secret }}\n", "secret": True, "mode": "0600"},
        {"dest": "{{ out }}/secret.json", "json": {"k": "{{ secret }}"}, "secret": True, "mode": "0600"},
    ]
    call = {"files": files, "directories": [{"path": "{{ out }}", "mode": "0700"}]}
    probe = {"files": ["{{ out }}/a.conf"], "packages": ["dpkg"], "units": [], "sysctl": ["kernel.ostype"], "clock": False}
    return local(
        tree,
        [
            {"name": "check", "spark.plane.files": call, "check_mode": True},
            {"name": "write", "spark.plane.files": call},
            {"name": "again", "spark.plane.files": call},
            {"name": "probe", "spark.plane.probe": probe, "check_mode": True},
        ],
        "--diff",
        "-vvv",
    )


def test_what_is_rendered_on_the_controller_lands_on_the_host(first: Played, tree: Path) -> None:
    out = tree / "out"
    assert (out / "a.conf").read_text() == "# plain\nhost=box-7\ni=1\ni=2\nnested=5 \\d\n"
    assert (out / "number").read_text() == (out / "content").read_text() == "5"
    assert (out / "text").read_text() == "from a file\n"
    assert (out / "binary").read_bytes() == bytes(range(256))
    assert (out / "j.json").read_text() == (
        '{\n  "8080": "p",\n  "a": [\n    true,\n    null,\n    "ü",\n    1.5\n  ],\n  "b": {\n    "n": 5\n  }\n}\n'
    )
    assert (out / "secret").read_text() == f"{SECRET}\n"
    modes = [(out / name).stat().st_mode & 0o777 for name in ("", "a.conf", "secret", "text")]
    assert modes == [0o700, 0o640, 0o600, 0o644]


def test_check_mode_tells_what_a_run_then_does_and_a_second_run_changes_nothing(first: Played, tree: Path) -> None:
    check, write, again = (first[name] for name in ("check", "write", "again"))
    assert check["changed"]
    for key in ("changed_files", "changed_directories", "diff"):
        assert check[key] == write[key]
    assert len(write["changed_files"]) == 8
    assert check["notes"] == write["notes"] == []
    assert (again["changed"], again["changed_files"], again["diff"]) == (False, [], [])


def test_a_secret_is_in_no_output_diff_or_log(first: Played) -> None:
    assert "host=box-7" in first.text, "the diff of an ordinary file is shown"
    assert "secret content, not shown" in first.text
    # The variable itself stands in the play, which is not printed; nothing else may hold it.
    assert SECRET not in first.text


def test_a_probe_answers_through_ansible(first: Played, tree: Path) -> None:
    seen = first["probe"]
    assert not seen["changed"]
    assert seen["probe"]["files"][f"{tree}/out/a.conf"]["mode"] == "0640"
    assert seen["probe"]["sysctl"] == {"kernel.ostype": "Linux"}


FAILURES: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "undefined",
        {"template": "undefined.j2"},
        ["template undefined.j2 for /x on box-7 cannot be rendered", "no_such_variable"],
    ),
    ("syntax", {"template": "syntax.j2"}, ["template syntax.j2 for /x on box-7 cannot be rendered"]),
    ("missing template", {"template": "nope.j2"}, ["template nope.j2 for /x on box-7", "nope.j2"]),
    ("template of a dict", {"template": "dict.j2"}, ["template dict.j2 for /x on box-7 is a mapping; wanted text"]),
    ("content of a dict", {"content": "{{ nested }}"}, ["content of /x is a mapping; wanted text (json: writes any value"]),
    ("big", {"src": "big"}, ["/x: src big has 1048577 bytes, at most 1048576 are sent"]),
    ("missing src", {"src": "nope"}, ["/x: src nope cannot be read"]),
    ("no source", {}, ["files[0] (/x): exactly one of template, content, src, json is wanted, seen none"]),
    (
        "date",
        {"json": {"a": [{"b": "{{ '2026-01-01' | to_datetime('%Y-%m-%d') }}"}]}},
        ["/x: json.a[0].b is a datetime, which JSON cannot hold"],
    ),
]


@pytest.fixture(scope="module")
def failures(tree: Path) -> Played:
    tasks: list[dict[str, Any]] = [
        {"name": name, "spark.plane.files": {"files": [{"dest": "/x", **entry}]}, "check_mode": True}
        for name, entry, _ in FAILURES
    ]
    tasks.append({"name": "unknown option", "spark.plane.files": {"file": []}})
    tasks.append({"name": "real", "spark.plane.files": {"files": [{"dest": "{{ out }}/no/a", "content": "{{ secret }}"}]}})
    return local(tree, tasks)


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, _, said in FAILURES], ids=[f[0] for f in FAILURES])
def test_a_failure_names_the_file_and_the_reason(failures: Played, name: str, said: list[str]) -> None:
    result = failures[name]
    assert result["failed"]
    for words in said:
        assert words in result["msg"]


def test_an_option_that_is_not_one_is_refused(failures: Played) -> None:
    assert failures["unknown option"]["failed"]
    assert "file" in failures["unknown option"]["msg"]


def test_a_failure_on_the_host_is_one_clear_message(failures: Played, tree: Path) -> None:
    result = failures["real"]
    assert result["msg"] == f"{tree}/out/no/a: its directory {tree}/out/no does not exist; list it under directories"
    assert SECRET not in failures.text
