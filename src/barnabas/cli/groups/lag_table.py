"""Shows the lag of groups on a terminal, and draws the screen of `groups watch`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from barnabas.cli.groups.lag_text import cells, summary
from barnabas.cli.terminal_table import Cells, outside_text, show_table
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.verdict import State, Verdict
from barnabas.counted import counted
from barnabas.types import TopicPartition

_TITLES = (
    *("topic", ">partition", ">committed", ">end", ">records", ">seconds", ">trend"),
    *(">caught up in", "state", "reason"),
)
_LEFT_OUT_FIRST = ("reason", ">committed", ">end", ">trend", ">caught up in", ">seconds")
_SHORTENED = {"topic": 12, "reason": 20}  # columns that may be truncated to this width
_GAP = 2
_STYLES = {
    State.CAUGHT_UP: "green",
    State.CATCHING_UP: "green",
    State.FALLING_BEHIND: "yellow",
    State.STOPPED: "bold red",
    State.STUCK: "bold red",
}
_LEAST_ROWS = 3


def show_lags(lags: Sequence[GroupLag], console: Console | None = None) -> None:
    """Print a heading and a table for each group."""
    console = console or Console(highlight=False)
    for number, lag in enumerate(lags):
        if number:
            console.print()
        console.print(_heading(lag))
        if lag.verdicts:
            show_table(console, _TITLES, [_row(*each) for each in lag.verdicts.items()])
    if not lags:
        console.print("No groups.")


def lag_screen(lags: Sequence[GroupLag], size: ConsoleDimensions, unready: str) -> Group:
    """Return what fits on a terminal of this size, with groups that need attention first.

    `unready` is the reason why the last poll failed, if it did.
    """
    parts: list[RenderableType] = []
    if unready:
        parts.append(Text(f"out of date: {unready}", "bold red", no_wrap=True, overflow="ellipsis"))
    room = size.height - len(parts)
    hidden = 0
    for lag in sorted(lags, key=lambda lag: (-lag.together.state.severity, lag.group.group_id)):
        rows = sorted(lag.verdicts.items(), key=lambda each: (-each[1].state.severity, each[0]))
        # A group's headings take two lines, and the last line shows the number of hidden
        # partitions.
        fitting = max(room - 3, 0)
        if parts and fitting < min(_LEAST_ROWS, len(rows)):
            hidden += len(rows)
            continue
        heading = _heading(lag)
        heading.no_wrap, heading.overflow = True, "ellipsis"
        parts += [heading, _table(rows[:fitting], size.width)]
        hidden += max(len(rows) - fitting, 0)
        room -= 2 + min(len(rows), fitting)
    if not lags:
        parts.append(Text("no groups", "dim"))
    if hidden:
        parts.append(Text(f"not shown: {counted(hidden, 'partition')}", "dim"))
    return Group(*parts)


def _table(rows: Sequence[tuple[TopicPartition, Verdict]], width: int) -> Table:
    """Return a table in which each row takes one line, so that the table stays in place. On a
    narrow terminal, the least important columns are left out.
    """
    lines = [dict(zip(_TITLES, _row(*row), strict=True)) for row in rows]
    titles = list(_TITLES)
    for title in _LEFT_OUT_FIRST:
        if sum(_least_width(each, lines) + _GAP for each in titles) <= width:
            break
        titles.remove(title)
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in titles:
        is_number = title.startswith(">")
        table.add_column(
            title.removeprefix(">"),
            justify="right" if is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=_least_width(title, lines),
        )
    for line in lines:
        table.add_row(*(line[title] for title in titles))
    return table


def _least_width(title: str, lines: Sequence[dict[str, str | Text]]) -> int:
    """Return the minimum width of a column."""
    longest = max((cell_len(str(line[title])) for line in lines), default=0)
    if title in _SHORTENED:
        longest = min(longest, _SHORTENED[title])
    return max(longest, cell_len(title.removeprefix(">")))


def _heading(lag: GroupLag) -> Text:
    heading = outside_text(lag.group.group_id, style="bold")
    return heading.append_text(outside_text(f"  {summary(lag)}", style="dim"))


def _row(name: TopicPartition, verdict: Verdict) -> Cells:
    *numbers, state, reason = cells(verdict)
    return [
        outside_text(name.topic),
        str(name.partition),
        *numbers,
        Text(state, style=_STYLES.get(verdict.state, "")),
        outside_text(reason, style="dim"),
    ]
