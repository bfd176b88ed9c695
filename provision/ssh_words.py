"""What ssh's own words mean (OpenSSH 9, LC_ALL=C), as errors with a type."""

from __future__ import annotations

import re

from provision.errors import HostUnreachable, ProvisionError


class TransportError(ProvisionError):
    """A way in that did not open."""


class Unreachable(HostUnreachable, TransportError):
    """Nothing answers: wrong address, host down, jump host or ProxyCommand failing."""


class AuthFailed(HostUnreachable, TransportError):
    """The host answers, and takes none of the keys."""


class HostKeyRefused(HostUnreachable, TransportError):
    """The host's key is unknown, or not the one on record."""


class ForwardRefused(TransportError):
    """The way in opens, but the forwarding was not set up."""


def ssh_problem(host: str, words: str) -> TransportError | None:
    """Return the error that ssh's own *words* mean, or None where they are not about the way in."""
    last = f"{host}: {last_words(words)}"
    if re.search(r"Host key verification failed|REMOTE HOST IDENTIFICATION|No .* host key is known", words):
        return HostKeyRefused(last)
    if re.search(r"Permission denied \(|Too many authentication failures|No supported authentication", words):
        return AuthFailed(last)
    if re.search(
        r"^ssh: |^kex_exchange_|Connection (closed|reset|refused|timed out)|No route to host|Connection to .* closed|"
        r"Broken pipe|Timeout, server|Could not resolve|UNKNOWN port|banner exchange",
        words,
        re.MULTILINE,
    ):
        return Unreachable(last)
    return None


def last_words(words: str) -> str:
    """Return the line of *words* that says why: the last one that is no warning."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Warning: Permanently added", "debug", "@"))]
    return lines[-1] if lines else "ssh ended without a word"
