"""Rules of an inventory, as pure functions: each returns the problems it found, one line each."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

# One label of a host name: RFC 1123 section 2.1, lower case as Kubernetes wants node names.
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_LINK_LOCAL = ipaddress.ip_network("169.254.0.0/16")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` where a known word is close, otherwise nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""


def _shared(values: Mapping[str, Any]) -> dict[Any, list[str]]:
    """Values that more than one host has."""
    by_value: dict[Any, list[str]] = defaultdict(list)
    for host, value in values.items():
        if value not in ("", None):
            by_value[value].append(host)
    return {value: sorted(hosts) for value, hosts in by_value.items() if len(hosts) > 1}


def groups(all_groups: Mapping[str, list[str]]) -> list[str]:
    """Exactly one server; a ring of none or of two and more."""
    problems: list[str] = []
    if not all_groups.get("all"):
        return ["inventory: seen no hosts, wanted at least one"]
    server = all_groups.get("server") or []
    if len(server) != 1:
        seen = ", ".join(server) or "none"
        problems.append(f"inventory: group `server` must hold exactly one host, seen {seen}")
    ring = all_groups.get("ring") or []
    if len(ring) == 1:
        problems.append(f"inventory: group `ring` must hold no host or at least two, seen {ring[0]} alone")
    return problems


def names(host_names: Mapping[str, Any]) -> list[str]:
    """Host names are single labels, and no two hosts have the same one."""
    problems = [
        f"{host}: host_name is {name!r}, wanted one label of a-z, 0-9 and - (RFC 1123)"
        for host, name in host_names.items()
        if not (isinstance(name, str) and _LABEL.match(name))
    ]
    for name, hosts in _shared(host_names).items():
        problems.append(f"{', '.join(hosts)}: host_name is {name!r} on each, wanted a name of its own for every host")
    return problems


def doors(connections: Mapping[str, tuple[str, int] | None]) -> list[str]:
    """No two inventory names lead to one ssh door; None stands for a host reached in another way."""
    return [
        f"{', '.join(hosts)}: ansible_host {door[0]} port {door[1]} is the same machine, wanted one name a machine"
        for door, hosts in _shared(connections).items()
    ]


def addresses(values: Mapping[str, Any], *, required: bool) -> list[str]:
    """Management addresses are usable IPv4 addresses, and no two hosts have the same one.

    With `required`, a host without an address is a problem too: facts have been read by then.
    """
    problems: list[str] = []
    for host, value in values.items():
        if value in ("", None):
            if required:
                problems.append(
                    f"{host}: host_management_address is unknown; wanted an IPv4 address on the management interface, "
                    "or the variable set in the inventory"
                )
            continue
        try:
            address = ipaddress.IPv4Address(str(value))
        except ValueError:
            problems.append(f"{host}: host_management_address is {value!r}, wanted an IPv4 address")
            continue
        if address in _LINK_LOCAL:
            problems.append(
                f"{host}: host_management_address is {value}, a link-local address (169.254/16) that moves with the cable; "
                "wanted a static or reserved one"
            )
        elif address.is_loopback or address.is_multicast or address.is_unspecified:
            problems.append(f"{host}: host_management_address is {value}, wanted an address other hosts can reach")
    for value, hosts in _shared(values).items():
        problems.append(f"{', '.join(hosts)}: host_management_address is {value} on each, wanted one for every host")
    return problems


def interfaces(wanted: Mapping[str, str], seen: Mapping[str, list[str]]) -> list[str]:
    """The management interface exists on its host; the message lists those that do."""
    return [
        f"{host}: host_management_interface is {name!r}, the host has {', '.join(sorted(seen[host]))}"
        for host, name in wanted.items()
        if host in seen and name not in seen[host]
    ]


def machines(identities: Mapping[str, str]) -> list[str]:
    """No two inventory names are the same running machine."""
    return [
        f"{', '.join(hosts)}: one and the same machine ({identity}), wanted one inventory name a machine"
        for identity, hosts in _shared(identities).items()
    ]


def together(problems: Iterable[tuple[str, str]]) -> list[str]:
    """Join (host, text) pairs with equal texts into one line: `spark-a, spark-b: text`."""
    by_text: dict[str, list[str]] = {}
    for host, text in problems:
        by_text.setdefault(text, []).append(host)
    return [f"{', '.join(hosts)}: {text}" for text, hosts in by_text.items()]
