"""Implements `barnabas perf produce`, which works and prints like `kafka-producer-perf-test.sh`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from barnabas.cli.complaint import complain, explain
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values, one_topic, run_client, topic_name
from barnabas.cli.perf.latency import Latencies
from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.producer.batch import ProducerBatch, ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas.errors import BarnabasError, ConfigError, TopicAlreadyExists

_EXIT_INTERRUPTED = 130  # a shell's exit code for an interrupted process
_PAYLOAD_BLOCK_BYTES = 1 << 20  # beyond the look-back of any supported codec
_LETTERS = bytes(ord("A") + number % 26 for number in range(256))


class Plan(NamedTuple):
    """Specifies what to send, how fast, and how often to report."""

    topic: str
    records: int
    size_bytes: int
    per_second: float
    """Records per second, or -1 for as many as possible."""
    interval_s: float
    """The time between report lines."""


class Sending:
    """Tracks the outcomes of records, and reports them during sending."""

    def __init__(self, plan: Plan, now_s: float) -> None:
        self.total = Latencies()
        self.failed = 0
        self.first_error: BarnabasError | None = None
        self.began_s = now_s
        self._plan = plan
        self._window = Latencies()
        self._window_began_s = now_s
        self._sent_at: dict[ProducerBatch, list[float]] = {}

    @property
    def began_sending(self) -> bool:
        return bool(self._sent_at or self._window.count or self.total.count or self.failed)

    def on_sent(self, batch: ProducerBatch, now_s: float) -> None:
        times = self._sent_at.get(batch)
        if times is None:
            times = self._sent_at[batch] = []
            # Add one callback per batch, with its first record. One per record would take as much
            # time as the work that is measured.
            batch.when_done(lambda: self._on_done(batch))
        times.append(now_s)

    def _on_done(self, batch: ProducerBatch) -> None:
        now_s = time.perf_counter()
        times = self._sent_at.pop(batch)
        if batch.error is not None:
            self.failed += len(times)
            self.first_error = self.first_error or batch.error
            return
        self._window.add(times, now_s)
        if now_s - self._window_began_s >= self._plan.interval_s:
            click.echo(self._window.line(self._plan.size_bytes, now_s - self._window_began_s))
            self.total.merge(self._window)
            self._window, self._window_began_s = Latencies(), now_s

    def finish(self, now_s: float) -> str:
        self.total.merge(self._window)
        self._window = Latencies()
        return self.total.summary(self._plan.size_bytes, now_s - self.began_s)


@click.command()
@topic_name
@click.option(
    "--num-records",
    type=click.IntRange(1),
    required=True,
    metavar="N",
    help="How many records to send.",
)
@click.option(
    "--record-size", type=click.IntRange(0), default=100, show_default=True, metavar="BYTES"
)
@click.option(
    "--throughput",
    type=float,
    default=-1,
    metavar="N",
    help="At most this many records per second. The default of -1 means no limit.",
)
@click.option(
    "--producer-config",
    "--producer-props",
    "--producer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any producer config, such as linger.ms=5 or acks=1; may be repeated.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="Create the topic with this many partitions if it does not exist.",
)
@click.option(
    "--reporting-interval", type=click.IntRange(1), default=5000, show_default=True, metavar="MS"
)
@bootstrap_server
def produce(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    num_records: int,
    record_size: int,
    throughput: float,
    properties: tuple[str, ...],
    partitions: int | None,
    reporting_interval: int,
    servers: str,
) -> int:
    """Send records that consist of random letters, and report throughput and latency.

    The producer's defaults apply: acks=all, linger.ms=0. Ctrl-C ends the command with a summary.

    \b
    Examples:
      barnabas perf produce test --num-records 1000000 --record-size 100 --partitions 6
      barnabas perf produce test --num-records 60000 --throughput 1000
      barnabas perf produce test --num-records 1000000 --producer-config linger.ms=5 \\
          --producer-config batch.size=65536 --producer-config compression.type=lz4
    """
    topic = one_topic(topic_argument, topic_option)
    if throughput != -1 and not throughput > 0:
        raise click.UsageError(f"--throughput {throughput:g}: must be more than 0, or -1")
    settings = key_values(properties, "--producer-config")
    # Kafka's tool accepts the addresses only as a producer property.
    servers = settings.pop("bootstrap.servers", servers)
    options: dict[str, Any] = {name.replace(".", "_"): text for name, text in settings.items()}
    try:
        producer = Producer(servers, **{**client_options(), **options})
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    plan = Plan(topic, num_records, record_size, throughput, reporting_interval / 1000)
    if partitions is not None:
        run_client(_create(servers, topic, partitions))
    sending: list[Sending] = []
    ended_by: BarnabasError | None = None
    code = EXIT_OK
    try:
        run_client(_send_all(producer, plan, sending), None)
    except KeyboardInterrupt:
        code = _EXIT_INTERRUPTED
    except BarnabasError as error:
        ended_by = error
    return _report(sending, ended_by, code)


def _report(sending: list[Sending], ended_by: BarnabasError | None, code: int) -> int:
    """Report any failures, and return the exit code."""
    for each in sending:
        if each.failed:
            assert each.first_error is not None
            problem = f"{counted(each.failed, 'record')} failed: {explain(each.first_error)}"
            complain("barnabas perf produce", problem)
            code = code or EXIT_FAILURE
    if ended_by is not None:
        complain("barnabas perf produce", ended_by)
        code = EXIT_FAILURE
    return code


async def _send_all(producer: Producer, plan: Plan, sending: list[Sending]) -> None:
    """Send all records, and print the summary however sending ends. `sending` is filled once it
    starts.
    """
    now = time.perf_counter  # the loop's clock may advance in whole milliseconds
    payloads = _payloads(plan.size_bytes)
    async with producer:
        report = Sending(plan, now())
        sending.append(report)
        try:
            for number in range(plan.records):
                if plan.per_second > 0:
                    # Schedule from the start, to make up for delays and keep the average rate
                    # correct.
                    early_s = report.began_s + number / plan.per_second - now()
                    if early_s > 0:
                        await asyncio.sleep(early_s)
                sent_at_s = now()
                record = ProducerRecord(plan.topic, next(payloads))
                delivery = await producer.send_record(record)
                report.on_sent(delivery.batch, sent_at_s)
            await producer.flush()
        finally:
            # If the topic does not exist, nothing was sent, so do not add a summary of zeros to the
            # error.
            if report.began_sending:
                click.echo(report.finish(now()))


def _payloads(size_bytes: int) -> Iterator[bytes]:
    """Yield values of random letters as slices of one block, so that creating them costs
    nothing."""
    block = os.urandom(max(_PAYLOAD_BLOCK_BYTES, 2 * size_bytes)).translate(_LETTERS)
    last = len(block) - size_bytes
    at = 0
    while True:
        yield block[at : at + size_bytes]
        at += size_bytes + 1
        if at > last:
            at -= last


async def _create(servers: str, topic: str, partitions: int) -> None:
    async with Admin(servers, **client_options()) as admin:
        try:
            await admin.create_topics([NewTopic(topic, partitions)])
        except TopicAlreadyExists:
            return
