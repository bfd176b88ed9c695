"""One clear message out of a result. The results are those that ansible-core 2.19 was seen to return."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.failure import start_message, task_message, unreachable_message

CASES = json.loads(Path(__file__).with_name("cases").joinpath("failures.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_message(case: dict[str, Any]) -> None:
    assert task_message(case["result"]) == case["message"]


def test_a_long_message_is_cut() -> None:
    message = task_message({"msg": "\n".join(["x" * 1000] * 30)})
    assert len(message.splitlines()) == 13
    assert message.endswith("... and 18 lines more in ansible.log")
    assert max(map(len, message.splitlines())) == 600


DENIED = "root@h: Permission denied (publickey)."
LOST = 'Data could not be sent to remote host "h". Make sure this host can be reached over ssh: Connection closed'


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (f"Failed to connect to the host via ssh: {DENIED}", DENIED),
        (LOST, "Connection closed"),
        ("Warning: Permanently added 'h'", "Warning: Permanently added 'h'"),
        ("", "no reason given"),
    ],
)
def test_unreachable(words: str, wanted: str) -> None:
    assert unreachable_message({"msg": words}) == wanted


def test_before_the_first_play() -> None:
    assert (
        start_message(["[ERROR]: couldn't resolve module 'x'.", "Origin: /p/u.yml:6:7", "", "4 y"])
        == "/p/u.yml:6:7: couldn't resolve module 'x'."
    )
    assert start_message(["ERROR! no playbook"]) == "no playbook"
    assert start_message(["Traceback", "ImportError: x"]) == "Traceback ImportError: x"
    assert start_message([]) == "Ansible ended without a word"
