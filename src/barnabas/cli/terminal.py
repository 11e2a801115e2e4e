"""Prints untrusted text, such as records and group names, on standard output.

Control characters can make a terminal show false text, change its title, or type on behalf of its
user. They are therefore escaped on a terminal, but a pipe receives each byte unchanged.
"""

from __future__ import annotations

import sys

from barnabas.printable import printable


def for_terminal(text: str) -> str:
    """Escape lines for a terminal. If standard output is not a terminal, return them unchanged."""
    return printable_lines(text) if sys.stdout.isatty() else text


def printable_lines(text: str) -> str:
    """Escape all control characters in the text except line ends and tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def printable_bytes(data: bytes) -> bytes:
    """Escape the same characters as `printable_lines`, and also bytes that are not valid UTF-8."""
    return printable_lines(data.decode("utf-8", "backslashreplace")).encode()
