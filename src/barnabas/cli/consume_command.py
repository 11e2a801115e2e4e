"""`barnabas consume`: what `kafka-console-consumer.sh` is."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO, NamedTuple

import click

from barnabas.cli.layout import BadFormat, Layout, json_layout, template_layout, value_layout
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import (
    as_json,
    bootstrap_server,
    key_values,
    one_topic,
    run_client,
    topic_name,
)
from barnabas.client.consumer import Consumer
from barnabas.client.errors import UnknownPartition
from barnabas.clock import SystemClock
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition

_POLL_MS = 1_000


class Start(NamedTuple):
    """Which partitions, and where to begin."""

    topic: str
    partitions: tuple[int, ...]  # none: all
    offset: str | int  # earliest, latest, or a number; negative: that many before the end


class Limits(NamedTuple):
    max_messages: int | None
    timeout_ms: int | None  # of silence


@click.command()
@topic_name
@click.option("--from-beginning", is_flag=True, help="Also what is there already.")
@click.option(
    "--partition", "partitions", type=int, multiple=True, metavar="N", help="Only this; repeatable."
)
@click.option(
    "--offset",
    metavar="N|earliest|latest",
    help="Begin there, in each --partition; -N is N records before the end.",
)
@click.option("--max-messages", type=click.IntRange(0), metavar="N", help="End after so many.")
@click.option(
    "--timeout-ms", type=click.IntRange(0), metavar="MS", help="End when nothing comes for so long."
)
@click.option(
    "--format",
    "template",
    metavar="TEMPLATE|NAMES",
    help="What to print of a record: a template with {key} {value} {headers} {timestamp} {offset} "
    "{partition} {topic}, or names: key,value.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
)
@click.option(
    "--consumer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any consumer config, as fetch.max.wait.ms=100; may be repeated.",
)
@as_json
@bootstrap_server
def consume(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    from_beginning: bool,
    partitions: tuple[int, ...],
    offset: str | None,
    max_messages: int | None,
    timeout_ms: int | None,
    template: str | None,
    isolation_level: str,
    properties: tuple[str, ...],
    as_json: bool,
    servers: str,
) -> int:
    """Print the records of a topic until Ctrl-C.

    Without --from-beginning or --offset only what comes from now on.

    \b
    Examples:
      barnabas consume test --from-beginning
      barnabas consume test --from-beginning --max-messages 10 --json
      barnabas consume test --partition 0 --offset -5 --timeout-ms 1000
      barnabas consume test --format '{partition}@{offset} {key}={value}'
      barnabas consume test --from-beginning --format timestamp,key,value | sort
    """
    start = Start(
        one_topic(topic_argument, topic_option), partitions, _offset(offset, from_beginning)
    )
    if offset is not None and not partitions:
        raise click.UsageError("--offset needs --partition: offsets belong to partitions")
    try:
        layout = _layout(template, as_json)
        options: dict[str, Any] = {
            "isolation_level": isolation_level,
            # A mistyped name shall not make a topic.
            "allow_auto_create_topics": False,
            "max_poll_records": 5_000,
            **key_values(properties, "--consumer-property"),
        }
        options = {name.replace(".", "_"): value for name, value in options.items()}
        consumer = Consumer(servers, **options)
    except (BadFormat, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    printer = Printer(sys.stdout.buffer, layout)
    limits = Limits(max_messages, timeout_ms)
    try:
        run_client(_print_all(consumer, start, limits, printer))
    except KeyboardInterrupt:
        printer.flush()
    click.echo(f"Processed a total of {printer.count} messages", err=True)
    return EXIT_OK


class Printer:
    """Writes records to standard output and counts them."""

    def __init__(self, output: BinaryIO, layout: Layout) -> None:
        self._output = output
        self._layout = layout
        self.count = 0

    def show(self, records: list[Any]) -> None:
        layout = self._layout
        self._output.write(b"".join([layout(record) for record in records]))
        self.count += len(records)

    def flush(self) -> None:
        self._output.flush()


async def _print_all(consumer: Consumer, start: Start, limits: Limits, printer: Printer) -> None:
    clock = SystemClock()
    async with consumer:
        await _go_to(consumer, start)
        heard_ms = clock.now_ms()
        while limits.max_messages is None or printer.count < limits.max_messages:
            wait_ms = _POLL_MS
            if limits.timeout_ms is not None:
                wait_ms = min(wait_ms, heard_ms + limits.timeout_ms - clock.now_ms())
                if wait_ms <= 0:
                    return
            records = await consumer.poll(wait_ms)
            if records:
                heard_ms = clock.now_ms()
            if limits.max_messages is not None:
                records = records[: limits.max_messages - printer.count]
            printer.show(records)
            printer.flush()


async def _go_to(consumer: Consumer, start: Start) -> None:
    """Assign the partitions and find where to begin."""
    existing = await consumer.partitions_for(start.topic)
    for number in start.partitions:
        if number not in existing:
            raise UnknownPartition(
                f"topic {start.topic!r} has partitions 0 to {len(existing) - 1}, not {number}"
            )
    names = [TopicPartition(start.topic, number) for number in start.partitions or existing]
    consumer.assign(names)
    if start.offset == "earliest":
        await consumer.seek_to_beginning()
    elif start.offset == "latest":
        await consumer.seek_to_end()
    elif isinstance(start.offset, int) and start.offset >= 0:
        for name in names:
            consumer.seek(name, start.offset)
    elif isinstance(start.offset, int):
        begins = await consumer.beginning_offsets(names)
        ends = await consumer.end_offsets(names)
        for name in names:
            consumer.seek(name, max(begins[name], ends[name] + start.offset))


def _offset(text: str | None, from_beginning: bool) -> str | int:
    """What --offset and --from-beginning mean. Raises UsageError."""
    if text is None:
        return "earliest" if from_beginning else "latest"
    if from_beginning:
        raise click.UsageError("--from-beginning and --offset contradict each other")
    if text in ("earliest", "latest"):
        return text
    if text.removeprefix("-").isdecimal():
        return int(text)
    raise click.UsageError(f"--offset {text}: not a number, earliest or latest")


def _layout(template: str | None, as_json: bool) -> Layout:
    if as_json:
        if template is not None:
            raise BadFormat("--json and --format contradict each other")
        return json_layout
    return value_layout if template is None else template_layout(template)
