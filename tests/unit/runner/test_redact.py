"""Secrets go, words stay."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.redact import Redactor

SECRET = "s3cret/+tok=n"


def redactor(*values: object) -> Redactor:
    made = Redactor()
    made.add("value of x", values)
    return made


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"before {SECRET} after",
        f"{SECRET}{SECRET}",
        json.dumps({"a": SECRET}),
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_gone(text: str) -> None:
    clean = redactor(SECRET).text(text)
    assert SECRET not in clean
    assert base64.b64encode(SECRET.encode()).decode() not in clean
    assert "<value of x>" in clean


def test_quotes_and_line_breaks_as_json_writes_them() -> None:
    secret = 'first"line\nsecond line'
    clean = redactor(secret).text(json.dumps([secret]) + ' first"line and second line')
    assert "first" not in clean
    assert "second" not in clean


def test_nested_values_and_data() -> None:
    made = redactor({"a": [SECRET, 123456789]})
    assert made.data({"k": [SECRET, 1, None, True, 123456789]}) == {"k": ["<value of x>", 1, None, True, "<value of x>"]}


def test_the_longer_of_two_goes_whole() -> None:
    made = Redactor()
    made.add("short", ["abcdef"])
    made.add("long", ["abcdefghij"])
    assert made.text("abcdefghij") == "<long>"


@pytest.mark.parametrize(
    "word", ["5", "true", True, None, "27.5.1", "v1.31.4+k3s1", "10.77.0.11", "10.0.0.0/24", "1024", "/etc", "enabled"]
)
def test_plain_settings_stay_readable(word: object) -> None:
    assert redactor(word).text(f"seen {word}") == f"seen {word}"


def test_a_secret_made_during_the_run(tmp_path: Path) -> None:
    file = tmp_path / "secrets.yml"
    made = Redactor(file)
    assert made.text(SECRET) == SECRET
    file.write_text(f"grafana: {json.dumps(SECRET)}\n")
    assert made.text(SECRET) == "<secret of the site>"
    file.write_text(f"grafana: {json.dumps(SECRET)}\nlangfuse: another-secret\n")
    assert made.text("another-secret") == "<secret of the site>"


@given(
    st.text(min_size=8, max_size=40).filter(lambda text: text.strip() == text and not text.startswith("/")),
    st.text(max_size=20),
)
def test_never_in_what_comes_out(secret: str, around: str) -> None:
    made = redactor(secret)
    if made.text(secret) != secret:
        assert secret not in made.text(f"{around}\n{secret}\n{around}").replace("<value of x>", "")
