"""Implements `barnabas offsets`, which works and prints like `kafka-get-offsets.sh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import click

from barnabas.cli.complaint import complain
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.groups.instants import BadInstant, moment_ms
from barnabas.cli.groups.reset_plan import BadReset, Selection, select_partitions, selection
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAndTimestamp
from barnabas.clock import SystemClock
from barnabas.types import TopicPartition

_NAMED = {
    "latest": LATEST,
    "-1": LATEST,
    "earliest": EARLIEST,
    "-2": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "-3": MAX_TIMESTAMP,
}


class Ends(NamedTuple):
    """Holds a partition's offsets for the table on a terminal."""

    earliest: int
    latest: int


@click.command()
@click.argument("topics", nargs=-1, metavar="[NAME[:0,1]]...", shell_complete=topic_names)
@click.option(
    "--topic",
    "more_topics",
    multiple=True,
    metavar="NAME[:0,1]",
    shell_complete=topic_names,
    help="The same as NAME: a topic, or some of its partitions; default: all topics.",
)
@click.option(
    "--time",
    "at",
    metavar="TIME",
    help="earliest, latest (the default), max-timestamp (of the youngest record), or the first "
    "record of a time: 2026-11-21T17:30, -1h, or ms since 1970.",
)
@click.option("--exclude-internal", is_flag=True, help="Leave out Kafka's internal topics.")
@click.option(
    "--isolation-level",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
    help="read_committed: the latest offset is the one before the oldest open transaction.",
)
@as_json
@bootstrap_server
def offsets(  # noqa: PLR0913  (a command's parameters are its options)
    topics: tuple[str, ...],
    more_topics: tuple[str, ...],
    at: str | None,
    exclude_internal: bool,
    isolation_level: str,
    as_json: bool,
    servers: str,
) -> int:
    """Show the offsets of partitions: the end, the beginning, or those at a certain time.

    On a terminal, the output is a table. In a pipe or a file, there is a line for each partition,
    topic:partition:offset, except for partitions without a record of that time. If a partition has
    no leader, it is left out, and the exit code is 1.

    \b
    Examples:
      barnabas offsets
      barnabas offsets orders --time earliest
      barnabas offsets orders:0,1 payments --time -1h
      barnabas offsets --topic orders --time max-timestamp --json
    """
    time_ms = _time_ms(at)
    try:
        wanted = [selection(text) for text in (*topics, *more_topics)]
    except BadReset as error:
        raise click.UsageError(str(error)) from error
    committed = isolation_level == "read_committed"
    is_table = at is None and not as_json and sys.stdout.isatty()

    async def work() -> tuple[dict[TopicPartition, OffsetAndTimestamp], list[Ends]]:
        async with Admin(servers, **client_options()) as admin:
            names = await _partitions(admin, wanted, exclude_internal)

            async def ask(time_ms: int) -> dict[TopicPartition, OffsetAndTimestamp]:
                # A request for a partition without a leader would be retried until the time limit,
                # and would delay all others.
                times = {name: time_ms for name, has_leader in names.items() if has_leader}
                return await admin.list_offsets(times, read_committed=committed)

            leaderless.extend(name for name, has_leader in names.items() if not has_leader)
            found = await ask(time_ms)
            starts = await ask(EARLIEST) if is_table else {}
            return found, [Ends(starts[name].offset, found[name].offset) for name in starts]

    leaderless: list[TopicPartition] = []
    found, ends = run_client(work())
    if as_json:
        click.echo(json.dumps(list(_values(found)), indent=2))
    elif is_table:
        _show(found, ends)
    else:
        for line in offset_lines(found):
            click.echo(line)
    for name in leaderless:
        complain("barnabas offsets", f"{name} has no leader: its offsets are unknown")
    return EXIT_FAILURE if leaderless else EXIT_OK


def offset_lines(found: Mapping[TopicPartition, OffsetAndTimestamp]) -> Iterator[str]:
    """Yield Kafka 3.9's output lines for the partitions that have such an offset, in order."""
    for name in sorted(found):
        # -1 means that no record is that recent. Kafka prints no line in this case.
        if found[name].offset >= 0:
            yield f"{name.topic}:{name.partition}:{found[name].offset}"


async def _partitions(
    admin: Admin, wanted: Iterable[Selection], exclude_internal: bool
) -> dict[TopicPartition, bool]:
    """Return the partitions to look up, in order, and whether each has a leader. Raises BadReset if
    a partition does not exist.
    """
    names = [each.topic for each in wanted]
    described = {
        topic.name: {each.partition: each.leader >= 0 for each in topic.partitions}
        for topic in await admin.describe_topics(names or None)
        if names or not (exclude_internal and topic.is_internal)
    }
    existing = {topic: list(partitions) for topic, partitions in described.items()}
    chosen = select_partitions(wanted or (Selection(name, None) for name in existing), existing)
    return {name: described[name.topic][name.partition] for name in sorted(chosen)}


def _time_ms(text: str | None) -> int:
    if text is None or text in _NAMED:
        return _NAMED[text or "latest"]
    try:
        return moment_ms(text, SystemClock().wall_ms())
    except BadInstant as error:
        raise click.UsageError(f"--time {error}; or earliest, latest, max-timestamp") from error


def _values(found: Mapping[TopicPartition, OffsetAndTimestamp]) -> Iterator[dict[str, Any]]:
    for name in sorted(found):
        at = found[name]
        yield {
            "topic": name.topic,
            "partition": name.partition,
            "offset": None if at.offset < 0 else at.offset,
            "timestamp": None if at.timestamp_ms < 0 else at.timestamp_ms,
        }


def _show(found: Mapping[TopicPartition, OffsetAndTimestamp], ends: list[Ends]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("topic", "partition", "earliest", "latest", "latest - earliest"):
        table.add_column(title, justify="left" if title == "topic" else "right")
    for name, end in zip(found, ends, strict=True):
        span = end.latest - end.earliest
        table.add_row(name.topic, *map(str, (name.partition, end.earliest, end.latest, span)))
    Console(highlight=False).print(table)
