"""Where Debian packages come from: the machine's own apt configuration, never an address written here."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from provision.lab.errors import NeedError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FIELDS = ("REPO_URI", "ORIGIN", "LABEL", "RELEASE", "COMPONENT")
_DEBIAN_RELEASE = re.compile(
    r"(?:old){0,2}stable|testing|unstable|sid|bullseye|bookworm|trixie|forky|duke",
)

# Check-Date and Check-Valid-Until: a frozen mirror serves Release files that look expired.
_APT_OPTIONS = (
    'Acquire::Check-Valid-Until "false";',
    'Acquire::Check-Date "false";',
    'Acquire::Languages "none";',
)


@dataclass(frozen=True)
class Mirror:
    """A Debian archive and, where there is one, its security archive."""

    main: str
    security: str | None

    def sources(self, suite: str) -> list[str]:
        """One-line apt sources for a suite, its updates and its security updates."""
        options = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        lines = [f"deb {options}{self.main} {name} main" for name in (suite, f"{suite}-updates")]
        if self.security:
            lines.append(f"deb {options}{self.security} {suite}-security main")
        return lines


def parse_targets(text: str) -> Mirror | None:
    """Pick the Debian archives out of `apt-get indextargets` lines (tab-separated `_FIELDS`).

    Other vendors use Debian's suite names too, so a line counts by its Release file's origin where that was
    fetched, and else by a Debian suite name with component main.
    """
    main: str | None = None
    security: str | None = None
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != len(_FIELDS):
            continue
        uri, origin, label, release, component = fields
        base = release.partition("-")[0].partition("/")[0]
        if component != "main" or origin not in ("Debian", "") or not _DEBIAN_RELEASE.fullmatch(base):
            continue
        if label == "Debian-Security" or release.endswith(("-security", "/updates")):
            security = security or uri
        elif label in ("Debian", "") and "-" not in release:
            main = main or uri
    return Mirror(main, security) if main else None


def find() -> Mirror:
    """The machine's Debian mirror; $SPARK_PLANE_DEBIAN_MIRROR (and ..._SECURITY) override. Raises NeedError."""
    override = os.environ.get("SPARK_PLANE_DEBIAN_MIRROR")
    if override:
        return Mirror(override, os.environ.get("SPARK_PLANE_DEBIAN_SECURITY") or None)
    template = "\t".join(f"$({field})" for field in _FIELDS)
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", template, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    mirror = parse_targets(listed.stdout)
    if mirror is None:
        raise NeedError(
            "no Debian archive in this machine's apt configuration (apt-get indextargets lists none with component "
            "main): add one, or set SPARK_PLANE_DEBIAN_MIRROR to the archive's address"
        )
    return mirror


def apt_options() -> str:
    """apt.conf text: the machine's own Acquire settings (proxies among them), then what a frozen mirror needs."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    own = [line for line in dump.splitlines() if line.startswith("Acquire::")]
    return "\n".join([*own, *_APT_OPTIONS]) + "\n"
