"""Text that others chose (names of groups, records), on standard output.

A terminal obeys control characters: it shows what is not there, changes its title, or types for its
user. So they are written out where a terminal reads; a pipe gets each byte as it is.
"""

from __future__ import annotations

import sys

from barnabas.printable import printable


def for_terminal(text: str) -> str:
    """Lines as a terminal may show them; unchanged if standard output is none."""
    return printable_lines(text) if sys.stdout.isatty() else text


def printable_lines(text: str) -> str:
    """The text without control characters but the ends of lines and tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def printable_bytes(data: bytes) -> bytes:
    """As `printable_lines`; bytes that are no UTF-8 are written out, too."""
    return printable_lines(data.decode("utf-8", "backslashreplace")).encode()
