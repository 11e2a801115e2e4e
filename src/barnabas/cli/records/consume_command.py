"""`barnabas consume`: like `kafka-console-consumer.sh`."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any, BinaryIO, NamedTuple

import click

from barnabas.cli.complaint import complain
from barnabas.cli.groups.missing import why_no_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import (
    as_json,
    bootstrap_server,
    key_values,
    one_topic,
    run_client,
    topic_name,
)
from barnabas.cli.records.layout import (
    BadFormat,
    Layout,
    json_layout,
    template_layout,
    value_layout,
)
from barnabas.cli.records.start_position import (
    Start,
    Subscribed,
    beginning,
    give_back,
    go_to,
    start_of,
)
from barnabas.client.consumer.consumer import Consumer
from barnabas.clock import SystemClock, SystemRandom
from barnabas.errors import ConfigError

_POLL_MS = 1_000
_OWN_GROUPS = 100_000


class Limits(NamedTuple):
    max_messages: int | None
    timeout_ms: int | None  # of silence


@click.command()
@topic_name
@click.option("--include", metavar="REGEX", help="Instead of a topic: all whose full name matches.")
@click.option("--group", metavar="NAME", help="Consume as a member of this group, and commit.")
@click.option(
    "--from-beginning",
    is_flag=True,
    help="Start with the oldest records; in a group, where it has committed nothing.",
)
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    metavar="N",
    help="Only this one; repeatable.",
)
@click.option(
    "--offset",
    metavar="N|earliest|latest",
    help="Start at this offset of each --partition; -N: N records before the end.",
)
@click.option("--max-messages", type=click.IntRange(0), metavar="N", help="End after N records.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(0),
    metavar="MS",
    help="End when no record comes for this long; time to join a group counts.",
)
@click.option(
    "--format",
    "template",
    metavar="TEMPLATE|NAMES|offsets|groups",
    help="How to print a record: a template with {key} {value} {headers} {timestamp} {offset} "
    "{partition} {topic}, or names: key,value; for __consumer_offsets: offsets, groups.",
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
    help="Any consumer config, such as fetch.max.wait.ms=100; may be repeated.",
)
@as_json
@bootstrap_server
def consume(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    include: str | None,
    group: str | None,
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

    Without --from-beginning or --offset it prints only records that arrive from now on. Without
    --group it reads all partitions and commits nothing; with it the group's members share the
    partitions and continue from the committed offsets. Only records that were printed are
    committed. If it never became a member of its group it says why, and exits with 1.

    \b
    Examples:
      barnabas consume test --from-beginning
      barnabas consume test --from-beginning --max-messages 10 --json
      barnabas consume test --group readers --from-beginning
      barnabas consume test --partition 0 --offset -5 --timeout-ms 1000
      barnabas consume test --format '{partition}@{offset} {key}={value}'
      barnabas consume test --from-beginning --format timestamp,key,value | sort
      barnabas consume __consumer_offsets --partition 6 --offset earliest --format offsets
    """
    topic = _topic(topic_argument, topic_option, include)
    options = _options(isolation_level, from_beginning, properties)
    group = options.get("group_id") if group is None else group
    if group is None and include is not None:
        # A private group that commits nothing (UX-2): only groups find new topics.
        group = f"console-consumer-{SystemRandom().below(_OWN_GROUPS)}"
        options["enable_auto_commit"] = False
    if group is not None:
        options["group_id"] = group
    start = start_of(
        topic, include, group, partitions, beginning(offset, from_beginning, partitions)
    )
    try:
        layout = _layout(template, as_json)
        consumer = Consumer(servers, **options)
    except (BadFormat, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    printer = Printer(sys.stdout.buffer, layout)
    reason = _printed(_print_all(consumer, start, Limits(max_messages, timeout_ms), printer))
    printer.flush()
    click.echo(f"Processed a total of {printer.count} messages", err=True)
    if max_messages == 0 or group is None or consumer.group_metadata().generation >= 0:
        return EXIT_OK
    return _never_was_a_member(group, reason or run_client(why_no_group(servers, group)))


def _printed(work: Coroutine[Any, Any, None]) -> str:
    """Run the work; why it ended early, or empty: Ctrl-C is the usual end, and no error."""
    try:
        run_client(work)
    except KeyboardInterrupt:
        return "it was interrupted before it joined"
    return ""


def _never_was_a_member(group: str, reason: str) -> int:
    complain("barnabas consume", f"never became a member of group {group!r}: {reason}")
    return EXIT_FAILURE


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


async def _print_all(
    consumer: Consumer, start: Start | Subscribed, limits: Limits, printer: Printer
) -> None:
    clock = SystemClock()
    async with consumer:
        await go_to(consumer, start)
        heard_ms = clock.monotonic_ms()
        while limits.max_messages is None or printer.count < limits.max_messages:
            wait_ms = _POLL_MS
            if limits.timeout_ms is not None:
                wait_ms = min(wait_ms, heard_ms + limits.timeout_ms - clock.monotonic_ms())
                if wait_ms <= 0:
                    return
            records = await consumer.poll(wait_ms)
            if records:
                heard_ms = clock.monotonic_ms()
            wanted = records
            if limits.max_messages is not None:
                wanted = records[: limits.max_messages - printer.count]
            try:
                printer.show(wanted)
                printer.flush()
            except BaseException:
                give_back(consumer, records)
                raise
            give_back(consumer, records[len(wanted) :])


def _topic(argument: str | None, option: str | None, include: str | None) -> str | None:
    """The one topic, or none beside --include. Raises UsageError."""
    if include is None:
        return one_topic(argument, option)
    if argument or option:
        raise click.UsageError("--include and a topic contradict each other")
    return None


def _options(
    isolation_level: str, from_beginning: bool, properties: tuple[str, ...]
) -> dict[str, Any]:
    """The consumer's options; --consumer-property takes precedence. Raises UsageError."""
    given = key_values(properties, "--consumer-property")
    return {
        "isolation_level": isolation_level,
        # A mistyped name must not create a topic.
        "allow_auto_create_topics": False,
        "max_poll_records": 5_000,
        "auto_offset_reset": "earliest" if from_beginning else "latest",
        **{name.replace(".", "_"): value for name, value in given.items()},
    }


def _layout(template: str | None, as_json: bool) -> Layout:
    if as_json:
        if template is not None:
            raise BadFormat("--json and --format contradict each other")
        return json_layout
    return value_layout if template is None else template_layout(template)
