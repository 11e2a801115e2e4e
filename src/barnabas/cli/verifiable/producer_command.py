"""Implements `barnabas verifiable-producer`, with the events of `kafka-verifiable-producer.sh`."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import click

from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT64, client_properties, one_topic, run_client, topic_name
from barnabas.cli.verifiable.events import Events, text
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock
from barnabas.errors import BarnabasError, ConfigError

_PAUSE_MS = 5  # between checks of the clock, with --throughput


class Numbers(NamedTuple):
    """Builds the records to send: 0, 1, 2, and so on."""

    topic: str
    max_messages: int | None
    throughput: int | None  # a second
    prefix: str | None
    keys: int | None  # counts from 0 up to this number, repeatedly
    create_time_ms: int | None  # of the first record; each later one adds a millisecond

    def value(self, number: int) -> bytes:
        return f"{number}".encode() if self.prefix is None else f"{self.prefix}.{number}".encode()

    def key(self, number: int) -> bytes | None:
        return None if self.keys is None else f"{number % self.keys}".encode()


@click.command("verifiable-producer")
@topic_name
@click.option("--max-messages", type=INT64, metavar="N", help="End after N; default: at Ctrl-C.")
@click.option("--throughput", type=INT64, metavar="N", help="At most this many records per second.")
@click.option(
    "--acks", type=click.Choice(("all", "-1", "0", "1")), default="all", show_default=True
)
@click.option("--value-prefix", "prefix", metavar="TEXT", help="Values are TEXT.0, TEXT.1, ...")
@click.option(
    "--repeating-keys",
    "keys",
    type=click.IntRange(1),
    metavar="N",
    help="Keys repeat from 0 to N - 1; default: no keys.",
)
@click.option(
    "--message-create-time",
    "create_time_ms",
    type=INT64,
    metavar="MS",
    help="The first record's timestamp; each next one is a millisecond later.",
)
@click.option(
    "--producer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any producer config, such as linger.ms=5; may be repeated.",
)
@bootstrap_server
def verifiable_producer(
    topic_argument: str | None,
    topic_option: str | None,
    acks: str,
    properties: tuple[str, ...],
    servers: str,
    **numbers: Any,
) -> int:
    """Send 0, 1, 2, ... and print the outcome of each as a line of JSON.

    The events are those of Kafka's tool: startup_complete, producer_send_success or
    producer_send_error for each record, shutdown_complete, and tool_data. As with Kafka's tool,
    nothing is retried (retries=0), so that every error is visible. The exit code is 1 if a record
    failed.

    \b
    Examples:
      barnabas verifiable-producer test --max-messages 1000
      barnabas verifiable-producer test --throughput 100 --repeating-keys 10
    """
    wanted = Numbers(one_topic(topic_argument, topic_option), **numbers)
    options: dict[str, Any] = {"acks": acks, "retries": 0, "enable_idempotence": False}
    options |= client_properties(properties, "--producer-property")
    try:
        producer = Producer(servers, **{**client_options(), **options})
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    return run_client(_Sending(producer, wanted).run(), None)


class _Sending:
    """Represents one run of the producer, with its events."""

    def __init__(self, producer: Producer, wanted: Numbers) -> None:
        self._producer = producer
        self._wanted = wanted
        self._events = Events()
        self._clock = SystemClock()
        self._began_ms = self._clock.monotonic_ms()
        self._sent = 0
        self._acknowledged = 0

    async def run(self) -> int:
        with self._events.until_stopped():
            async with self._producer:
                await self._send_all()
        took_ms = max(self._clock.monotonic_ms() - self._began_ms, 1)
        throughput = self._wanted.throughput
        self._events.write(
            "tool_data",
            sent=self._sent,
            acked=self._acknowledged,
            target_throughput=-1 if throughput is None else throughput,
            avg_throughput=self._acknowledged * 1000 / took_ms,
        )
        return EXIT_OK if self._acknowledged == self._sent else EXIT_FAILURE

    async def _send_all(self) -> None:
        wanted = self._wanted
        while wanted.max_messages is None or self._sent < wanted.max_messages:
            if self._events.stopping.is_set():
                return
            number = self._sent
            # Compare with the schedule, which is counted from the start, because the run may be
            # ahead of it.
            if wanted.throughput is not None and number > self._due(wanted.throughput):
                await asyncio.sleep(_PAUSE_MS / 1000)
                continue
            self._sent += 1
            await self._send(number)

    def _due(self, throughput: int) -> float:
        return (self._clock.monotonic_ms() - self._began_ms) * throughput / 1000

    async def _send(self, number: int) -> None:
        wanted = self._wanted
        key, value = wanted.key(number), wanted.value(number)
        created_ms = None if wanted.create_time_ms is None else wanted.create_time_ms + number
        try:
            delivery = await self._producer.send(wanted.topic, value, key, timestamp_ms=created_ms)
        except BarnabasError as error:
            self._on_failed(key, value, error)
            return
        delivery.add_done_callback(lambda done: self._on_done(key, value, done))

    def _on_done(self, key: bytes | None, value: bytes, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self._on_failed(key, value, error)
            return
        self._acknowledged += 1
        place = delivery.result()
        self._events.write(
            "producer_send_success",
            key=text(key),
            value=text(value),
            offset=place.offset,
            topic=place.topic,
            partition=place.partition,
        )

    def _on_failed(self, key: bytes | None, value: bytes, error: BarnabasError) -> None:
        self._events.write(
            "producer_send_error",
            key=text(key),
            value=text(value),
            topic=self._wanted.topic,
            exception=type(error).__name__,
            message=str(error),
        )
