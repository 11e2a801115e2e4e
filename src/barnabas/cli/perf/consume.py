"""Implements `barnabas perf consume`, which works like `kafka-consumer-perf-test.sh`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import click

from barnabas.cli.complaint import warn
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import key_values, one_topic, run_client, topic_name
from barnabas.client.consumer.consumer import Consumer
from barnabas.clock import SystemClock
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition

_EXIT_INTERRUPTED = 130  # a shell's exit code for an interrupted process
_MEBIBYTE = 1 << 20
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


class Receiving:
    """Counts the records received, in total and since the last line."""

    def __init__(self, now_ms: int, wall_ms: int) -> None:
        """In all methods, `now_ms` is a monotonic time. Wall time is only for display."""
        self.began_ms = self.window_began_ms = now_ms
        self._calendar_ms = wall_ms - now_ms
        self.records = self.window_records = 0
        self.bytes = self.window_bytes = 0

    def add(self, records: int, size_bytes: int) -> None:
        self.records += records
        self.bytes += size_bytes

    def line(self, now_ms: int) -> str:
        """Return the columns for the time since the last line, and start the next one."""
        text = self._columns(
            self.bytes - self.window_bytes,
            self.records - self.window_records,
            now_ms - self.window_began_ms,
        )
        self.window_began_ms = now_ms
        self.window_records, self.window_bytes = self.records, self.bytes
        return f"{_time(self._calendar_ms + now_ms)}, 0, {text}"

    def summary(self, now_ms: int) -> str:
        text = self._columns(self.bytes, self.records, now_ms - self.began_ms)
        began, ended = _time(self._calendar_ms + self.began_ms), _time(self._calendar_ms + now_ms)
        return f"{began}, {ended}, {text}"

    def _columns(self, size_bytes: int, records: int, took_ms: int) -> str:
        # All of the time counts as fetching, because partitions are assigned without joining a
        # group.
        megabytes, seconds = size_bytes / _MEBIBYTE, max(took_ms, 1) / 1000
        volume, rate = f"{megabytes / seconds:.4f}", f"{records / seconds:.4f}"
        return f"{megabytes:.4f}, {volume}, {records}, {rate}, 0, {took_ms}, {volume}, {rate}"


class Wanted(NamedTuple):
    """Specifies what to read, and how to report it."""

    topic: str
    records: int
    timeout_ms: int
    interval_ms: int | None
    """The time between report lines, or None to print only the summary."""
    offset: str
    has_header: bool


@click.command()
@topic_name
@click.option(
    "--messages",
    "--num-records",
    "messages",
    type=click.IntRange(1),
    required=True,
    metavar="N",
    help="How many records to read.",
)
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="Stop when no record arrives for this long.",
)
@click.option("--from-latest", is_flag=True, help="Read only records that arrive from now on.")
@click.option(
    "--show-detailed-stats", is_flag=True, help=("Print a line every --reporting-interval.")
)
@click.option(
    "--reporting-interval", type=click.IntRange(1), default=5000, show_default=True, metavar="MS"
)
@click.option("--hide-header", is_flag=True, help="Do not print the column names.")
@click.option(
    "--consumer-config",
    "--consumer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any consumer config, such as fetch.max.bytes=1048576; may be repeated.",
)
@bootstrap_server
def consume(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    messages: int,
    timeout_ms: int,
    from_latest: bool,
    show_detailed_stats: bool,
    reporting_interval: int,
    hide_header: bool,
    properties: tuple[str, ...],
    servers: str,
) -> int:
    """Read records from all partitions of a topic, and report the throughput.

    Ctrl-C ends the command with a summary.

    \b
    Examples:
      barnabas perf consume test --messages 1000000
      barnabas perf consume test --messages 1000000 --show-detailed-stats
      barnabas perf consume test --messages 100 --from-latest --timeout 60000
    """
    settings = key_values(properties, "--consumer-config")
    servers = settings.pop("bootstrap.servers", servers)
    options: dict[str, Any] = {
        "allow_auto_create_topics": False,
        "max_poll_records": 5_000,
        **{name.replace(".", "_"): text for name, text in settings.items()},
    }
    try:
        consumer = Consumer(servers, **{**client_options(), **options})
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    wanted = Wanted(
        one_topic(topic_argument, topic_option),
        messages,
        timeout_ms,
        reporting_interval if show_detailed_stats else None,
        "latest" if from_latest else "earliest",
        not hide_header,
    )
    try:
        run_client(_receive_all(consumer, wanted), None)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return EXIT_OK


async def _receive_all(consumer: Consumer, wanted: Wanted) -> None:
    """Read all records, and print the summary however reading ends."""
    clock = SystemClock()
    async with consumer:
        partitions = await consumer.partitions_for(wanted.topic)
        consumer.assign([TopicPartition(wanted.topic, number) for number in partitions])
        if wanted.offset == "earliest":
            await consumer.seek_to_beginning()
        else:
            await consumer.seek_to_end()
        if wanted.has_header:
            times = "start.time, end.time" if wanted.interval_ms is None else "time, threadId"
            click.echo(f"{times}, {_COLUMNS}")
        report = Receiving(clock.monotonic_ms(), clock.wall_ms())
        heard_ms = report.began_ms
        try:
            while report.records < wanted.records:
                silence_ms = heard_ms + wanted.timeout_ms - clock.monotonic_ms()
                if silence_ms <= 0:
                    warn(
                        "barnabas perf consume",
                        f"{report.records:,} of {counted(wanted.records, 'record')} arrived, then "
                        f"no more for {wanted.timeout_ms} ms; to wait longer, raise --timeout",
                    )
                    break
                # Poll no longer than until the next report line or the time limit.
                records = await consumer.poll(min(silence_ms, wanted.interval_ms or silence_ms))
                now_ms = clock.monotonic_ms()
                if records:
                    heard_ms = now_ms
                size_bytes = sum(len(each.key or b"") + len(each.value or b"") for each in records)
                report.add(len(records), size_bytes)
                interval_ms = wanted.interval_ms
                if interval_ms is not None and now_ms - report.window_began_ms >= interval_ms:
                    click.echo(report.line(now_ms))
        finally:
            # With --show-detailed-stats, Kafka prints no summary, but a line for the last records.
            if wanted.interval_ms is None:
                click.echo(report.summary(clock.monotonic_ms()))
            else:
                click.echo(report.line(clock.monotonic_ms()))


def _time(at_ms: int) -> str:
    """Return the local time in the format of Kafka's tool."""
    local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S}:{at_ms % 1000:03}"
