"""Implements `barnabas produce`, which works like `kafka-console-producer.sh` and also accepts
files and pipes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.cli.complaint import complain, explain
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT32, client_properties, one_topic, run_client, unescape
from barnabas.cli.progress import Progress
from barnabas.cli.records.block_sender import BlockSender, suits
from barnabas.cli.records.feed import FileFeed, LineFeed
from barnabas.cli.records.json_lines import JsonFormat
from barnabas.cli.records.lines import BadLine, LineFormat, parse_header
from barnabas.cli.records.shipment import Sending, Tally, send_all
from barnabas.client import arguments
from barnabas.client.errors import InvalidTopicName
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock
from barnabas.counted import counted
from barnabas.errors import BarnabasError, ConfigError

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_FILE = click.Path(dir_okay=False, allow_dash=True)


class Shape(NamedTuple):
    """Specifies what forms a record in the input: a line, a line of JSON or a whole file."""

    format: str
    delimiter: str | None
    key_separator: str | None
    headers_separator: str | None
    null_marker: str | None
    headers: tuple[str, ...]
    partition: int | None

    def feed(self, topic: str, paths: Sequence[str | None]) -> LineFeed | FileFeed:
        """Return the records in these files. Raises BadLine if options contradict each other."""
        headers = tuple(parse_header(header) for header in self.headers)
        if self.format != "lines":
            for option in ("key_separator", "headers_separator", "null_marker"):
                if getattr(self, option) is not None:
                    named = f"--{option.replace('_', '-')}"
                    raise BadLine(f"--format {self.format}: leave out {named}")
        if self.format == "file":
            if self.delimiter is not None:
                raise BadLine("--format file: leave out --delimiter: a file is one record")
            return FileFeed(
                paths,
                lambda value: ProducerRecord(topic, value, None, self.partition, None, headers),
            )
        delimiter = _separator(self.delimiter, "--delimiter") or b"\n"
        if self.format == "json":
            return LineFeed(paths, delimiter, JsonFormat(topic, self.partition, headers).record)
        lines = LineFormat(
            topic,
            self.partition,
            _separator(self.key_separator, "--key-separator"),
            _separator(self.headers_separator, "--headers-separator"),
            headers,
            None if self.null_marker is None else unescape(self.null_marker),
        )
        if lines.is_keyed:
            return LineFeed(paths, delimiter, split=lines.split)
        return LineFeed(paths, delimiter, None if lines.is_plain else lines.record)


@click.command()
@click.argument("topic_argument", metavar="[NAME]", required=False, shell_complete=topic_names)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=_FILE)
@click.option(
    "--topic", "topic_option", metavar="NAME", shell_complete=topic_names, help="The same as NAME."
)
@click.option(
    "--file",
    "paths",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="The same as FILE: read it instead of standard input, which is -; may be repeated.",
)
@click.option(
    "--format",
    type=click.Choice(("lines", "json", "file")),
    default="lines",
    show_default=True,
    help="A record is a line, a line of JSON as `consume --json` prints it, or a whole file.",
)
@click.option(
    "--delimiter", metavar="TEXT", help="Ends a line, such as \\0 or \\x1e; default: \\n or \\r\\n."
)
@click.option("--key-separator", metavar="TEXT", help="Separates the key from the value.")
@click.option(
    "--null-marker", metavar="TEXT", help="A key or value that is exactly this text is null."
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header for each record; may be repeated.",
)
@click.option(
    "--headers-separator",
    metavar="TEXT",
    help="Lines begin with NAME:VALUE,NAME:VALUE and this text; \\t is a tab.",
)
@click.option("--partition", type=INT32, metavar="N", help="Send all records to this partition.")
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
@click.option("--quiet", is_flag=True, help="Print only errors: no progress and no summary.")
@bootstrap_server
def produce(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    files: tuple[str, ...],
    topic_option: str | None,
    paths: tuple[str, ...],
    properties: tuple[str, ...],
    quiet: bool,
    servers: str,
    acks: str,
    compression_type: str,
    transactional_id: str | None,
    **shape: Any,
) -> int:
    """Send each line of standard input, or of files, as one record.

    A malformed line ends the command, which reports its place and sends the lines before it.

    \b
    Examples:
      echo "hello" | barnabas produce test
      barnabas produce test access.log --compression-type zstd
      printf 'k1:v1\\nk2:v2\\n' | barnabas produce --topic test --key-separator :
      find . -print0 | barnabas produce test --delimiter '\\0'
      echo '{"key": "k", "value": null}' | barnabas produce test --format json
      barnabas consume a --from-beginning --json --exit-at-end | barnabas produce b --format json
      barnabas produce pictures *.png --format file
      barnabas produce test --transactional-id nightly --file lines.txt
    """
    # With --topic, the first argument is also a file.
    if topic_option is not None and topic_argument not in (None, topic_option):
        topic_argument, files = None, (str(topic_argument), *files)
    topic = one_topic(topic_argument, topic_option)
    names = [*files, *paths]
    own = client_properties(properties, "--producer-property")
    options: dict[str, Any] = {
        # Lines arrive faster than requests are sent, so a few milliseconds fill a batch.
        "linger_ms": 5,
        "batch_size": 65_536,
        "acks": acks,
        "compression_type": compression_type,
        **({} if transactional_id is None else {"transactional_id": transactional_id}),
        **own,
    }
    records = Shape(**shape)
    try:
        arguments.topic_name(topic)
        feed = records.feed(topic, names or [None])
        producer = Producer(servers, **{**client_options(), **options})
    except (BadLine, ConfigError, InvalidTopicName) as error:
        raise click.UsageError(str(error)) from error
    quick = None
    if suits(options, own):
        quick = BlockSender(producer, topic, records.partition, options)
    total_bytes = _total_bytes(names)  # first, to report a missing file at once
    in_transaction = bool(options.get("transactional_id"))
    sending = Sending(producer, topic, records.partition, feed, in_transaction, quick)
    is_typed = (not names or "-" in names) and sys.stdin.isatty()
    if is_typed and not quiet:
        click.echo("Each line is a record; press Ctrl-D to end.", err=True)
    return _produce(sending, Progress(total_bytes, wanted=not quiet and not is_typed), quiet)


def _produce(sending: Sending, progress: Progress, quiet: bool) -> int:
    """Send all records, report the outcomes, and return the exit code."""
    tally = Tally()
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    problem: str | None = None
    try:
        with progress:
            run_client(send_all(sending, tally, progress), None)
    except (BarnabasError, OSError) as error:
        problem = explain(error)
    except KeyboardInterrupt:
        problem = "interrupted"
    # A transaction is all or nothing, so abort acknowledged records together with the rest.
    if problem is not None and sending.in_transaction:
        problem = f"nothing was committed: {problem}"
    elif tally.failed:
        assert tally.first_error is not None
        failed = counted(tally.failed, "record")
        were = "was" if tally.failed == 1 else "were"
        problem = f"{failed} {were} not acknowledged: {explain(tally.first_error)}"
    if problem is not None:
        if tally.delivered and not sending.in_transaction:
            were = "was" if tally.delivered == 1 else "were"
            problem += f"; {counted(tally.delivered, 'record')} {were} acknowledged"
        complain("barnabas produce", problem)
        return EXIT_FAILURE
    if not quiet:
        click.echo(tally.summary(sending.topic, clock.monotonic_ms() - began_ms), err=True)
    return EXIT_OK


def _total_bytes(names: Sequence[str]) -> int | None:
    """Return the total size of these files, or None if any is not a regular file. Raises
    OSError."""
    found = [
        os.fstat(sys.stdin.fileno()) if name == "-" else Path(name).stat()
        for name in names or ["-"]
    ]
    if not all(stat.S_ISREG(each.st_mode) for each in found):
        return None
    return sum(each.st_size for each in found)


def _separator(text: str | None, option: str) -> bytes | None:
    if text is None:
        return None
    separator = unescape(text)
    if not separator:
        raise BadLine(f"{option} is empty")
    return separator
