"""Tables of groups for a terminal; a pipe gets Kafka's lines instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from barnabas.cli.groups.instants import instant_text
from barnabas.cli.groups.reset_plan import Move
from barnabas.cli.groups.rows import DescribedGroup, GroupRow
from barnabas.cli.groups.text import assignment_text, shown
from barnabas.client.admin.group_admin import RebalanceEvent
from barnabas.counted import counted
from barnabas.printable import printable

_TEXT_WIDTH = 8
"""A column of text may be folded to this width; below, each row is a block of lines."""

Cells = Sequence[str | Text]


def show_groups(
    described: Sequence[DescribedGroup],
    what: str,
    verbose: bool,
    console: Console | None = None,
) -> None:
    """A heading per group, and under it its offsets, members or events."""
    console = console or Console(highlight=False)
    for number, each in enumerate(described):
        if number:
            console.print()
        console.print(_heading(each, what))
        if what == "members":
            _show_members(each, verbose, console)
        elif what == "events":
            _show_events(each.group.events, console)
        elif what == "offsets" and each.rows:
            _show_offsets(each.rows, console)
    if not described:
        console.print("No groups.")


def show_plan(moves: Sequence[Move], console: Console | None = None) -> None:
    """Each group's new offsets, and how far they are from the old ones."""
    console = console or Console(highlight=False)
    rows: list[Cells] = []
    for move in moves:
        again = None if move.before is None else move.before - move.after
        rows.append(
            [
                _text(move.group_id),
                _text(move.partition.topic),
                str(move.partition.partition),
                shown(move.before),
                str(move.after),
                "-" if again is None else Text(f"{again:,}", style="yellow" if again < 0 else ""),
            ]
        )
    _show(console, ("group", "topic", ">partition", ">from", ">to", ">offsets again"), rows)


def _heading(described: DescribedGroup, what: str) -> Text:
    group = described.group
    heading = _text(group.group_id, style="bold")
    facts = [group.state, counted(len(group.members), "member")]
    facts += [group.assignor] if group.assignor else []
    facts += [f"{counted(described.lag, 'offset')} behind"] if what == "offsets" else []
    at = group.coordinator
    facts.append(f"coordinator {at.node_id} ({at.host}:{at.port})")
    heading.append(f"  {', '.join(facts)}", style="dim")
    return heading


def _show_offsets(rows: Iterable[GroupRow], console: Console) -> None:
    titles = ("topic", ">partition", ">committed", ">end", ">lag", "member", "host", "client")
    cells: list[Cells] = []
    for row in rows:
        topic, partition = (None, None) if row.partition is None else row.partition
        member = row.member
        who = (None,) * 3 if member is None else (member.member_id, member.host, member.client_id)
        cells.append(
            [
                _text(shown(topic)),
                shown(partition),
                shown(row.offset),
                shown(row.end_offset),
                _text(shown(row.lag), style="yellow" if row.lag else ""),
                *(_text(shown(cell), style="dim") for cell in who),
            ]
        )
    _show(console, titles, cells)


def _show_members(described: DescribedGroup, verbose: bool, console: Console) -> None:
    titles = ["member", "instance", "host", "client", ">partitions"]
    rows: list[Cells] = []
    for member in sorted(described.group.members):
        names = (member.member_id, member.instance_id, member.host, member.client_id)
        rows.append(
            [
                *(_text(shown(name)) for name in names),
                str(len(member.partitions)),
                *[_text(assignment_text(member.partitions))] * verbose,
            ]
        )
    _show(console, [*titles, *["assignment"] * verbose], rows)


def _show_events(events: Iterable[RebalanceEvent], console: Console) -> None:
    """Print a line per event; one that interrupted members stands out."""
    any_shown = False
    for event in events:
        line = Text(f"  {instant_text(event.ended_at_ms)} ", style="dim")
        line.append(printable(event.story), style="" if event.is_harmless else "yellow")
        console.print(line)
        any_shown = True
    if not any_shown:
        console.print("  no rebalances recorded")


def _text(outside: str, style: str = "") -> Text:
    """Escape text that a client has chosen, such as a member's name, for the terminal."""
    return Text(printable(outside), style=style)


def _show(console: Console, titles: Sequence[str], rows: Sequence[Cells]) -> None:
    """Print a table, or a block of lines for each row where the terminal is too narrow for one.

    Titles that begin with > head numbers, which are never folded.
    """
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
    """Whether no title and no number has to be folded, nor a text to a narrow strip."""
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
