"""File contents travel to the host as one opaque string.

One `no_log` string keeps every content out of the invocation log on the host and out of `-vvv` output, and it is
longer than anything a result contains, so Ansible's masking of `no_log` values cannot eat parts of a result.
"""

from __future__ import annotations

import binascii
import json
import zlib


def pack(contents: list[bytes | None]) -> str:
    """Pack contents (None for an entry that has none) into printable text."""
    items: list[dict[str, str] | None] = []
    for content in contents:
        if content is None:
            items.append(None)
            continue
        try:
            items.append({"text": content.decode("utf-8")})
        except UnicodeDecodeError:
            items.append({"hex": content.hex()})
    raw = zlib.compress(json.dumps(items).encode("utf-8"), 6)
    return binascii.b2a_base64(raw, newline=False).decode("ascii")


def unpack(packed: str) -> list[bytes | None]:
    """Undo `pack`.

    Raises:
        ValueError: the text is not the output of `pack`.
    """
    try:
        items = json.loads(zlib.decompress(binascii.a2b_base64(packed)))
    except (binascii.Error, zlib.error) as err:
        raise ValueError(f"packed contents cannot be read: {err}") from err
    contents: list[bytes | None] = []
    for item in items:
        if item is None:
            contents.append(None)
        elif "text" in item:
            contents.append(item["text"].encode("utf-8"))
        else:
            contents.append(bytes.fromhex(item["hex"]))
    return contents
