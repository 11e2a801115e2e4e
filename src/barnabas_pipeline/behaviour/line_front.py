"""Reads the columns before the time in an access log line. Pure.

    client ident user                          as in the Common Log Format
    client:port ident user                     the same with the port that a gateway adds
    client - [client] - user                   ingress-nginx before version 0.26
    host:port client ident user                Debian's `vhost_combined`: a virtual host in front
    host client ident user                     the same without a port, if the client is an address

Only an IP address or a host name is accepted as the client. A line with any other columns is
rejected, because thousands of visitors would be merged into one if the wrong column were read as
the client. Since a log format may contain arbitrary columns, a line with an ambiguous column is
also rejected. If a user name contains blanks, none of its words may be an address, a number, a
dotted name or a hyphen, because a word of this kind is read as a separate column.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H: Final = r"[0-9A-Fa-f]{1,4}"
_IPV6: Final = (
    rf"(?:(?:{_H}:){{7}}{_H}"
    + "".join(rf"|(?:{_H}:){{1,{7 - n}}}(?::{_H}){{1,{n}}}" for n in range(1, 7))
    + rf"|(?:{_H}:){{1,7}}:|:(?::{_H}){{1,7}}|::"
    # An IPv4 address may replace the last two groups (RFC 4291, 2.2).
    + rf"|(?:(?:{_H}:){{6}}|::(?:{_H}:){{0,5}}|(?:{_H}:){{1,5}}:"
    + "".join(rf"|(?:{_H}:){{1,{5 - n}}}(?::{_H}){{1,{n}}}:" for n in range(1, 5))
    + rf"){IPV4})"
    r"(?:%[A-Za-z0-9_.~-]+)?"
)
# These patterns avoid look-around, which Polars cannot compile.
ADDRESS: Final = rf"(?:{IPV4}|{_IPV6})"
"""Matches an IP address; an IPv6 address may have a zone."""
NAME: Final = r"(?:[A-Za-z0-9_][A-Za-z0-9_-]*\.)*[A-Za-z][A-Za-z0-9_-]*"
"""Matches usual host names; `is_name` also accepts odd ones."""

SERVER_PORTS: Final = ("80", "443", "8000", "8080", "8443")

_ADDRESS: Final = re.compile(ADDRESS)
_NAME_CHARACTERS: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):[0-9]{1,5}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,:][0-9]+)*")


class Front(NamedTuple):
    """The columns before the time."""

    client: str
    ident: str
    user: str
    virtual_host: str | None = None


def front(words: list[str]) -> Front | None:
    """Assign the words before the time to columns, and return the columns, or None if the words are
    ambiguous."""
    virtual_host = None
    if len(words) > 3 and _has_virtual_host(words[0], words[1]):
        virtual_host = host_without_port(words[0])
        words = words[1:]
    if len(words) > 4 and words[1:4] == ["-", f"[{words[0]}]", "-"]:
        words = [words[0], "-", *words[4:]]
    if len(words) < 3:
        return None
    client, ident, user = words[0], words[1], words[2:]
    if len(words) == 3:
        client = _without_brackets_and_port(client)
    if not is_client(client) or _is_other_column(ident, hyphen=True):
        return None
    if any(map(_is_other_column, user)) if len(user) > 1 else is_address(user[0]):
        return None
    return Front(client, ident, " ".join(user), virtual_host)


def _without_brackets_and_port(word: str) -> str:
    """Return the address in `[address]` or `address:port`. Any other word is returned unchanged.

    With a server's port, the address is more likely a server's, and the client is missing.
    """
    name, port = _host_and_port(word)
    bare = name.removeprefix("[").removesuffix("]") if name.startswith("[") else name
    return bare if is_address(bare) and port not in SERVER_PORTS else word


def has_host_in_front(words: list[str]) -> bool:
    """Return whether a line rejected by `front` seems to begin with a virtual host."""
    return bool(_host_and_port(words[0])[1]) or all(map(is_client, words[:2]))


def is_client(word: str) -> bool:
    return is_address(word) or is_name(word)


def is_address(word: str) -> bool:
    return _ADDRESS.fullmatch(word) is not None


def is_name(word: str) -> bool:
    """Return whether a word is a host name. Its last label must contain letters, because otherwise
    the word would be an address or a number."""
    last = word.removesuffix(".").rpartition(".")[2]
    return _NAME_CHARACTERS.fullmatch(word) is not None and re.search("[A-Za-z]", last) is not None


def host_without_port(host: str) -> str:
    """Return a host without its port. A host that has no port is returned unchanged."""
    match = _WITH_PORT.fullmatch(host)
    return match[1] if match else host


def _has_virtual_host(first: str, second: str) -> bool:
    name, port = _host_and_port(first)
    if port:
        # A server without a name is logged by its address. With any other port, the address is more
        # likely a client's, with the port added by a gateway.
        has_name = not is_address(name.strip("[]"))
        return is_client(second) and (has_name or port in SERVER_PORTS)
    return (is_name(name) or name == "_") and is_address(second)  # nginx's catch-all server


def _host_and_port(word: str) -> tuple[str, str]:
    """Return a host and its port; the port is empty if there is none."""
    name, _, port = word.rpartition(":")
    if not _PORT.fullmatch(port):
        return word, ""
    is_bracketed = name.startswith("[") and name.endswith("]") and is_address(name[1:-1])
    is_host = is_bracketed or name == "_" or (":" not in name and is_client(name))
    return (name, port) if is_host else (word, "")


def _is_other_column(word: str, *, hyphen: bool = False) -> bool:
    """Return whether a word that could be an ident or part of a user name is a separate column.

    `hyphen`: whether a hyphen counts as an ident.
    """
    if word == "-":
        return not hyphen
    return (
        not word
        or word[0] in "[|"
        or _NUMBER.fullmatch(word) is not None
        or is_address(word)
        or bool(_host_and_port(word)[1])
        or ("." in word.strip(".") and is_name(word))
    )
