"""Draws the screen of `partitions watch`: a table that stays in place, and the latest changes.

If the terminal is too short for all partitions, unhealthy ones come first, and healthy ones take
one line instead of one for each replica. If it is too narrow, the least important columns are left
out, then topic names are shortened. The last line of the table says what is left out. Lines never
wrap, because otherwise the table would not stay in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import ConsoleDimensions, Group
from rich.table import Table
from rich.text import Text

from barnabas.cli.partitions.text import UNKNOWN, clock, seconds, standing
from barnabas.cli.partitions.watch import Change, PartitionRow, ReplicaRow
from barnabas.counted import counted

_STYLES = {"leader": "bold", "in sync": "green", "behind": "yellow", "gone": "bold red"}
_HEADING_LINES = 3  # for the table, and for the changes below it
_CHANGES = 8
_GAP = 2
_SHORTEST_NAME = 9

_NAME, _STATE = "partition", "state"
_NUMBERS = ("broker", "log end", "lag", "seconds", "last epoch")
_TITLES = (_NAME, "leader", "epoch", "in sync", "high watermark", *_NUMBERS, _STATE)
_LEFT_OUT_FIRST = ("last epoch", "high watermark", "epoch")


def screen(
    rows: Sequence[PartitionRow],
    changes: Sequence[Change],
    size: ConsoleDimensions,
    silent_since_ms: int | None = None,
) -> Group:
    """Return what fits on a terminal of this size. `changes` are ordered from oldest to newest."""
    news = list(changes)[-min(_CHANGES, max(size.height // 5, 1)) :]
    is_old = silent_since_ms is not None
    # If the content did not fit, Rich would scroll it, and the table would not stay in place.
    room = size.height - _HEADING_LINES - (len(news) + 1 if news else 0) - is_old
    is_brief = sum(len(row.replicas) for row in rows) > room
    shown = _that_fit(rows, room) if is_brief else list(rows)
    table, left_out = _table(shown, size.width, is_brief)
    parts: list[Table | Text] = [table]
    if silent_since_ms is not None:
        since = (
            f"no broker has answered since {clock(silent_since_ms)}: this is the state at that time"
        )
        parts.insert(0, _line(since, "bold red"))
    hidden = [*_hidden(rows, shown), *left_out]
    if hidden:
        parts.append(_line(f"not shown: {'; '.join(hidden)}", "dim"))
    if not rows:
        parts.append(_line("no partitions", "dim"))
    if news:
        parts.append(_line("last changes:", "dim"))
        parts += [_change(change, size.width) for change in reversed(news)]
    return Group(*parts)


def _that_fit(rows: Sequence[PartitionRow], room: int) -> list[PartitionRow]:
    """Return the rows that fit into this many lines. Unhealthy ones come first, followed by healthy
    ones, which take one line each.
    """
    shown: list[PartitionRow] = []
    used = 0
    for row in sorted(rows, key=lambda row: (row.is_well, row.name)):
        used += 1 if row.is_well else len(row.replicas)
        # Always show at least one partition, even if it does not fit.
        if used > room and shown:
            break
        shown.append(row)
    return sorted(shown)


def _hidden(rows: Sequence[PartitionRow], shown: Sequence[PartitionRow]) -> Iterator[str]:
    count = len(rows) - len(shown)
    if not count:
        return
    ill = sum(not row.is_well for row in rows) - sum(not row.is_well for row in shown)
    health = "all well" if not ill else f"{ill:,} of them not well"
    yield f"{counted(count, 'partition')}, {health}"


def _table(
    rows: Sequence[PartitionRow], width: int, is_brief: bool
) -> tuple[Table, tuple[str, ...]]:
    """Return the table, and the columns left out for lack of width."""
    lines = [
        line
        for row in rows
        for line in ([_brief_line(row)] if is_brief and row.is_well else _lines(row))
    ]
    taken = {
        title: max([cell_len(title), *(line[title].cell_len for line in lines)])
        for title in _TITLES
        if title != _NAME
    }
    names = max([cell_len(_NAME), *(line[_NAME].cell_len for line in lines)])
    titles = list(_TITLES)
    for title in _LEFT_OUT_FIRST:
        if _room(width, taken) < names:
            titles.remove(title)
            del taken[title]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for title in titles:
        table.add_column(
            "" if title == _STATE else title,
            justify="right" if title in _NUMBERS else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    most = max(_room(width, taken), _SHORTEST_NAME)
    for line in lines:
        line[_NAME] = _shorten(line[_NAME], most)
        table.add_row(*(line[title] for title in titles))
    left_out = [title for title in _TITLES if title not in titles]
    return table, ((", ".join(left_out),) if left_out else ())


def _room(width: int, taken: Mapping[str, int]) -> int:
    """Return the width that the other columns leave for the first one."""
    return width - sum(taken.values()) - _GAP * (len(taken) + 1)


def _shorten(name: Text, most: int) -> Text:
    """Return the name with its middle removed, because partitions of a topic differ at the end."""
    if name.cell_len <= most:
        return name
    topic, dash, number = name.plain.rpartition("-")
    kept = max(most - len(dash + number) - 1, 1)
    return Text(f"{topic[:kept]}…{dash}{number}")


def _brief_line(row: PartitionRow) -> dict[str, Text]:
    """Return one line for a healthy partition, with the leader's log end and the largest replica
    lag.
    """
    line = next(_lines(row))
    lags = [replica.lag_records for replica in row.replicas if replica.lag_records is not None]
    lags_ms = [replica.lag_ms for replica in row.replicas if replica.lag_ms is not None]
    leader = next((each for each in row.replicas if each.is_leader), row.replicas[0])
    return {
        **line,
        **_cells(
            leader._replace(lag_records=max(lags, default=None), lag_ms=max(lags_ms, default=None))
        ),
        "broker": Text("all"),
        _STATE: Text("in sync", _STYLES["in sync"]),
    }


def _lines(row: PartitionRow) -> Iterator[dict[str, Text]]:
    """Yield a line for each replica, as cells by column title. The first line holds the partition's
    cells.
    """
    own = {
        _NAME: Text(str(row.name)),
        "leader": Text("none", "bold red") if row.leader < 0 else Text(str(row.leader)),
        "epoch": Text(str(row.leader_epoch)),
        "in sync": Text(",".join(map(str, row.isr)), "" if row.is_well else "yellow"),
        "high watermark": Text(_number(row.high_watermark)),
    }
    for replica in row.replicas:
        yield {**own, **_cells(replica)}
        # After the first replica, the partition's cells are empty.
        own = dict.fromkeys(own, Text())


def _cells(replica: ReplicaRow) -> dict[str, Text]:
    state = standing(replica)
    end = replica.end
    return {
        "broker": Text(str(replica.broker_id)),
        "log end": Text(_number(None if end is None else end.end_offset)),
        "lag": Text(_number(replica.lag_records), "yellow" if replica.lag_records else ""),
        "seconds": Text(seconds(replica.lag_ms)),
        "last epoch": Text(_number(None if end is None else end.epoch)),
        _STATE: Text(state, _STYLES[state]),
    }


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _change(change: Change, width: int) -> Text:
    text = _line(f"  {clock(change.at_ms)} ", "dim")
    name = Text(str(change.name))
    least = max(width - text.cell_len - len(change.text) - 1, _SHORTEST_NAME)
    text.append(_shorten(name, least).plain, style="bold")
    return text.append(f" {change.text}", style="none")


def _line(text: str, style: str) -> Text:
    """Return one line, regardless of the terminal's width."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")
