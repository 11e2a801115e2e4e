"""Implements `barnabas verifiable-consumer`, with the events of `kafka-verifiable-consumer.sh`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import click

from barnabas.cli.completion import group_ids
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import INT64, client_properties, one_topic, run_client, topic_name
from barnabas.cli.verifiable.events import Events, text
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.consumer.subscription import RebalanceListener
from barnabas.errors import BarnabasError, ConfigError
from barnabas.types import TopicPartition

_POLL_MS = 200


@click.command("verifiable-consumer")
@topic_name
@click.option(
    "--group-id",
    required=True,
    metavar="NAME",
    shell_complete=group_ids,
    help="The consumer's group.",
)
@click.option(
    "--group-instance-id", metavar="ID", help=("The instance id, which makes it a static member.")
)
@click.option("--max-messages", type=INT64, metavar="N", help="End after N; default: at Ctrl-C.")
@click.option("--session-timeout", type=INT64, default=30_000, show_default=True, metavar="MS")
@click.option("--verbose", is_flag=True, help="Print each record as well.")
@click.option("--enable-autocommit", is_flag=True, help="Commit periodically, not after each poll.")
@click.option(
    "--reset-policy",
    type=click.Choice(("earliest", "latest", "none")),
    default="earliest",
    show_default=True,
    help="Where the group starts without a committed offset.",
)
@click.option(
    "--assignment-strategy", metavar="NAME", help="range, roundrobin, sticky, cooperative-sticky."
)
@click.option(
    "--consumer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any consumer config, such as fetch.max.wait.ms=100; may be repeated.",
)
@bootstrap_server
def verifiable_consumer(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    group_id: str,
    group_instance_id: str | None,
    max_messages: int | None,
    session_timeout: int,
    verbose: bool,
    enable_autocommit: bool,
    reset_policy: str,
    assignment_strategy: str | None,
    properties: tuple[str, ...],
    servers: str,
) -> int:
    """Consume as a member of a group, and print each event as a line of JSON.

    The events are those of Kafka's tool: startup_complete, partitions_assigned and
    partitions_revoked, records_consumed and offsets_committed for each poll, shutdown_complete.

    \b
    Examples:
      barnabas verifiable-consumer test --group-id g --max-messages 1000
      barnabas verifiable-consumer test --group-id g --verbose --reset-policy latest
    """
    topic = one_topic(topic_argument, topic_option)
    options: dict[str, Any] = {
        "group_id": group_id,
        "group_instance_id": group_instance_id,
        "session_timeout_ms": session_timeout,
        "enable_auto_commit": enable_autocommit,
        "auto_offset_reset": reset_policy,
        "partition_assignment_strategy": assignment_strategy,
    }
    options = {name: value for name, value in options.items() if value is not None}
    options |= client_properties(properties, "--consumer-property")
    try:
        consumer = Consumer(servers, **{**client_options(), **options})
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    reading = _Reading(consumer, max_messages, commits=not enable_autocommit, verbose=verbose)
    run_client(reading.run(topic), None)
    return EXIT_OK


class _Rebalances(RebalanceListener):
    """Prints assigned and revoked partitions."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._events.write("partitions_assigned", partitions=_names(partitions))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._events.write("partitions_revoked", partitions=_names(partitions))


class _Reading:
    """Represents one run of the consumer, with its events."""

    def __init__(
        self, consumer: Consumer, max_messages: int | None, *, commits: bool, verbose: bool
    ) -> None:
        self._consumer = consumer
        self._left = max_messages
        self._commits = commits
        self._verbose = verbose
        self._events = Events()

    async def run(self, topic: str) -> None:
        with self._events.until_stopped():
            async with self._consumer as consumer:
                consumer.subscribe([topic], _Rebalances(self._events))
                while self._left != 0 and not self._events.stopping.is_set():
                    records = await consumer.poll(_POLL_MS)
                    if records:
                        await self._on_consumed(
                            records if self._left is None else records[: self._left]
                        )
                    # A poll with buffered records does not wait, but the loop must run to handle
                    # signals.
                    await asyncio.sleep(0)

    async def _on_consumed(self, records: Sequence[ConsumerRecord]) -> None:
        if self._left is not None:
            self._left -= len(records)
        stretches: dict[TopicPartition, list[int]] = {}
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            stretches.setdefault(place, []).append(record.offset)
            if self._verbose:
                self._events.write(
                    "record_data",
                    key=text(record.key),
                    value=text(record.value),
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                )
        self._events.write(
            "records_consumed",
            count=len(records),
            partitions=[
                {
                    "topic": name.topic,
                    "partition": name.partition,
                    "count": len(offsets),
                    "minOffset": offsets[0],
                    "maxOffset": offsets[-1],
                }
                for name, offsets in stretches.items()
            ],
        )
        # Commit synchronously after each poll, like Kafka's tool without --enable-autocommit.
        if self._commits:
            await self._commit({name: offsets[-1] + 1 for name, offsets in stretches.items()})

    async def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        shown = [
            {"topic": name.topic, "partition": name.partition, "offset": offset}
            for name, offset in offsets.items()
        ]
        try:
            await self._consumer.commit_sync(offsets)
        except BarnabasError as error:
            self._events.write("offsets_committed", offsets=shown, success=False, error=str(error))
        else:
            self._events.write("offsets_committed", offsets=shown, success=True)


def _names(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": name.topic, "partition": name.partition} for name in partitions]
