"""Implements `barnabas consume`, which works like `kafka-console-consumer.sh`."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping
from typing import Any, BinaryIO, NamedTuple

import click

from barnabas.cli.complaint import complain
from barnabas.cli.completion import group_ids
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, client_properties, run_client, topic_name
from barnabas.cli.records.consume_plan import Place, Plan, make_plan
from barnabas.cli.records.layout import (
    BadFormat,
    Layout,
    json_layout,
    template_layout,
    value_layout,
)
from barnabas.cli.records.positions import Ends, Subscribed, give_back, go_to
from barnabas.cli.records.silence import JOIN_MS, Silence
from barnabas.cli.terminal import printable_bytes
from barnabas.cli.waiting import Waiting
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.counted import counted
from barnabas.errors import BarnabasError, ConfigError, CoordinatorNotAvailable

_POLL_MS = 1_000
_POLL_AT_END_MS = 100
_WHY_MS = 3_000
_FACTOR = "offsets.topic.replication.factor"


class Limits(NamedTuple):
    max_messages: int | None
    timeout_ms: int | None  # the longest time without records


@click.command()
@topic_name
@click.option(
    "--include", metavar="REGEX", help=("Instead of a topic: all topics whose full name matches.")
)
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=group_ids,
    help="Consume as a member of this group, and commit.",
)
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
    help="Only this partition; may be repeated.",
)
@click.option(
    "--offset",
    metavar="N|earliest|latest",
    help="Start at this offset of each --partition; -N: N records before the end of each.",
)
@click.option(
    "--from",
    "since",
    metavar="TIME",
    help="Start with the first record of this time: 2026-11-21T17:30, -1h, now, or ms since 1970.",
)
@click.option("--to", "until", metavar="TIME", help="End before the first record of this time.")
@click.option("--exit-at-end", is_flag=True, help="End where the partitions ended at the start.")
@click.option("--max-messages", type=click.IntRange(0), metavar="N", help="End after N records.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(0),
    metavar="MS",
    help="Stop when no record arrives for this long, including the time to join a group.",
)
@click.option(
    "--format",
    "template",
    metavar="TEMPLATE|NAMES|offsets|groups|transactions",
    help="How to print a record: a template with {key} {value} {headers} {timestamp} {offset} "
    "{partition} {topic}, or names: key,value; for __consumer_offsets: offsets, groups; for "
    "__transaction_state: transactions.",
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
    max_messages: int | None,
    timeout_ms: int | None,
    template: str | None,
    isolation_level: str,
    properties: tuple[str, ...],
    as_json: bool,
    servers: str,
    **place: Any,
) -> int:
    """Print the records of a topic until Ctrl-C.

    Without --from-beginning, --offset or --from, it prints only records that arrive from now on.
    Without --group, it is the only member of its own group, console-consumer-<0..99999>, which
    commits nothing; with --offset, --from, --to or --exit-at-end, it needs no group. With --group,
    the group's members share the partitions and continue from the committed offsets. Only records
    that were printed are committed. If it never became a member of its group, it says why and exits
    with 1.

    \b
    Examples:
      barnabas consume test --from-beginning
      barnabas consume test --from-beginning --max-messages 10 --json
      barnabas consume test --group readers --from-beginning
      barnabas consume test --offset -10 --exit-at-end
      barnabas consume test --from 2026-11-21T08:00 --to 2026-11-21T09:00
      barnabas consume test --from -15m --format timestamp,value
      barnabas consume test --partition 0 --offset -5 --timeout-ms 1000
      barnabas consume test --format '{partition}@{offset} {key}={value}'
      barnabas consume test --from-beginning --format timestamp,key,value | sort
      barnabas consume __consumer_offsets --partition 6 --offset earliest --format offsets
    """
    own = client_properties(properties, "--consumer-property")
    plan = make_plan(Place(**{"group": own.get("group_id"), **_given(place)}))
    options = {**_options(plan, isolation_level), **own}
    # --consumer-property auto.offset.reset=earliest means all records, as in Kafka.
    if isinstance(plan.start, Subscribed) and options["auto_offset_reset"] != "latest":
        plan = plan._replace(start=plan.start._replace(from_now=False))  # set by a property
    if plan.group is not None:
        options["group_id"] = plan.group
    try:
        layout = _layout(template, as_json)
        consumer = Consumer(servers, **{**client_options(), **options})
    except (BadFormat, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    printer = Printer(sys.stdout.buffer, layout)
    reason = _run(_print_all(consumer, plan, Limits(max_messages, timeout_ms), printer))
    printer.flush()
    click.echo(f"Processed a total of {printer.count} messages", err=True)
    # The consumer was a member of the group or needed no group, so its output is complete.
    if max_messages == 0 or plan.group is None or consumer.group_metadata().generation >= 0:
        return EXIT_OK
    if plan.is_own_group and reason:
        return EXIT_OK  # Ctrl-C is the usual end
    return _never_was_a_member(plan.group, reason or run_client(why_no_group(servers, plan.group)))


def _run(work: Coroutine[Any, Any, None]) -> str:
    """Run the work, and return why it ended early, or "". Ctrl-C is not an error, but the usual
    end.
    """
    try:
        run_client(work, None)
    except KeyboardInterrupt:
        return "it was interrupted before it joined"
    return ""


def _never_was_a_member(group: str, reason: str) -> int:
    complain("barnabas consume", f"never became a member of group {group!r}: {reason}")
    return EXIT_FAILURE


async def why_no_group(servers: str, group: str) -> str:
    """Return why a consumer never became a member, and what to do about it. This works with any
    Kafka-compatible broker, if the cluster can report the reason.
    """
    try:
        async with Admin(servers, default_api_timeout_ms=_WHY_MS) as admin:
            try:
                await admin.describe_groups([group])
            except CoordinatorNotAvailable as error:
                # Kafka's brokers do not report the reason.
                return str(error) if _FACTOR in str(error) else await suspicion(admin, error)
    except BarnabasError as error:
        return str(error)
    return "joining the group took longer than that; give it more time (--timeout-ms)"


async def suspicion(admin: Admin, error: BarnabasError) -> str:
    """Return the error, and its likely cause if there are fewer live brokers than replicas."""
    brokers = (await admin.describe_cluster()).brokers
    for broker in brokers:
        resource = ConfigResource(BROKER, str(broker.broker_id))
        for entry in await admin.describe_configs(resource, [_FACTOR]):
            if entry.value is not None and int(entry.value) > len(brokers):
                return (
                    f"{error}; {_FACTOR} is {entry.value} on broker {broker.broker_id}, but only "
                    f"{counted(len(brokers), 'live broker')}: start more, or lower it"
                )
    return str(error)


class Printer:
    """Writes records to standard output, escaped for a terminal, and counts them."""

    def __init__(self, output: BinaryIO, layout: Layout) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._layout = layout
        self.count = 0

    def show(self, records: list[Any]) -> None:
        layout = self._layout
        data = b"".join([layout(record) for record in records])
        self._output.write(printable_bytes(data) if self._is_terminal else data)
        self.count += len(records)

    def flush(self) -> None:
        self._output.flush()


async def _print_all(consumer: Consumer, plan: Plan, limits: Limits, printer: Printer) -> None:
    async with consumer:
        with Waiting(lambda: _event_awaited(consumer, plan)) as waiting:
            await go_to(consumer, plan.start)
            ends = Ends(consumer, plan.to_ms) if plan.has_end else None
            silence = Silence(consumer, limits.timeout_ms, JOIN_MS if plan.is_own_group else 0)
            while limits.max_messages is None or printer.count < limits.max_messages:
                if ends is not None and await ends.are_reached():
                    return
                wait_ms = silence.left_ms(_POLL_MS if ends is None else _POLL_AT_END_MS)
                if wait_ms <= 0:
                    return
                records = await consumer.poll(wait_ms)
                if records:
                    silence.on_record()
                    waiting.end()
                    if ends is not None:
                        await ends.look_up()
                _show(consumer, records, _records_to_print(records, ends, limits, printer), printer)


def _event_awaited(consumer: Consumer, plan: Plan) -> str:
    """Name what the command is waiting for."""
    if plan.group is not None and consumer.group_metadata().generation < 0:
        return f"group {plan.group} to form (group.initial.rebalance.delay.ms)"
    return "records"


def _records_to_print(
    records: list[ConsumerRecord], ends: Ends | None, limits: Limits, printer: Printer
) -> list[ConsumerRecord]:
    """Return the records before the ends and within the limit."""
    wanted = records if ends is None else ends.before(records)
    if limits.max_messages is None:
        return wanted
    return wanted[: limits.max_messages - printer.count]


def _show(
    consumer: Consumer,
    records: list[ConsumerRecord],
    wanted: list[ConsumerRecord],
    printer: Printer,
) -> None:
    """Print the wanted records, and seek back to the rest, which must not count as read."""
    try:
        printer.show(wanted)
        printer.flush()
    except BaseException:
        give_back(consumer, records)
        raise
    # Usually, all records are wanted, so no set of positions is needed.
    if len(wanted) < len(records):
        shown = set(map(_place, wanted))
        give_back(consumer, (each for each in records if _place(each) not in shown))


def _place(record: ConsumerRecord) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset


def _given(place: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in place.items() if value is not None}


def _options(plan: Plan, isolation_level: str) -> dict[str, Any]:
    """Return the consumer's options. --consumer-property takes precedence."""
    return {
        "isolation_level": isolation_level,
        # A typing error must not create a topic.
        "allow_auto_create_topics": False,
        "max_poll_records": 5_000,
        "auto_offset_reset": "earliest" if plan.from_beginning else "latest",
        **({"enable_auto_commit": False} if plan.is_own_group else {}),
    }


def _layout(template: str | None, as_json: bool) -> Layout:
    if as_json:
        if template is not None:
            raise BadFormat("--json and --format cannot be combined")
        return json_layout
    return value_layout if template is None else template_layout(template)
