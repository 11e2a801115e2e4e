"""Prints tables as wide as the terminal; a pipe receives plain lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from barnabas.printable import printable

_TEXT_WIDTH = 8
"""A text column may be folded to this width. If there is less room, each row becomes a block of
lines.
"""

Cells = Sequence[str | Text]


def outside_text(outside: str, style: str = "") -> Text:
    """Escape text chosen by a client, such as a member's name, for the terminal."""
    return Text(printable(outside), style=style)


def size_text(size_bytes: int | None) -> str:
    """Return a human-readable size; `-` if it is unknown."""
    return "-" if size_bytes is None else decimal(size_bytes)


def show_table(
    console: Console, titles: Sequence[str], rows: Sequence[Cells], nothing: str = ""
) -> None:
    """Print a table, or a block of lines for each row if the terminal is too narrow. A title that
    starts with > marks a column of numbers, which are never folded. If there are no rows, `nothing`
    is printed.
    """
    if nothing and not rows:
        console.print(nothing)
        return
    # Rich would fold numbers and titles one character at a time.
    if not _fits(console.width, titles, rows):
        _show_blocks(console, titles, rows)
        return
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in titles:
        is_number = title.startswith(">")
        table.add_column(
            title.removeprefix(">"),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
            min_width=len(title.removeprefix(">")),
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _fits(width: int, titles: Sequence[str], rows: Sequence[Cells]) -> bool:
    """Return whether the table fits if titles and numbers are not folded and text columns are not
    too narrow.
    """
    needed = 0
    for number, title in enumerate(titles):
        longest = max((cell_len(str(row[number])) for row in rows), default=0)
        least = longest if title.startswith(">") else min(longest, _TEXT_WIDTH)
        needed += max(len(title.removeprefix(">")), least) + 2
    return needed <= width


def _show_blocks(console: Console, titles: Sequence[str], rows: Sequence[Cells]) -> None:
    for count, row in enumerate(rows):
        if count:
            console.print()
        block = Table(box=None, show_header=False, pad_edge=True)
        block.add_column(style="dim", no_wrap=True)
        block.add_column(overflow="fold")
        for title, cell in zip(titles, row, strict=True):
            block.add_row(title.removeprefix(">"), cell)
        console.print(block)
