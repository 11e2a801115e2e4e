"""Implements `barnabas partitions`, which watches replication live. Kafka has no such tool."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json, run_client
from barnabas.cli.partitions.text import change_line, row_lines, row_values, silence_line
from barnabas.cli.partitions.watch import Change, Look, Watch, reasons
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.event_admin import by_time
from barnabas.client.errors import Unreachable
from barnabas.clock import SystemClock
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, UnknownTopicOrPartition
from barnabas.events import Event
from barnabas.types import TopicPartition

_ANSWER_TIMEOUT_MS = 2_000  # a hung broker must not hide the others
_SILENCE_S = 5.0  # after this time, the screen is out of date
_REMEMBERED_CHANGES = 100


@command_group()
def partitions() -> None:
    """Watch partitions, their leaders, and the lag of each replica.

    \b
    Examples:
      barnabas partitions watch
      barnabas partitions watch --topic test --once
    """


@partitions.command()
@click.option(
    "--topic",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="Only this topic; may be repeated.",
)
@click.option("--internal", is_flag=True, help="Include Kafka's internal topics.")
@click.option("--once", is_flag=True, help="Print the current state and exit.")
@click.option(
    "--interval-ms",
    type=click.IntRange(50),
    default=500,
    show_default=True,
    metavar="MS",
    help="The interval between updates.",
)
@as_json
@bootstrap_server
def watch(
    names: tuple[str, ...],
    internal: bool,
    once: bool,
    interval_ms: int,
    as_json: bool,
    servers: str,
) -> None:
    """Show the leader, ISR, epochs, high watermark and each replica's lag until Ctrl-C.

    The lag in seconds is how long a replica has been behind while it was watched. On a
    terminal, the output is a table with the latest changes below it; in a pipe or a file, it is the
    current state, and then a line for each change. Barnabas brokers report the reason for a change,
    which is printed after it.

    \b
    Examples:
      barnabas partitions watch
      barnabas partitions watch --topic orders --topic payments
      barnabas partitions watch --once
      barnabas partitions watch --topic orders --json
    """
    run_client(_Watcher(servers, names, internal).run(once, interval_ms, as_json), None)


class _Watcher:
    """Polls the cluster, and shows the results."""

    def __init__(self, servers: str, names: tuple[str, ...], internal: bool) -> None:
        self._servers = servers
        self._names = list(dict.fromkeys(names)) or None
        # Always show a requested topic, even an internal one.
        self._internal = internal or bool(names)
        self._clock = SystemClock()
        self._watch = Watch()
        self._seen_at_ms = 0
        self._after: dict[int, int] | None = None
        """The last known event of each broker that reports any, or None before the first poll."""

    async def run(self, once: bool, interval_ms: int, as_json: bool) -> None:
        options = {"request_timeout_ms": _ANSWER_TIMEOUT_MS, **client_options()}
        async with Admin(self._servers, **options) as admin:
            if not (once or as_json):
                await self._news(admin)
            first = await self._look(admin)
            if as_json:
                click.echo(json.dumps(row_values(first.rows), indent=2))
            elif sys.stdout.isatty() and not once:
                await self._show(admin, first, interval_ms)
            else:
                for line in row_lines(first.rows):
                    click.echo(line)
                while not once:
                    look = await self._look_again(admin, interval_ms, self._report_silence)
                    for change in look.changes:
                        click.echo(change_line(change))
                    sys.stdout.flush()

    async def _show(self, admin: Admin, look: Look, interval_ms: int) -> None:
        from rich.console import Console
        from rich.live import Live

        from barnabas.cli.partitions.table import screen

        console = Console(highlight=False)
        changes: deque[Change] = deque(maxlen=_REMEMBERED_CHANGES)
        with Live(console=console, auto_refresh=False, screen=True) as live:

            def draw(silent_since_ms: int | None = None) -> None:
                shown = screen(look.rows, list(changes), console.size, silent_since_ms)
                live.update(shown, refresh=True)

            while True:
                changes.extend(look.changes)
                draw()
                look = await self._look_again(admin, interval_ms, lambda: draw(self._seen_at_ms))

    def _report_silence(self) -> None:
        click.echo(silence_line(self._seen_at_ms))
        sys.stdout.flush()

    async def _look(self, admin: Admin) -> Look:
        topics = await admin.describe_topics(self._names)
        if not self._internal:
            topics = [topic for topic in topics if not topic.is_internal]
        cluster = await admin.describe_cluster()
        ends = await admin.replica_ends(
            {
                TopicPartition(topic.name, partition.partition): partition.replicas
                for topic in topics
                for partition in topic.partitions
            }
        )
        live = {broker.broker_id for broker in cluster.brokers}
        self._seen_at_ms = self._clock.wall_ms()
        look = self._watch.look(self._seen_at_ms, topics, live, ends)
        if self._after:
            news = await self._news(admin)
            look.changes.extend(reasons(news, {row.name for row in look.rows}))
        return look

    async def _news(self, admin: Admin) -> list[Event]:
        """Return the brokers' events since the last poll, or no events in the first call."""
        try:
            reports = await admin.events(self._after)
        except ClusterAuthorizationFailed:
            self._after = {}
            return []
        is_first, known = self._after is None, self._after or {}
        self._after = known | {
            broker_id: report.after
            for broker_id, report in reports.items()
            if report.problem is None
        }
        return [] if is_first else [event for _, event in by_time(reports)]

    async def _look_again(
        self, admin: Admin, interval_ms: int, on_silence: Callable[[], None]
    ) -> Look:
        """Poll after a pause, and retry after transient errors, to show a cluster's recovery."""
        wait_s = interval_ms / 1000
        # Retries are silent, so a timer reports a long time without information.
        silence = asyncio.get_running_loop().call_later(wait_s + _SILENCE_S, on_silence)
        try:
            while True:
                await asyncio.sleep(wait_s)
                try:
                    return await self._look(admin)
                except Unreachable:
                    continue
                except KafkaError as error:
                    # Do not wait for a deleted topic.
                    if isinstance(error, UnknownTopicOrPartition) or not error.retriable:
                        raise
        finally:
            silence.cancel()
