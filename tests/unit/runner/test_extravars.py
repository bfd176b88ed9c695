"""`-e` in its three spellings; a value stands in no message and no argument."""

from __future__ import annotations

import json
import stat
from datetime import date
from pathlib import Path

import pytest

from provision.command_line import RunOptions
from provision.errors import BadInput
from provision.extravars import parse_extra_vars

SECRET = "CANARY-17"


def test_three_spellings_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "vars.yml"
    file.write_text("a: 1\nb: [x]\n")
    given = parse_extra_vars((f"@{file}", "a=2 c='x y'", '{"d": {"e": true}}'))
    assert given.values == {"a": "2", "b": ["x"], "c": "x y", "d": {"e": True}}
    assert given.shown == (f"@{file}", "a=...", "c=...", "d=...")


def test_values_travel_in_private_files_in_the_order_given(tmp_path: Path) -> None:
    file = tmp_path / "vars.yml"
    file.write_text("a: 1\n")
    given = parse_extra_vars((f"token={SECRET}", f"@{file}", "{day: 2026-01-02}"))
    arguments = given.arguments(tmp_path)
    assert SECRET not in " ".join(arguments)
    first, second, third = (Path(word[1:]) for word in arguments[1::2])
    assert arguments[::2] == ["-e"] * 3
    assert json.loads(first.read_text()) == {"token": SECRET}
    assert second == file
    assert json.loads(third.read_text()) == {"day": str(date(2026, 1, 2))}
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("@/no/such.yml", "no such file"),
        (f"/tmp/{SECRET}", "leading @"),
        (f"[{SECRET}]", "a mapping of variable names"),
        (f"{{a: [{SECRET}", "neither JSON nor YAML"),
        (f"a='{SECRET}", "unbalanced"),
        (SECRET, "key=value, JSON or @file"),
        ("", "key=value, JSON or @file"),
    ],
)
def test_refused_without_the_value(option: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        parse_extra_vars((option,))
    if not option.startswith("/"):
        assert SECRET not in str(caught.value)


def test_the_command_is_written_down_without_values() -> None:
    options = RunOptions(site="x y", only=("docker",), extra_vars=(f"token={SECRET}",), check=True, verbosity=2, limit="h1")
    shown = options.shown("plane")
    assert shown == "python -m provision plane -i 'x y' --limit h1 --only docker --check -e token=... -vv"


def test_the_command_that_resumes(tmp_path: Path) -> None:
    password = tmp_path / "password"
    options = RunOptions(first="host", limit="h1", diff=True, extra_vars=("a=1",), vault_password_file=password)
    again = options.again("plane", "py", resume=True).split()
    assert again[1:] == [
        "-m",
        "provision",
        "plane",
        "--diff",
        "--resume",
        "-e",
        "a=...",
        "--vault-password-file",
        str(password),
    ]
    anew = options.again("plane", "py", resume=False)
    assert "--from host --limit h1" in anew
    assert "--resume" not in anew


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RunOptions(resume=True, first="host"), "--resume and --from"),
        (RunOptions(resume=True, only=("host",)), "--resume and --only"),
        (RunOptions(resume=True, check=True), "--resume and --check"),
        (RunOptions(only=("host",), last="host"), "--only and --to"),
        (RunOptions(vault_password_file=Path("/no/such")), "/no/such: no such file"),
        (RunOptions(svg=Path("/no/such/x.svg")), "no directory /no/such"),
    ],
)
def test_conflicts(options: RunOptions, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        options.refuse_conflicts()


def test_no_conflict() -> None:
    RunOptions(first="host", last="docker", limit="h1", check=True, diff=True).refuse_conflicts()
    RunOptions(resume=True, limit="h1").refuse_conflicts()
