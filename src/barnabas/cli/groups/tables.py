"""Prints tables of groups on a terminal; a pipe receives plain lines, as Kafka prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from barnabas.cli.groups.instants import instant_text
from barnabas.cli.groups.reset_plan import Move
from barnabas.cli.groups.rows import DescribedGroup, GroupRow
from barnabas.cli.groups.text import assignment_text, shown
from barnabas.cli.terminal_table import Cells, outside_text, show_table
from barnabas.client.admin.group_admin import GroupListing, RebalanceEvent
from barnabas.counted import counted
from barnabas.printable import printable


def show_groups(
    described: Sequence[DescribedGroup],
    what: str,
    verbose: bool,
    console: Console | None = None,
) -> None:
    """Print a heading for each group, followed by its offsets, members or events."""
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


def show_group_list(
    listings: Sequence[GroupListing],
    described: Mapping[str, DescribedGroup],
    console: Console | None = None,
) -> None:
    """Print a row for each group. `described` holds the groups whose members and lag are known."""
    rows: list[Cells] = []
    for listing in listings:
        known = described.get(listing.group_id)
        lag = None if known is None else known.lag
        rows.append(
            [
                outside_text(listing.group_id),
                listing.state,
                outside_text(listing.protocol_type or "-"),
                shown(None if known is None else len(known.group.members)),
                "-" if lag is None else Text(f"{lag:,}", style="yellow" if lag else ""),
            ]
        )
    titles = ("group", "state", "protocol", ">members", ">lag")
    show_table(console or Console(highlight=False), titles, rows, "No groups.")


def show_plan(moves: Sequence[Move], console: Console | None = None) -> None:
    """Print each group's new offsets, and their distance from the old ones."""
    console = console or Console(highlight=False)
    rows: list[Cells] = []
    for move in moves:
        # The number of offsets that the group will read again. If it is negative, the group will
        # skip offsets.
        again = None if move.before is None else move.before - move.after
        rows.append(
            [
                outside_text(move.group_id),
                outside_text(move.partition.topic),
                str(move.partition.partition),
                shown(move.before),
                str(move.after),
                "-" if again is None else Text(f"{again:,}", style="yellow" if again < 0 else ""),
            ]
        )
    show_table(console, ("group", "topic", ">partition", ">from", ">to", ">offsets again"), rows)


def _heading(described: DescribedGroup, what: str) -> Text:
    group = described.group
    heading = outside_text(group.group_id, style="bold")
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
                outside_text(shown(topic)),
                shown(partition),
                shown(row.offset),
                shown(row.end_offset),
                outside_text(shown(row.lag), style="yellow" if row.lag else ""),
                *(outside_text(shown(cell), style="dim") for cell in who),
            ]
        )
    show_table(console, titles, cells)


def _show_members(described: DescribedGroup, verbose: bool, console: Console) -> None:
    titles = ["member", "instance", "host", "client", ">partitions"]
    rows: list[Cells] = []
    for member in sorted(described.group.members):
        names = (member.member_id, member.instance_id, member.host, member.client_id)
        rows.append(
            [
                *(outside_text(shown(name)) for name in names),
                str(len(member.partitions)),
                *[outside_text(assignment_text(member.partitions))] * verbose,
            ]
        )
    show_table(console, [*titles, *["assignment"] * verbose], rows)


def _show_events(events: Iterable[RebalanceEvent], console: Console) -> None:
    """Print a line for each event, and highlight events that interrupted members."""
    any_shown = False
    for event in events:
        line = Text(f"  {instant_text(event.ended_at_ms)} ", style="dim")
        line.append(printable(event.story), style="" if event.is_harmless else "yellow")
        console.print(line)
        any_shown = True
    if not any_shown:
        console.print("  no rebalances recorded")
