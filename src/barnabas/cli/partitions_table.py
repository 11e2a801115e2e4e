"""What `partitions watch` shows on a terminal: a table that stays in its place, and the news below.

Where the terminal is too small for all partitions, those that are not well come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from barnabas.cli.partitions_text import UNKNOWN, clock, seconds, standing
from barnabas.cli.partitions_watch import Change, PartitionRow, ReplicaRow

_STYLES = {"leader": "bold", "in sync": "green", "behind": "yellow", "gone": "bold red"}
_HEADING_LINES = 3  # the table's, and what is said below it
_CHANGES = 8


def screen(
    rows: Sequence[PartitionRow],
    changes: Sequence[Change],
    height: int,
    silent_since_ms: int | None = None,
) -> Group:
    """All that fits into so many lines; `changes`: oldest first."""
    news = list(changes)[-_CHANGES:]
    is_old = silent_since_ms is not None
    room = height - _HEADING_LINES - (len(news) + 1 if news else 0) - is_old
    shown = _that_fit(rows, room)
    parts: list[Table | Text] = [_table(shown)]
    if silent_since_ms is not None:
        since = f"no broker has answered since {clock(silent_since_ms)}: it was like this then"
        parts.insert(0, Text(since, style="bold red"))
    hidden = len(rows) - len(shown)
    if hidden:
        parts.append(Text(f"and {hidden} more partitions", style="dim"))
    if not rows:
        parts.append(Text("no partitions", style="dim"))
    if news:
        parts.append(Text("what changed last:", style="dim"))
        parts += [_change(change) for change in reversed(news)]
    return Group(*parts)


def _that_fit(rows: Sequence[PartitionRow], room: int) -> list[PartitionRow]:
    if sum(len(row.replicas) for row in rows) <= room:
        return list(rows)
    shown: list[PartitionRow] = []
    used = 0
    for row in sorted(rows, key=lambda row: (row.is_well, row.name)):
        used += len(row.replicas)
        if used > room and shown:
            break
        shown.append(row)
    return sorted(shown)


def _table(rows: Sequence[PartitionRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("partition", "leader", "epoch", "in sync", "high watermark"):
        table.add_column(title, overflow="fold")
    for title in ("broker", "log end", "lag", "seconds", "last epoch"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in rows:
        first = (
            str(row.name),
            Text("none", style="bold red") if row.leader < 0 else str(row.leader),
            str(row.leader_epoch),
            Text(",".join(map(str, row.isr)), style="" if row.is_well else "yellow"),
            UNKNOWN if row.high_watermark is None else str(row.high_watermark),
        )
        for number, replica in enumerate(row.replicas):
            table.add_row(*(first if number == 0 else ("",) * len(first)), *_cells(replica))
    return table


def _cells(replica: ReplicaRow) -> list[Text]:
    state = standing(replica)
    end = replica.end
    return [
        Text(str(replica.broker_id)),
        Text(UNKNOWN if end is None else str(end.end_offset)),
        Text(
            UNKNOWN if replica.lag_records is None else str(replica.lag_records),
            style="yellow" if replica.lag_records else "",
        ),
        Text(seconds(replica.lag_ms)),
        Text(UNKNOWN if end is None else str(end.epoch)),
        Text(state, style=_STYLES[state]),
    ]


def _change(change: Change) -> Text:
    text = Text(f"  {clock(change.at_ms)} ", style="dim")
    text.append(str(change.name), style="bold")
    return text.append(f" {change.text}", style="none")
