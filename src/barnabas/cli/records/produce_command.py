"""`barnabas produce`: like `kafka-console-producer.sh`, for files and pipes as well."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import click

from barnabas.cli.complaint import complain, explain
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import (
    bootstrap_server,
    key_values,
    one_topic,
    run_client,
    topic_name,
    unescaped,
)
from barnabas.cli.progress import Progress
from barnabas.cli.records.input import Input
from barnabas.cli.records.lines import BadLine, LineFormat, LineSplitter, parse_header
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock
from barnabas.errors import BarnabasError, ConfigError

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Tally:
    """Counts of the records by outcome."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failed = 0
        self.read_bytes = 0
        self.first_error: BarnabasError | None = None

    def count(self, batch: ProducerBatch) -> None:
        if batch.error is None:
            self.delivered += batch.record_count
        else:
            self.failed += batch.record_count
            self.first_error = self.first_error or batch.error

    def summary(self, topic: str, took_ms: int) -> str:
        took_s = max(took_ms, 1) / 1000
        return (
            f"{self.delivered:,} records ({self.read_bytes:,} bytes) to {topic} "
            f"in {took_s:.2f} s, {self.delivered / took_s:,.0f} records/s"
        )


class Sending(NamedTuple):
    """What to send, by which producer, and how."""

    producer: Producer
    source: Input
    line_format: LineFormat
    in_transaction: bool


@click.command()
@topic_name
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Read this file instead of standard input.",
)
@click.option("--key-separator", metavar="TEXT", help="Separates the key from the value.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header for each record; repeatable.",
)
@click.option(
    "--headers-separator",
    metavar="TEXT",
    help="Lines begin with NAME:VALUE,NAME:VALUE and this text; \\t is a tab.",
)
@click.option("--partition", type=int, metavar="N", help="Send all records to this partition.")
@click.option("--compression-type", type=click.Choice(_CODECS), default="none", show_default=True)
@click.option(
    "--acks", type=click.Choice(("all", "-1", "0", "1")), default="all", show_default=True
)
@click.option(
    "--transactional-id",
    metavar="ID",
    help="Send all or nothing: one transaction, within transaction.timeout.ms (60000).",
)
@click.option(
    "--producer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any producer config, such as linger.ms=5; may be repeated.",
)
@click.option("--quiet", is_flag=True, help="No progress, no summary; errors only.")
@bootstrap_server
def produce(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    path: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    headers_separator: str | None,
    partition: int | None,
    compression_type: str,
    acks: str,
    transactional_id: str | None,
    properties: tuple[str, ...],
    quiet: bool,
    servers: str,
) -> int:
    """Send each line of standard input, or of a file, as one record.

    \b
    Examples:
      echo "hello" | barnabas produce test
      barnabas produce test --file access.log --compression-type zstd
      printf 'k1:v1\\nk2:v2\\n' | barnabas produce --topic test --key-separator :
      barnabas produce test --header source=cli < lines.txt
      barnabas produce test --transactional-id nightly --file lines.txt
      printf 'h:1,i:2\\tv\\n' | barnabas produce test --headers-separator '\\t'
    """
    topic = one_topic(topic_argument, topic_option)
    if partition is not None and partition < 0:
        raise click.UsageError(f"--partition {partition}: must be 0 or more")
    try:
        line_format = LineFormat(
            topic,
            partition,
            _separator(key_separator, "--key-separator"),
            _separator(headers_separator, "--headers-separator"),
            tuple(parse_header(header) for header in headers),
        )
        options: dict[str, Any] = {
            "linger_ms": 5,
            "batch_size": 65_536,
            "acks": acks,
            "compression_type": compression_type,
            **({} if transactional_id is None else {"transactional_id": transactional_id}),
            **key_values(properties, "--producer-property"),
        }
        options = {name.replace(".", "_"): value for name, value in options.items()}
        in_transaction = bool(options.get("transactional_id"))
        producer = Producer(servers, **options)
    except (BadLine, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    with Input(path) as source:
        sending = Sending(producer, source, line_format, in_transaction)
        return _produce(sending, quiet)


def _produce(sending: Sending, quiet: bool) -> int:
    """Send it all and report the outcome; the exit code."""
    source = sending.source
    tally = Tally()
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    if source.is_terminal and not quiet:
        click.echo("Each line is a record; Ctrl-D ends.", err=True)
    problem: str | None = None
    try:
        with Progress(source.size_bytes, wanted=not quiet and not source.is_terminal) as progress:
            run_client(_send_all(sending, tally, progress))
    except BarnabasError as error:
        problem = explain(error)
    except KeyboardInterrupt:
        problem = "interrupted"
    if problem is not None and sending.in_transaction:
        problem = f"nothing was committed: {problem}"
    elif tally.failed:
        assert tally.first_error is not None
        problem = f"{tally.failed:,} records were not acknowledged: {explain(tally.first_error)}"
    if problem is not None:
        if tally.delivered and not sending.in_transaction:
            problem += f"; {tally.delivered:,} records were acknowledged"
        complain("barnabas produce", problem)
        return EXIT_FAILURE
    if not quiet:
        click.echo(
            tally.summary(sending.line_format.topic, clock.monotonic_ms() - began_ms), err=True
        )
    return EXIT_OK


async def _send_all(sending: Sending, tally: Tally, progress: Progress) -> None:
    """Send every line up to the end, or to a malformed one; then wait for all outcomes.

    In a transaction it is all or nothing: if this ends early, the producer aborts at its close.
    """
    producer, source, line_format, in_transaction = sending
    splitter = LineSplitter()
    number = 0
    async with producer:
        if in_transaction:
            await producer.init_transactions()
            producer.begin_transaction()
        while True:
            block = await source.read()
            for line in splitter.lines(block) if block else splitter.last():
                number += 1
                delivery = await producer.send_record(line_format.record(line, number))
                if delivery.index == 0:
                    delivery.batch.when_done(partial(tally.count, delivery.batch))
            tally.read_bytes += len(block)
            progress.advance(len(block), tally.delivered)
            if not block:
                break
        if in_transaction:
            await producer.commit_transaction()


def _separator(text: str | None, option: str) -> bytes | None:
    if text is None:
        return None
    separator = unescaped(text)
    if not separator:
        raise BadLine(f"{option} is empty")
    return separator
