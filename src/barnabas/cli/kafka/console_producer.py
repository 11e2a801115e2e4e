"""Implements `kafka-console-producer.sh`, which sends each line of standard input as a record.

As in Kafka, a rejected record is reported on standard error, but does not change the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import click

from barnabas.cli.kafka.java_errors import java_text
from barnabas.cli.kafka.options import BadCommandLine, Given, Option, flags, values
from barnabas.cli.kafka.tool import (
    OLD_SERVERS,
    ZOOKEEPER,
    Line,
    NotCovered,
    Retired,
    Tool,
    at_servers,
    file_configs,
    no_client_configs,
    option_words,
    own_options,
    servers,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values, run_client
from barnabas.cli.records.input import Input
from barnabas.cli.records.lines import LineSplitter
from barnabas.client.config import ClientConfig, ProducerConfig
from barnabas.client.producer.batch import ProducerBatch, ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.config import load_properties
from barnabas.errors import BarnabasError

_UNUSED = ("bootstrap.servers", "key.serializer", "value.serializer")
_READER = "LineMessageReader"
_CONFIGS = {
    # These two options set the same config. The later one wins, because in Kafka,
    # --max-partition-memory-bytes replaces --batch-size.
    "batch-size": "batch.size",
    "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory",
    "max-partition-memory-bytes": "batch.size",
    "message-send-max-retries": "retries",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "request-timeout-ms": "request.timeout.ms",
    "retry-backoff-ms": "retry.backoff.ms",
    "timeout": "linger.ms",
}
"""Maps each option to a producer config."""


class NoKey(BarnabasError):
    """Raised if a line lacks the separator after its key or headers."""


class LineReader(NamedTuple):
    """Converts a line to a record, as configured by the properties of Kafka's LineMessageReader."""

    topic: str
    key_separator: bytes | None = None  # None if lines have no key
    headers_delimiter: bytes | None = None  # None if lines have no headers
    headers_separator: bytes = b","
    header_separator: bytes = b":"
    null_marker: bytes | None = None
    ignores_errors: bool = False

    def record(self, line: bytes, number: int) -> ProducerRecord:
        """Build the record for a line. `number` is the line's number, starting at 1. Raises
        NoKey.
        """
        headers: tuple[tuple[str, bytes | None], ...] = ()
        rest = line
        if self.headers_delimiter is not None:
            # Headers come first, followed by the key and the value (KIP-798).
            own, found, behind = rest.partition(self.headers_delimiter)
            self._require(found, "headers delimiter", number, line)
            if found:
                headers, rest = tuple(self._headers(own, number)), behind
        if self.key_separator is None:
            return ProducerRecord(self.topic, self._null(rest), headers=headers)
        key, found, value = rest.partition(self.key_separator)
        self._require(found, "key separator", number, line)
        # With ignore.error, a line without a separator consists of only a value.
        if not found:
            return ProducerRecord(self.topic, self._null(rest), headers=headers)
        return ProducerRecord(self.topic, self._null(value), self._null(key), headers=headers)

    def _headers(self, text: bytes, number: int) -> Iterator[tuple[str, bytes | None]]:
        # A null marker in place of the headers means that there are none.
        if self._null(text) is None:
            return
        for pair in text.split(self.headers_separator):
            name, found, value = pair.partition(self.header_separator)
            self._require(found, "header key separator", number, pair)
            if found:
                yield name.decode("utf-8", "replace"), self._null(value)

    def _require(self, found: bytes, what: str, number: int, line: bytes) -> None:
        if not found and not self.ignores_errors:
            text = line.decode("utf-8", "backslashreplace")
            raise NoKey(f"No {what} found on line number {number}: '{text}'")

    def _null(self, data: bytes) -> bytes | None:
        return None if data == self.null_marker else data


def _properties(given: Given) -> dict[str, str]:
    """Return the reader's properties from the file and the command line."""
    path = given.text("reader-config")
    own = {} if path is None else load_properties(path)
    return {**own, **key_values(given.texts("property"), "--property")}


def _reader(given: Given) -> LineReader:
    """Return the reader. Raises BadCommandLine, or NotCovered for a custom reader class."""
    named_class = given.text("line-reader")
    if named_class is not None and not named_class.endswith(_READER):
        raise NotCovered(
            f"--line-reader {named_class}: Java classes cannot be run; leave the option out"
        )
    own = _properties(given)

    def separator(name: str, default: str) -> bytes:
        text = own.get(name, default)
        if not text:
            raise BadCommandLine(f"--property {name}=: the separator is empty")
        return text.encode("utf-8", "surrogateescape")

    marker = own.get("null.marker")
    reader = LineReader(
        # parse.key and parse.headers each enable a part of the line. The separator of each part has
        # a default.
        given.required_text("topic"),
        separator("key.separator", "\t") if _is_set(own, "parse.key") else None,
        separator("headers.delimiter", "\t") if _is_set(own, "parse.headers") else None,
        separator("headers.separator", ","),
        separator("headers.key.separator", ":"),
        None if marker is None else marker.encode("utf-8", "surrogateescape"),
        _is_set(own, "ignore.error"),
    )
    # Kafka also rejects other pairs of equal separators. They are harmless, because the first match
    # is used.
    if reader.headers_separator == reader.header_separator:
        raise BadCommandLine("headers.separator and headers.key.separator may not be equal")
    return reader


def _is_set(own: Mapping[str, str], name: str) -> bool:
    return own.get(name, "").strip().lower() == "true"


def _compression(given: Given) -> str:
    # Kafka's help: "If specified without value, then it defaults to 'gzip'".
    return (given.text("compression-codec") or "gzip") if "compression-codec" in given else "none"


def _configs(given: Given) -> dict[str, str]:
    """Return the configs from the file, the options and --producer-property. Each of these sources
    overrides the ones before it.
    """
    of_options = {}
    for option, name in _CONFIGS.items():
        number = given.number(option, 0, 2**63 - 1)
        if number is not None:
            of_options[name] = str(number)
    acks = given.text("request-required-acks")
    if acks is not None:
        of_options["acks"] = acks
    if "compression-codec" in given:
        of_options["compression.type"] = _compression(given)
    of_line = key_values(given.texts("producer-property"), "--producer-property")
    return {**file_configs(given, "producer.config"), **of_options, **of_line}


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    reader = _reader(given)
    no_client_configs(given, "producer.config")
    # Our command can separate headers only with Kafka's default separators.
    own = {"headers.separator": ",", "headers.key.separator": ":", **_properties(given)}
    if "ignore.error" in own:
        raise NotCovered("--property ignore.error: our command has no such option")
    if (own["headers.separator"], own["headers.key.separator"]) != (",", ":"):
        raise NotCovered("our command separates headers by , and : only")
    line = ["produce", reader.topic]
    if reader.key_separator is not None:
        line += ["--key-separator", _escape(reader.key_separator)]
    if reader.headers_delimiter is not None:
        line += ["--headers-separator", _escape(reader.headers_delimiter)]
    if reader.null_marker is not None:
        line += ["--null-marker", _escape(reader.null_marker)]
    if "compression-codec" in given:
        line += ["--compression-type", _compression(given)]
    line += option_words(given, "request-required-acks", "acks")
    for option, name in _CONFIGS.items():
        if option in given:
            line += ["--producer-property", f"{name}={given.text(option)}"]
    line += option_words(given, "producer-property")
    return [[*line, *at_servers(given)]]


def _escape(separator: bytes) -> str:
    text = separator.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n")


def run(given: Given) -> int:
    """Send each line of standard input as a record."""
    reader = _reader(given)
    address = servers(given)
    own = own_options(
        _configs(given), (*ClientConfig._fields, *ProducerConfig._fields), _UNUSED, "producer"
    )
    options: dict[str, Any] = {"client_id": "console-producer", "linger_ms": 5, **own}
    producer = Producer(address, **options)
    try:
        with Input(None) as source:
            run_client(_send(producer, reader, source, waits="sync" in given))
    except NoKey as error:
        click.echo(f"org.apache.kafka.common.KafkaException: {error}", err=True)
        return EXIT_FAILURE
    return EXIT_OK


async def _send(producer: Producer, reader: LineReader, source: Input, *, waits: bool) -> None:
    splitter = LineSplitter()
    number = 0
    async with producer:
        while True:
            # As in Kafka, there is no prompt if the input is a pipe.
            if source.is_terminal:
                click.echo(">", nl=False)
            block = await source.read()
            for line in splitter.lines(block) if block else splitter.last():
                number += 1
                await _send_line(producer, reader.record(line, number), waits=waits)
            if not block:
                return


async def _send_line(producer: Producer, record: ProducerRecord, *, waits: bool) -> None:
    """Send a record. An error is reported on standard error, and does not stop the tool."""
    try:
        delivery = await producer.send_record(record)
        # With --sync, each record must be acknowledged before the next one is sent.
        if waits:
            await delivery
        # Add one callback per batch, with its first record. The records of a batch succeed or fail
        # together.
        elif delivery.index == 0:
            delivery.batch.when_done(lambda: _report(delivery.batch))
    except BarnabasError as error:
        _complain(record.topic, 1, error)


def _report(batch: ProducerBatch) -> None:
    if batch.error is not None:
        _complain(batch.topic_partition.topic, batch.record_count, batch.error)


def _complain(topic: str, count: int, error: BarnabasError) -> None:
    what = "message" if count == 1 else f"{count} messages"
    click.echo(f"ERROR Error when sending {what} to topic {topic}: {java_text(error)}", err=True)


TOOL = Tool(
    "This tool helps to read data from standard input and publish it to Kafka.",
    (
        *flags("sync"),
        *values(
            "batch-size=BYTES bootstrap-server=HOST:PORT line-reader=CLASS max-block-ms=MS "
            "max-memory-bytes=BYTES max-partition-memory-bytes=BYTES message-send-max-retries=N "
            "metadata-expiry-ms=MS producer-property=NAME=VALUE producer.config=FILE "
            "property=NAME=VALUE reader-config=FILE request-required-acks=ACKS "
            "request-timeout-ms=MS retry-backoff-ms=MS socket-buffer-size=BYTES timeout=MS "
            "topic=TOPIC"
        ),
        Option("compression-codec", "CODEC", is_value_optional=True),
    ),
    explain,
    run,
    {
        "zookeeper": ZOOKEEPER,
        "new-producer": Retired("there is only the new producer: leave the option out", "", False),
        "queue-size": Retired("Kafka removed it with the old producer: leave it out", ""),
        "queue-enqueuetimeout-ms": Retired(
            "Kafka removed it with the old producer", "max-block-ms"
        ),
        "key-serializer": Retired("lines are sent as bytes: leave the option out", ""),
        "value-serializer": Retired("lines are sent as bytes: leave the option out", ""),
    },
    OLD_SERVERS,
)
