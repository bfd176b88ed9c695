"""The receipt: its schema, its way to the disk, and who reads it back."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import stat
import typing
from pathlib import Path
from typing import Any

import pytest

from provision import receipt as rc
from provision.errors import BadInput
from provision.extravars import parse_extra_vars
from provision.inputs import differences, read_inputs
from provision.phases import read_phases
from provision.process import Process
from provision.resume import plan
from provision.site import resolve
from provision.store import all_runs, find_run, new_run, read_run
from tests.runner.fake_project import PACKAGE, FakeProject
from tests.unit.runner.samples import receipt_of

SCHEMA = json.loads((PACKAGE / "provision/receipt.schema.json").read_text())


def validate(data: Any) -> None:
    import jsonschema

    jsonschema.validate(data, SCHEMA)


def test_schema_accepts_what_is_written_and_reads_back() -> None:
    receipt = receipt_of(host="failed", gate="failed")
    text = receipt.to_json()
    validate(json.loads(text))
    assert rc.parse_receipt(text, "x") == receipt


def test_schema_refuses_something_else() -> None:
    import jsonschema

    data = json.loads(receipt_of().to_json())
    for change in ({"status": "fine"}, {"schema_version": 2}, {"surprise": 1}):
        with pytest.raises(jsonschema.ValidationError):
            validate(data | change)


def test_schema_and_classes_have_the_same_fields() -> None:
    defs = SCHEMA["$defs"] | {"receipt": SCHEMA}
    classes = {"site": rc.SiteRecord, "process": rc.RunProcess, "git": rc.GitRecord, "phase": rc.PhaseRecord}
    classes |= {"receipt": rc.Receipt, "inputs": rc.Inputs, "counts": rc.Counts, "gate": rc.Gate, "check": rc.Check}
    classes |= {"standin": rc.Standin, "failure": rc.Failure}
    assert defs.keys() == classes.keys()
    for name, kind in classes.items():
        assert set(defs[name]["properties"]) == {field.name for field in dataclasses.fields(typing.cast(Any, kind))}, name


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema_version": 1}', '{"schema_version": 1, "phases": 3}'])
def test_no_receipt(text: str) -> None:
    with pytest.raises(BadInput, match="no receipt"):
        rc.parse_receipt(text, "x")


def test_a_newer_schema_is_named() -> None:
    data = json.loads(receipt_of().to_json()) | {"schema_version": 9}
    with pytest.raises(BadInput, match="schema 9 is newer than 1"):
        rc.parse_receipt(json.dumps(data), "x")


def test_written_whole_and_private(tmp_path: Path) -> None:
    receipt = receipt_of()
    receipt.write(tmp_path)
    receipt.status = rc.DONE
    receipt.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]
    assert json.loads((tmp_path / "receipt.json").read_text())["status"] == "done"
    assert stat.S_IMODE((tmp_path / "receipt.json").stat().st_mode) == 0o600


def test_a_kill_while_writing_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = receipt_of()
    receipt.write(tmp_path)
    before = (tmp_path / "receipt.json").read_bytes()

    def killed(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    receipt.status = rc.DONE
    with pytest.raises(KeyboardInterrupt):
        receipt.write(tmp_path)
    assert (tmp_path / "receipt.json").read_bytes() == before


def test_a_run_whose_process_is_gone_was_interrupted(fake: FakeProject) -> None:
    directory = new_run(fake.project)
    receipt = receipt_of(preflight="done", host="running")
    me = Process.current()
    receipt.process = rc.RunProcess(me.pid, me.started)
    receipt.write(directory)
    alive = read_run(directory)
    assert alive is not None
    assert alive.receipt.status == rc.RUNNING

    receipt.process = rc.RunProcess(me.pid, "another boot, another process")
    receipt.write(directory)
    gone = read_run(directory)
    assert gone is not None
    assert gone.receipt.status == rc.INTERRUPTED
    assert [phase.status for phase in gone.receipt.phases] == ["done", "interrupted", "pending"]
    assert gone.receipt.failure is not None
    assert gone.receipt.failure.phase == "host"
    assert json.loads((directory / "receipt.json").read_text())["status"] == "running"


def test_finding_a_run(fake: FakeProject) -> None:
    for number in (1, 2):
        receipt = receipt_of()
        receipt.id = f"2026010{number}T000000Z-000{number}"
        directory = fake.root / "runs" / receipt.id
        directory.mkdir(parents=True)
        receipt.write(directory)
    (fake.root / "runs/20260103T000000Z-0003").mkdir()
    fake.write("runs/20260104T000000Z-0004/receipt.json", "{")
    assert [run.receipt.id[-1] for run in all_runs(fake.project)] == ["2", "1"]
    assert find_run(fake.project, "last").receipt.id.endswith("2")
    assert find_run(fake.project, "20260101").receipt.id.endswith("1")
    with pytest.raises(BadInput, match="2 runs begin so"):
        find_run(fake.project, "2026")
    with pytest.raises(BadInput, match="no run 2025"):
        find_run(fake.project, "2025")


def test_inputs_name_what_changed(fake: FakeProject) -> None:
    site = resolve(fake.project, "fake")
    fake.write("inventory/fake/.state/lock.yml", "x")
    before = read_inputs(fake.project, site, parse_extra_vars(("token=CANARY-1", "same=1", "gone=1")))
    assert "CANARY-1" not in str(before)
    assert not any(".state" in name or "__pycache__" in name for name in before.files)
    fake.write("roles/thing/tasks/main.yml", "[ ]\n")
    fake.write("inventory/fake/group_vars/all.yml", "a: 1\n")
    fake.write("inventory/fake/.state/lock.yml", "y")
    fake.write("roles/thing/__pycache__/x.pyc", "")
    now = read_inputs(fake.project, site, parse_extra_vars(("token=CANARY-2", "same=1")))
    assert differences(before, now) == [
        "file inventory/fake/group_vars/all.yml: is new",
        "file roles/thing/tasks/main.yml: changed",
        "variable gone: was given then, is not now",
        "variable token: changed",
    ]
    assert before.sha256 != now.sha256
    assert differences(now, now) == []


def test_a_value_cannot_be_guessed_from_its_digest(fake: FakeProject, tmp_path: Path) -> None:
    other = FakeProject.make(tmp_path / "other")
    given = parse_extra_vars(("pin=1234",))
    digests = {read_inputs(one.project, resolve(one.project, "fake"), given).variables["pin"] for one in (fake, other)}
    assert len(digests) == 2
    assert stat.S_IMODE((fake.root / "inventory/fake/.state/digest.key").stat().st_mode) == 0o600


def test_resume_starts_at_the_first_phase_whose_gate_has_not_passed(fake: FakeProject) -> None:
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({"preflight": "done", "host": "done", "docker": "failed"}, ["preflight", "docker"]),
        ({"preflight": "done", "host": "interrupted"}, ["preflight", "host", "docker"]),
        ({"preflight": "failed"}, ["preflight", "host", "docker"]),
        ({"preflight": "done", "host": "done", "docker": "done"}, []),
    ]
    for statuses, wanted in cases:
        assert _resumed(fake, receipt_of(**statuses)) == wanted


@pytest.mark.parametrize(("gate", "wanted"), [("passed", []), ("not provable", []), ("failed", ["preflight", "docker"])])
def test_a_gate_not_provable_here_settles_its_phase(fake: FakeProject, gate: str, wanted: list[str]) -> None:
    receipt = receipt_of(preflight="done", host="done", docker="done")
    check = rc.Check("x", gate)
    receipt.phases[-1].gates = [rc.Gate("docker", "h1", "passed"), rc.Gate("docker", "h2", gate, [check])]
    assert _resumed(fake, receipt) == wanted


def _resumed(fake: FakeProject, receipt: rc.Receipt, limit: str | None = None) -> list[str]:
    site = resolve(fake.project, "fake")
    inputs = read_inputs(fake.project, site, parse_extra_vars(()))
    receipt.inputs = receipt.inputs if receipt.inputs.files else inputs
    receipt.status = rc.FAILED
    directory = new_run(fake.project)
    receipt.id = directory.name
    receipt.write(directory)
    left = plan(fake.project, site, "plane", read_phases(fake.project), inputs, limit)
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    return [phase.name for phase in left.phases]


def test_resume_refuses_changed_inputs_by_name(fake: FakeProject) -> None:
    receipt = receipt_of(preflight="done", host="failed")
    receipt.limit = "h1"
    receipt.inputs = rc.Inputs("0" * 64, {"site.yml": "0" * 64}, {"token": "0" * 64})
    with pytest.raises(BadInput) as caught:
        _resumed(fake, receipt, limit="h2")
    assert "file site.yml: changed" in caught.value.lines
    assert "variable token: was given then, is not now" in caught.value.lines
    assert "--limit: was h1, is h2" in caught.value.lines


def test_resume_without_an_earlier_run(fake: FakeProject) -> None:
    receipt = receipt_of(preflight="done", host="failed")
    receipt.mode = "check"
    with pytest.raises(BadInput, match=re.escape("--resume: no earlier run of plane on site fake")):
        _resumed(fake, receipt)
