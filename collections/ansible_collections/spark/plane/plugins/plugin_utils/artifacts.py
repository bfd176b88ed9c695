"""Files that the controller fetches once per architecture, verifies, and keeps for every host.

The cache holds a file under its sha256 only once it was verified: a partial or wrong download never has that name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import yaml

# What `open_url` of ansible.module_utils.urls is, narrowed to what is used: a test passes its own.
Opener = Callable[[str], IO[bytes]]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_CHUNK = 1 << 20  # bytes read at a time: bounds memory, whatever the file's size
# Debian's names of what `uname -m` says; both are accepted where an architecture is asked for.
ARCHITECTURES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "amd64", "amd64": "amd64"}


class ArtifactError(Exception):
    """One line: which artifact, what was seen, what is wanted."""


@dataclass(frozen=True)
class Artifact:
    """One file for one architecture."""

    name: str
    version: str
    arch: str
    url: str
    filename: str
    sha256: str
    checksums: str

    @property
    def key(self) -> str:
        """Its name in the site's lock."""
        return f"{self.name}/{self.version}/{self.arch}/{self.filename}"

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"artifact {self.name} {self.version} ({self.arch})"


def select(pins: dict[str, Any], name: str, machine: str) -> Artifact:
    """Pick the file of artifact `name` for a host whose architecture is `machine`. Raises ArtifactError."""
    if name not in pins:
        raise ArtifactError(f"artifact {name}: not in pins_artifacts; known: {', '.join(sorted(pins)) or 'none'}")
    pin = pins[name]
    if not isinstance(pin, dict) or not isinstance(pin.get("files"), dict) or not pin.get("version"):
        raise ArtifactError(f"pins_artifacts.{name}: wanted `version` and `files`, seen {pin!r}")
    arch = ARCHITECTURES.get(machine, machine)
    entry = pin["files"].get(arch, pin["files"].get("all"))
    if entry is None:
        raise ArtifactError(
            f"artifact {name}: no file for {arch}; pins_artifacts.{name}.files has {', '.join(sorted(pin['files']))}"
        )
    where = f"pins_artifacts.{name}.files.{arch}"
    if not entry.get("url"):
        raise ArtifactError(f"{where}: url is missing")
    version = str(pin["version"])
    url = str(entry["url"]).replace("{version}", version)
    filename = str(entry.get("filename") or unquote(Path(urlsplit(url).path).name))
    digest = str(entry.get("sha256") or "")
    if digest and not _SHA256.match(digest):
        raise ArtifactError(f"{where}.sha256: seen {digest!r}, wanted 64 hex digits or an empty string")
    checksums = str(entry.get("checksums") or "").replace("{version}", version)
    return Artifact(name, version, arch, url, filename, digest, checksums)


def needed(pins: dict[str, Any], roles: set[str]) -> list[str]:
    """Names of the artifacts that any of `roles` uses."""
    return sorted(
        name for name, pin in pins.items() if isinstance(pin, dict) and roles & {str(r) for r in pin.get("roles") or []}
    )


def digest_of(path: Path) -> str:
    """sha256 of a file, in hex."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


class Lock:
    """The site's lock file: checksums learnt on first use, so that later drift is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, dict[str, str]]:
        """Entries by artifact key. Raises ArtifactError when the file is not what this class writes."""
        if not self.path.is_file():
            return {}
        try:
            loaded = yaml.safe_load(self.path.read_text(encoding="utf-8")) or {}
        except yaml.YAMLError as error:
            raise ArtifactError(f"{self.path}: not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(loaded, dict):
            raise ArtifactError(f"{self.path}: wanted a mapping, seen {type(loaded).__name__}")
        return loaded

    def add(self, key: str, sha256: str, source: str) -> None:
        """Record one checksum; the file is replaced whole."""
        with _locked(self.path.with_name(f".{self.path.name}.lock")):
            entries = self.read() | {key: {"sha256": sha256, "source": source}}
            text = "# Checksums learnt on first use. Delete an entry to accept what the publisher serves now.\n"
            _replace(self.path, (text + yaml.safe_dump(entries, sort_keys=True)).encode())


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    staged = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        staged.chmod(0o644)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock: several workers of one run, and several runs, fetch a file once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def listed_checksum(text: str, filename: str) -> str | None:
    """The sha256 that a publisher's checksum file names for exactly `filename`.

    Lines are `<hex>  <name>` or `<hex> *<name>`; a file holding one bare digest speaks for its one artifact.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for parts in lines:
        if len(parts) == 2 and parts[1].lstrip("*").removeprefix("./") == filename and _SHA256.match(parts[0].lower()):
            return parts[0].lower()
    if len(lines) == 1 and len(lines[0]) == 1 and _SHA256.match(lines[0][0].lower()):
        return lines[0][0].lower()
    return None


class Store:
    """The controller's cache in front of a mirror directory or the publisher."""

    def __init__(self, cache: Path, lock: Lock, opener: Opener, mirror: Path | None = None) -> None:
        self.cache, self.lock, self.mirror, self._open = cache, lock, mirror, opener

    def expected(self, artifact: Artifact, *, learn: bool = True) -> str:
        """The sha256 this artifact must have: the pin, else the site's lock, else the publisher's word, then locked.

        With `learn` false (check mode) a publisher's word is used but not recorded. Raises ArtifactError.
        """
        locked = self.lock.read().get(artifact.key, {}).get("sha256", "")
        if artifact.sha256:
            if locked and locked != artifact.sha256:
                raise ArtifactError(
                    f"{artifact.label}: the pin says sha256 {artifact.sha256}, {self.lock.path} says {locked}; "
                    "delete the entry there if the pin is right"
                )
            return artifact.sha256
        if locked:
            return str(locked)
        text, source = self._checksum_text(artifact)
        found = listed_checksum(text, artifact.filename)
        if found is None:
            raise ArtifactError(f"{artifact.label}: {source} names no sha256 for {artifact.filename}")
        if learn:
            self.lock.add(artifact.key, found, source)
        return found

    def _checksum_text(self, artifact: Artifact) -> tuple[str, str]:
        if not artifact.checksums:
            raise ArtifactError(f"{artifact.label}: neither sha256 nor checksums in pins; wanted one of them")
        name = Path(urlsplit(artifact.checksums).path).name
        if self.mirror is not None:
            path = self.mirror / name
            if not path.is_file():
                raise ArtifactError(f"{artifact.label}: artifact_mirror {self.mirror} has no {name}")
            return path.read_text(encoding="utf-8", errors="replace"), str(path)
        try:
            with self._open(artifact.checksums) as stream:
                return stream.read().decode(errors="replace"), artifact.checksums
        except Exception as error:
            raise ArtifactError(f"{artifact.label}: {artifact.checksums}: {error}") from error

    def path(self, artifact: Artifact, sha256: str) -> Path:
        """Where the verified file lies, whether it is there yet or not."""
        return self.cache / sha256[:2] / sha256 / artifact.filename

    def fetch(self, artifact: Artifact, sha256: str) -> tuple[Path, bool]:
        """Return the verified file and whether it had to be brought now. Raises ArtifactError; keeps nothing then."""
        target = self.path(artifact, sha256)
        with _locked(self.cache / "locks" / sha256):
            if target.is_file() and digest_of(target) == sha256:
                return target, False
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".part.")
            part = Path(name)
            try:
                with os.fdopen(handle, "wb") as sink, self._source(artifact) as source:
                    shutil.copyfileobj(source, sink, _CHUNK)
                    sink.flush()
                    os.fsync(sink.fileno())
                seen, size = digest_of(part), part.stat().st_size
                if seen != sha256:
                    origin = self.mirror / artifact.filename if self.mirror else artifact.url
                    raise ArtifactError(f"{artifact.label}: {origin} has sha256 {seen} ({size} bytes), expected {sha256}")
                part.replace(target)
            except ArtifactError:
                raise
            except Exception as error:
                raise ArtifactError(f"{artifact.label}: {artifact.url}: {error}") from error
            finally:
                part.unlink(missing_ok=True)
        return target, True

    def _source(self, artifact: Artifact) -> IO[bytes]:
        if self.mirror is None:
            return self._open(artifact.url)
        path = self.mirror / artifact.filename
        if not path.is_file():
            names = sorted(p.name for p in self.mirror.iterdir())[:8] if self.mirror.is_dir() else []
            raise ArtifactError(
                f"{artifact.label}: artifact_mirror {self.mirror} has no {artifact.filename}"
                f" (it has {', '.join(names) or 'nothing'})"
            )
        return path.open("rb")
