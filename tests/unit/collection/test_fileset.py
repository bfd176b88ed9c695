"""`spark.plane.files` decides everything first, writes all or nothing, and heals after a crash."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.spark.plane.plugins.module_utils import atomic, filecheck, fileset
from ansible_collections.spark.plane.plugins.module_utils.filespec import parse


class Call:
    """One call of the module on a directory."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree

    def plan(
        self, files: list[dict[str, Any]], directories: list[dict[str, Any]] | None = None, *, check: bool = False
    ) -> fileset.Plan:
        contents = [entry["content"].encode() if "content" in entry else None for entry in files]
        # As on the host: entries without contents, which travel beside them.
        bare = [{key: value for key, value in entry.items() if key != "content"} for entry in files]
        named = [{**entry, "dest": str(self.tree / entry["dest"])} for entry in bare]
        listed = [{**entry, "path": str(self.tree / entry["path"])} for entry in directories or []]
        return fileset.plan(parse(named, listed, packed=True), contents, check=check)

    def run(self, files: list[dict[str, Any]], directories: list[dict[str, Any]] | None = None) -> list[str]:
        plan = self.plan(files, directories)
        refused = filecheck.validate(plan, check=False)
        if refused:
            raise fileset.FilesError("\n".join(refused))
        fileset.apply(plan)
        return [item.spec.dest.name for item in plan.files] + [item.spec.path.name for item in plan.directories]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_second_run_changes_nothing(call: Call, tmp_path: Path) -> None:
    wanted = [{"dest": "d/a", "content": "1\n", "mode": "0600"}, {"dest": "b", "content": ""}]
    assert call.run(wanted, [{"path": "d", "mode": "0750"}]) == ["a", "b", "d"]
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    assert call.run(wanted, [{"path": "d", "mode": "0750"}]) == []
    assert before == {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    assert (mode(tmp_path / "d/a"), mode(tmp_path / "d"), mode(tmp_path / "b")) == (0o600, 0o750, 0o644)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "d"]


def test_planning_and_check_mode_touch_nothing(call: Call, tmp_path: Path) -> None:
    plan = call.plan([{"dest": "no/such/a", "content": "x", "owner": "nobody-here"}], check=True)
    assert list(tmp_path.iterdir()) == []
    assert [item.spec.dest.name for item in plan.files] == ["a"]
    assert any("does not exist yet" in note for note in plan.notes)
    assert any("user nobody-here does not exist on this host yet" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dest": "no/a", "content": "x"}, "list it under directories"),
        ({"dest": "a", "content": "x", "owner": "nobody-here"}, "user nobody-here does not exist"),
        ({"dest": "a", "content": "x", "group": "nobody-here"}, "group nobody-here does not exist"),
        ({"dest": "dir", "content": "x"}, "wanted a regular file, seen a directory"),
        ({"dest": "dir", "state": "absent"}, "is a directory"),
        ({"dest": "file/a", "content": "x"}, "file is in the way: wanted a directory, seen a regular file"),
        ({"dest": "pipe", "content": "x"}, "seen a special file"),
        ({"dest": "link", "content": "x"}, "is a symbolic link to file; remove the link, or set follow: true"),
        ({"dest": "a"}, "its content did not arrive"),
    ],
)
def test_what_is_in_the_way_is_named_and_nothing_is_written(call: Call, tmp_path: Path, entry: Any, said: str) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("keep")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(fileset.FilesError, match=said):
        call.run([{"dest": "good", "content": "x"}, entry])
    assert not (tmp_path / "good").exists()
    assert (tmp_path / "file").read_text() == "keep"


def test_follow_writes_the_target_and_keeps_the_link(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    assert call.run([{"dest": "link", "content": "new", "follow": True}]) == ["link"]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert call.run([{"dest": "link", "content": "new", "follow": True}]) == []


def test_mode_and_owner_alone_are_corrected_in_place(call: Call, tmp_path: Path) -> None:
    call.run([{"dest": "a", "content": "x"}])
    (tmp_path / "a").chmod(0o666)
    os.chown(tmp_path / "a", 65534, 65534)
    inode = (tmp_path / "a").stat().st_ino
    assert call.run([{"dest": "a", "content": "x", "mode": "4755"}]) == ["a"]
    seen = (tmp_path / "a").stat()
    assert (seen.st_ino, seen.st_uid, seen.st_gid, mode(tmp_path / "a")) == (inode, 0, 0, 0o4755)


def test_new_owner_does_not_cost_the_setuid_bit(call: Call, tmp_path: Path) -> None:
    call.run([{"dest": "a", "content": "x", "mode": "4755", "owner": "65534", "group": "nogroup"}])
    assert (mode(tmp_path / "a"), (tmp_path / "a").stat().st_uid) == (0o4755, 65534)


def test_nothing_is_written_unless_every_validator_agrees(call: Call, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("old\n")
    grep = "grep -q good %s"
    wanted = [
        {"dest": "a", "content": "good\n", "validate": grep},
        {"dest": "b", "content": "bad\n", "validate": "sh -c 'echo line 7 of %s is wrong; exit 3'"},
        {"dest": "c", "content": "c\n"},
    ]
    with pytest.raises(fileset.FilesError) as caught:
        call.run(wanted)
    # The copy's path means nothing to the reader: the validator's words name the destination.
    assert "(exit 3)" in str(caught.value)
    assert f"line 7 of {tmp_path / 'b'} is wrong" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]
    assert (tmp_path / "b").read_text() == "old\n"
    wanted[1]["validate"] = grep.replace("good", "bad")
    assert call.run(wanted) == ["a", "b", "c"]


def test_a_validator_sees_the_final_name_and_runs_only_on_change(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "log"
    wanted = [{"dest": "x.yaml", "content": "1", "validate": f"sh -c 'basename %s >> {log}'"}]
    call.run(wanted)
    call.run(wanted)
    (tmp_path / "x.yaml").chmod(0o600)
    call.run(wanted)
    assert log.read_text() == "x.yaml\n"


def test_a_missing_validator_fails_but_not_in_check_mode(call: Call, tmp_path: Path) -> None:
    wanted = [{"dest": "a", "content": "x", "validate": "no-such-validator %s"}]
    with pytest.raises(fileset.FilesError, match="no-such-validator is not installed on this host"):
        call.run(wanted)
    plan = call.plan(wanted, check=True)
    assert filecheck.validate(plan, check=True) == []
    assert plan.notes == [f"{tmp_path / 'a'}: not validated, no-such-validator is not installed yet"]
    assert list(tmp_path.iterdir()) == []


def test_a_hung_validator_is_given_up(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filecheck, "VALIDATE_TIMEOUT", 0.1)
    plan = call.plan([{"dest": "a", "content": "x", "validate": "sh -c 'exec sleep 5' %s"}])
    assert "gave no answer within 0.1 s" in filecheck.validate(plan, check=False)[0]


def test_a_full_disk_shows_before_any_file_is_replaced(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    real = atomic.stage

    def full(dest: Path, *args: Any) -> Path:
        if dest.name == "b":
            raise OSError(errno.ENOSPC, "No space left on device", str(dest))
        return real(dest, *args)

    monkeypatch.setattr(atomic, "stage", full)
    with pytest.raises(OSError, match="No space left"):
        call.run([{"dest": "a", "content": "new"}, {"dest": "b", "content": "new"}])
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_is_named_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError) as caught:
        atomic.stage(tmp_path / "a", b"x", 0o644, 0, 0)
    assert caught.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_crash_between_two_files_is_healed(call: Call, tmp_path: Path) -> None:
    """A child is killed for real after its first rename; what it staged for the second is left behind, then swept."""
    wanted = [{"dest": name, "content": f"new {name}\n"} for name in ("a", "b")]
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    child = os.fork()
    if child == 0:
        commit = atomic.commit

        def once(tmp: Path, dest: Path) -> None:
            commit(tmp, dest)
            os.kill(os.getpid(), 9)

        atomic.commit = once
        call.run(wanted)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == 9
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new a\n", "old")
    assert len(list(tmp_path.iterdir())) == 3
    assert call.run(wanted) == ["b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_living_writers_file_is_not_swept(tmp_path: Path) -> None:
    dead, alive = tmp_path / ".a.999999999.spark-plane-tmp", tmp_path / ".a.1.spark-plane-tmp"
    other = tmp_path / ".ab.999999999.spark-plane-tmp"
    for path in (dead, alive, other):
        path.write_text("x")
    atomic.sweep(tmp_path / "a")
    assert (dead.exists(), alive.exists(), other.exists()) == (False, True, True)


def test_a_secret_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = os.fchmod

    def fchmod(descriptor: int, bits: int) -> None:
        seen.append(os.fstat(descriptor).st_mode & 0o777)
        real(descriptor, bits)

    monkeypatch.setattr(os, "fchmod", fchmod)
    os.umask(0o022)
    atomic.write(tmp_path / "a", b"x", mode=0o644)
    assert seen == [0o600]
    assert mode(tmp_path / "a") == 0o644


def test_content_and_rename_are_synced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic.write(tmp_path / "a", b"x")
    assert synced == [f".a.{os.getpid()}.spark-plane-tmp", tmp_path.name]


def test_directories_are_made_parents_first_in_whatever_order(call: Call, tmp_path: Path) -> None:
    call.run([{"dest": "d/e/f", "content": "x"}], [{"path": "d/e"}, {"path": "d"}])
    assert (tmp_path / "d/e/f").read_text() == "x"


def test_removal(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_text("x")
    gone = [{"dest": name, "state": "absent"} for name in ("a", "link", "never")]
    assert call.run(gone, [{"path": "d", "state": "absent"}]) == ["a", "link", "d"]
    assert list(tmp_path.iterdir()) == []
    assert call.run(gone, [{"path": "d", "state": "absent"}]) == []


def test_a_tree_that_holds_another_file_system_is_not_removed(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d/mnt").mkdir(parents=True)
    real = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        seen = list(real(self))
        seen[2] = seen[2] + 1 if self.name == "mnt" else seen[2]
        return os.stat_result(seen)

    monkeypatch.setattr(Path, "lstat", lstat)
    with pytest.raises(fileset.FilesError, match="mnt is on another file system"):
        call.plan([], [{"path": "d", "state": "absent"}])


def test_a_linked_directory_is_removed_as_a_link(call: Call, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/keep").write_text("x")
    (tmp_path / "d").symlink_to("real")
    assert call.run([], [{"path": "d", "state": "absent"}]) == ["d"]
    assert (tmp_path / "real/keep").exists()


def test_diff_shows_content_but_not_of_secrets(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old\n")
    (tmp_path / "s").write_text("hunter1\n")
    (tmp_path / "gone").write_text("hunter1\n")
    plan = call.plan(
        [
            {"dest": "a", "content": "new\n", "mode": "0600"},
            {"dest": "s", "content": "hunter2\n", "secret": True},
            {"dest": "fresh", "content": "hunter2\n", "secret": True, "validate": "sh -c 'cat %s; exit 1'"},
            {"dest": "gone", "state": "absent", "secret": True},
            {"dest": "bin", "content": "a\0b"},
            {"dest": "big", "content": "x" * (filecheck.DIFF_LIMIT + 1)},
        ]
    )
    entries = filecheck.diff(plan)
    text = repr(entries) + repr(filecheck.validate(plan, check=False)) + repr(filecheck.validate(plan, check=True))
    assert "hunter" not in text
    assert "withheld" in text
    assert (entries[0]["before"], entries[0]["after"]) == ("old\n", "new\n")
    assert entries[1]["after"] == "mode 0600 owner 0 group 0\n"
    assert entries[2] == {
        "before_header": str(tmp_path / "s"),
        "after_header": str(tmp_path / "s"),
        "before": "(old secret content, not shown)\n",
        "after": "(new secret content, not shown)\n",
    }
    assert [entry["after"][:9] for entry in entries[-2:]] == ["(3 bytes,", "(104449 b"]
