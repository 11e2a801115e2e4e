"""Tables of groups for a terminal; a pipe gets Kafka's lines instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from barnabas.cli.counted import counted
from barnabas.cli.groups.instants import instant_text
from barnabas.cli.groups.reset_plan import Move
from barnabas.cli.groups.rows import DescribedGroup, GroupRow
from barnabas.cli.groups.text import assignment_text, shown
from barnabas.client.admin.group_admin import RebalanceEvent
from barnabas.printable import printable


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
            console.print(_member_table(each, verbose))
        elif what == "events":
            _show_events(each.group.events, console)
        elif what == "offsets" and each.rows:
            console.print(_offset_table(each.rows))
    if not described:
        console.print("No groups.")


def show_plan(moves: Sequence[Move], console: Console | None = None) -> None:
    """Each group's new offsets, and how far they are from the old ones."""
    console = console or Console(highlight=False)
    table = _table("group", "topic", ">partition", ">from", ">to", ">records again")
    for move in moves:
        again = None if move.before is None else move.before - move.after
        table.add_row(
            _text(move.group_id),
            _text(move.partition.topic),
            str(move.partition.partition),
            shown(move.before),
            str(move.after),
            "-" if again is None else Text(f"{again:,}", style="yellow" if again < 0 else ""),
        )
    console.print(table)


def _heading(described: DescribedGroup, what: str) -> Text:
    group = described.group
    heading = _text(group.group_id, style="bold")
    facts = [group.state, counted(len(group.members), "member")]
    facts += [group.assignor] if group.assignor else []
    facts += [f"{counted(described.lag, 'record')} behind"] if what == "offsets" else []
    at = group.coordinator
    facts.append(f"coordinator {at.node_id} ({at.host}:{at.port})")
    heading.append(f"  {', '.join(facts)}", style="dim")
    return heading


def _offset_table(rows: Iterable[GroupRow]) -> Table:
    table = _table("topic", ">partition", ">committed", ">end", ">lag", "member", "host", "client")
    for row in rows:
        topic, partition = (None, None) if row.partition is None else row.partition
        member = row.member
        table.add_row(
            _text(shown(topic)),
            shown(partition),
            shown(row.offset),
            shown(row.end_offset),
            _text(shown(row.lag), style="yellow" if row.lag else ""),
            *(
                _text(shown(cell), style="dim")
                for cell in (
                    (None, None, None)
                    if member is None
                    else (member.member_id, member.host, member.client_id)
                )
            ),
        )
    return table


def _member_table(described: DescribedGroup, verbose: bool) -> Table:
    titles = ["member", "instance", "host", "client", ">partitions"]
    table = _table(*titles, *["assignment"] * verbose)
    for member in sorted(described.group.members):
        cells = (member.member_id, member.instance_id, member.host, member.client_id)
        table.add_row(
            *(_text(shown(cell)) for cell in cells),
            str(len(member.partitions)),
            *[_text(assignment_text(member.partitions))] * verbose,
        )
    return table


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


def _table(*titles: str) -> Table:
    """Titles that begin with > head numbers."""
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in titles:
        table.add_column(
            title.removeprefix(">"),
            justify="right" if title.startswith(">") else "left",
            overflow="fold",
        )
    return table
