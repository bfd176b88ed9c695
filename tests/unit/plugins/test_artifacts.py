"""The controller's artifact store: only verified files get a name, and drift is refused."""

from __future__ import annotations

import hashlib
import io
import threading
from pathlib import Path
from typing import IO

import pytest
from ansible_collections.spark.plane.plugins.plugin_utils.artifacts import (
    Artifact,
    ArtifactError,
    Lock,
    Store,
    listed_checksum,
    needed,
    select,
)

DATA = b"binary"
GOOD = hashlib.sha256(DATA).hexdigest()
URL, SUMS = "https://downloads.example.org/v1/tool-arm64", "https://downloads.example.org/v1/SHA256SUMS"


class Publisher:
    """Serves files and counts what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.asked = files, list[str]()

    def __call__(self, url: str) -> IO[bytes]:
        self.asked.append(url)
        if url not in self.files:
            raise OSError("404 not found")
        return io.BytesIO(self.files[url])


def artifact(sha256: str = GOOD) -> Artifact:
    return Artifact("tool", "v1", "arm64", URL, "tool-arm64", sha256, SUMS)


def store(tmp_path: Path, publisher: Publisher, mirror: Path | None = None) -> Store:
    return Store(tmp_path / "cache", Lock(tmp_path / "artifacts.lock.yml"), publisher, mirror)


def left(tmp_path: Path) -> list[Path]:
    return [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and "locks" not in p.parts]


def test_fetched_once_then_taken_from_the_cache(tmp_path: Path) -> None:
    publisher = Publisher({URL: DATA})
    one = store(tmp_path, publisher)
    path, brought = one.fetch(artifact(), one.expected(artifact()))
    assert (path.read_bytes(), brought) == (DATA, True)
    assert one.fetch(artifact(), GOOD) == (path, False)
    assert publisher.asked == [URL]


def test_five_hosts_at_once_fetch_once(tmp_path: Path) -> None:
    publisher = Publisher({URL: DATA})
    threads = [threading.Thread(target=lambda: store(tmp_path, publisher).fetch(artifact(), GOOD)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert publisher.asked == [URL]


@pytest.mark.parametrize("served", [b"", DATA[:3], b"other"])
def test_wrong_or_partial_download_leaves_nothing_and_says_both(tmp_path: Path, served: bytes) -> None:
    with pytest.raises(ArtifactError) as error:
        store(tmp_path, Publisher({URL: served})).fetch(artifact(), GOOD)
    assert hashlib.sha256(served).hexdigest() in str(error.value) and f"expected {GOOD}" in str(error.value)
    assert left(tmp_path) == []


def test_broken_cache_entry_is_brought_again(tmp_path: Path) -> None:
    publisher = Publisher({URL: DATA})
    one = store(tmp_path, publisher)
    path, _ = one.fetch(artifact(), GOOD)
    path.write_bytes(b"rotten")
    assert one.fetch(artifact(), GOOD) == (path, True)
    assert path.read_bytes() == DATA


def test_mirror_needs_no_publisher_and_names_what_is_missing(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    publisher = Publisher({})
    with pytest.raises(ArtifactError, match="has no tool-arm64"):
        store(tmp_path, publisher, mirror).fetch(artifact(), GOOD)
    (mirror / "tool-arm64").write_bytes(DATA)
    assert store(tmp_path, publisher, mirror).fetch(artifact(), GOOD)[1]
    assert publisher.asked == []


def test_empty_pin_is_learnt_locked_and_drift_refused(tmp_path: Path) -> None:
    publisher = Publisher({SUMS: f"{GOOD}  tool-arm64\n".encode(), URL: DATA})
    one = store(tmp_path, publisher)
    assert one.expected(artifact("")) == GOOD
    assert GOOD in (tmp_path / "artifacts.lock.yml").read_text()
    # The publisher changes both the file and its checksum: the lock still says what it was.
    publisher.files = {SUMS: f"{'0' * 64}  tool-arm64\n".encode(), URL: b"changed"}
    assert one.expected(artifact("")) == GOOD
    with pytest.raises(ArtifactError, match=f"expected {GOOD}"):
        one.fetch(artifact(""), GOOD)
    assert publisher.asked.count(SUMS) == 1


def test_check_mode_learns_nothing(tmp_path: Path) -> None:
    one = store(tmp_path, Publisher({SUMS: f"{GOOD}  tool-arm64\n".encode()}))
    assert one.expected(artifact(""), learn=False) == GOOD
    assert not (tmp_path / "artifacts.lock.yml").exists()


def test_pin_and_lock_that_disagree(tmp_path: Path) -> None:
    one = store(tmp_path, Publisher({}))
    one.lock.add(artifact().key, "1" * 64, "somewhere")
    with pytest.raises(ArtifactError, match="the pin says"):
        one.expected(artifact())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{GOOD}  tool-arm64\n", GOOD),
        (f"{GOOD} *tool-arm64\n", GOOD),
        (f"{GOOD.upper()}  ./tool-arm64\n", GOOD),
        (f"{'1' * 64}  tool\n{GOOD}  tool-arm64\n", GOOD),
        (f"{GOOD}\n", GOOD),
        (f"{GOOD}  tool-arm64.tar\n", None),
        (f"{GOOD}  mytool-arm64\n", None),
        (f"{GOOD[:-1]}  tool-arm64\n", None),
        ("", None),
    ],
)
def test_listed_checksum_is_that_of_exactly_this_file(text: str, found: str | None) -> None:
    assert listed_checksum(text, "tool-arm64") == found


FILES = {"arm64": {"url": "https://x.example/{version}/t%2B1", "sha256": ""}}
PINS = {"tool": {"version": "v1", "roles": ["r"], "files": FILES}}


def test_select_by_machine_name() -> None:
    one = select(PINS, "tool", "aarch64")
    assert (one.arch, one.url, one.filename) == ("arm64", "https://x.example/v1/t%2B1", "t+1")


@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ({}, "not in pins_artifacts"),
        ({"tool": {"version": "v1"}}, "wanted `version` and `files`"),
        ({"tool": {"version": "v1", "files": {"amd64": {"url": "u"}}}}, "no file for arm64"),
        ({"tool": {"version": "v1", "files": {"arm64": {}}}}, "url is missing"),
        ({"tool": {"version": "v1", "files": {"arm64": {"url": "u", "sha256": "abc"}}}}, "wanted 64 hex digits"),
    ],
)
def test_pins_that_cannot_work(pins: dict[str, object], words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        select(pins, "tool", "aarch64")


def test_needed_by_roles() -> None:
    assert needed(PINS, {"r"}) == ["tool"] and needed(PINS, {"other"}) == []
