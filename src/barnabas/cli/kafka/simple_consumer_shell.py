"""Implements `kafka-simple-consumer-shell.sh`, which existed before Kafka 2.0 and reads one
partition.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

import click

from barnabas.cli.kafka.formatters import DEFAULT, is_default, layout_of, template_of
from barnabas.cli.kafka.message_layout import Layout
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import ZOOKEEPER, Line, NotCovered, Tool, at_servers, servers
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values, run_client
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.errors import UnknownTopicOrPartition
from barnabas.types import TopicPartition

_POLL_MS = 1_000
_AT_END_MS = 100
_MOST = 2**31 - 1
_EARLIEST, _LATEST = -2, -1
_STARTS = {_EARLIEST: "earliest", _LATEST: "latest"}


def _partition(given: Given) -> TopicPartition:
    """Return the partition. Raises BadCommandLine or NotCovered."""
    if "bootstrap-server" not in given:
        raise BadCommandLine('Missing required argument "[broker-list]": add --broker-list')
    # Kafka 1.1 could read from any replica, as a debugging consumer. The default is -1, the leader.
    if given.number("replica") not in (None, -1):
        raise NotCovered(
            f"--replica {given.text('replica')}: records are read from the partition's leader, "
            "and other replicas have the same records; leave it out"
        )
    number = given.number("partition", 0)
    return TopicPartition(given.required_text("topic"), 0 if number is None else number)


def _offset(given: Given) -> int:
    """Return the offset to start at. -1 means the end, and -2 the start. Raises BadCommandLine."""
    offset = given.number("offset", -(2**63), 2**63 - 1)
    if offset is None:
        return _EARLIEST
    if offset < _EARLIEST:
        raise BadCommandLine(f"Invalid starting offset: {offset}; the minimum is -2, the beginning")
    return offset


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    topic, number = _partition(given)
    offset = _offset(given)
    line = ["consume", topic, "--partition", str(number)]
    line += ["--offset", _STARTS.get(offset, str(offset))]
    name = given.text("formatter") or DEFAULT
    if not is_default(name):
        line += ["--format", template_of(name)]
    # No equivalent of the default formatter's properties is certain to produce the same output.
    elif "property" in given:
        raise NotCovered("--property: choose the parts of a line with --format; leave it out")
    most = given.number("max-messages")
    if most is not None and most < _MOST:
        line += ["--max-messages", str(max(most, 0))]
    if "no-wait-at-logend" in given:
        line.append("--exit-at-end")
    return [[*line, *at_servers(given)]]


def run(given: Given) -> int:
    """Print the partition's records, and wait for more."""
    name, offset = _partition(given), _offset(given)
    properties = key_values(given.texts("property"), "--property")
    layout = layout_of(given.text("formatter") or DEFAULT, properties)
    options: dict[str, Any] = {
        "client_id": given.text("clientId") or "SimpleConsumerShell",
        "max_partition_fetch_bytes": given.number("fetchsize", 1) or 1_048_576,
        "fetch_max_wait_ms": given.number("max-wait-ms", 0) or _POLL_MS,
        "allow_auto_create_topics": False,
        # An offset out of range is an error, because the tool must not silently start elsewhere.
        "auto_offset_reset": "none",
    }
    click.echo(
        "WARNING: SimpleConsumerShell is deprecated; kafka-console-consumer.sh --partition reads "
        "one partition as well",
        err=True,
    )
    shell = _Shell(Consumer(servers(given), **options), given, sys.stdout.buffer, layout)
    try:
        return run_client(shell.print_all(name, offset))
    except KeyboardInterrupt:
        return EXIT_OK  # the usual end
    finally:
        sys.stdout.flush()


class _Shell:
    """Represents one run of the shell for one partition."""

    def __init__(self, consumer: Consumer, given: Given, output: BinaryIO, layout: Layout) -> None:
        most = given.number("max-messages")
        self._left = _MOST if most is None else most
        self._consumer = consumer
        self._output = output
        self._layout = layout
        self._prints_offsets = "print-offsets" in given
        self._ends_at_end = "no-wait-at-logend" in given
        self._skips_errors = "skip-message-on-error" in given

    async def print_all(self, name: TopicPartition, offset: int) -> int:
        """Print records up to the limit or the end of the log, and return the exit code."""
        async with self._consumer as consumer:
            try:
                numbers = await consumer.partitions_for(name.topic)
            except UnknownTopicOrPartition:
                click.echo(f"Error: no valid topic metadata for topic: {name.topic}", err=True)
                return EXIT_FAILURE
            if name.partition not in numbers:
                click.echo(
                    f"Error: partition {name.partition} does not exist for topic {name.topic}",
                    err=True,
                )
                return EXIT_FAILURE
            await self._go_to(name, offset)
            while self._left > 0:
                records = await consumer.poll(_AT_END_MS if self._ends_at_end else _POLL_MS)
                self._show(records)
                # An empty poll may just mean that the leader was slow, so look up the end before
                # stopping.
                if not records and await self._is_at_end(name):
                    return EXIT_OK
        return EXIT_OK

    async def _go_to(self, name: TopicPartition, offset: int) -> None:
        self._consumer.assign([name])
        if offset == _EARLIEST:
            await self._consumer.seek_to_beginning(name)
        elif offset == _LATEST:
            await self._consumer.seek_to_end(name)
        else:
            self._consumer.seek(name, offset)

    async def _is_at_end(self, name: TopicPartition) -> bool:
        if not self._ends_at_end:
            return False
        position = await self._consumer.position(name)
        if position != (await self._consumer.end_offsets([name]))[name]:
            return False  # `poll` has had no response from the leader yet
        click.echo(
            f"Terminating. Reached the end of partition ({name.topic}, {name.partition}) at "
            f"offset {position}"
        )
        return True

    def _show(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records[: self._left]:
            if self._prints_offsets:
                # Print this before the record, as Kafka 1.1 does.
                self._output.write(b"next offset = %d\n" % (record.offset + 1))
            try:
                self._output.write(self._layout(record))
            except BadCommandLine:
                if not self._skips_errors:
                    raise
                continue
            self._left -= 1
        self._output.flush()


TOOL = Tool(
    "A low-level tool for fetching data directly from a particular replica.",
    (
        *flags("no-wait-at-logend print-offsets skip-message-on-error"),
        *values(
            "bootstrap-server=HOST:PORT clientId=ID fetchsize=BYTES formatter=CLASS "
            "max-messages=N max-wait-ms=MS offset=OFFSET partition=N property=NAME=VALUE "
            "replica=N topic=TOPIC"
        ),
    ),
    explain,
    run,
    {"zookeeper": ZOOKEEPER},
    {"broker-list": "bootstrap-server"},
)
