"""Implements `barnabas records`, which works like `kafka-delete-records.sh`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from barnabas.cli.complaint import complain
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT32, as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

_OFFSET_MAX = 2**63 - 1
_END = -1
"""In place of an offset, means all records."""


class BadOffsets(BarnabasError):
    """Raised if the offset file is malformed; the message gives the reason."""


@command_group()
def records() -> None:
    """Delete the oldest records of partitions.

    \b
    Examples:
      barnabas records delete --topic test --partition 0 --offset 5
      barnabas records delete --offset-json-file offsets.json
    """


@records.command()
@click.option("--topic", metavar="NAME", shell_complete=topic_names)
@click.option("--partition", type=INT32, metavar="N")
@click.option(
    "--offset",
    type=click.IntRange(_END, _OFFSET_MAX),
    metavar="N",
    help="The offset of the first record to keep; -1: keep none.",
)
@click.option(
    "--offset-json-file",
    "path",
    type=click.Path(),
    metavar="FILE",
    help='Several at once: {"partitions": [{"topic": "test", "partition": 0, "offset": 5}]}.',
)
@as_json
@bootstrap_server
def delete(
    topic: str | None,
    partition: int | None,
    offset: int | None,
    path: str | None,
    as_json: bool,
    servers: str,
) -> int:
    """Delete the records before an offset; this cannot be undone.

    \b
    Examples:
      barnabas records delete --topic test --partition 0 --offset 5
      barnabas records delete --topic test --partition 0 --offset -1
      barnabas records delete --offset-json-file offsets.json
    """
    offsets = _offsets(topic, partition, offset, path)

    async def work() -> dict[TopicPartition, int | BarnabasError]:
        outcomes: dict[TopicPartition, int | BarnabasError] = {}
        async with Admin(servers, **client_options()) as admin:
            # Process partitions one at a time, so that an error in one does not hide the outcomes
            # of the others.
            for name, first in offsets.items():
                try:
                    await admin.describe_topics([name.topic])  # fails fast for an unknown topic
                    outcomes |= await admin.delete_records({name: first})
                except BarnabasError as error:
                    outcomes[name] = error
        return outcomes

    outcomes = run_client(work())
    starts = {name: start for name, start in outcomes.items() if isinstance(start, int)}
    if as_json:
        values = [{**name._asdict(), "log_start": start} for name, start in starts.items()]
        click.echo(json.dumps(values, indent=2))
    else:
        for name, start in starts.items():
            click.echo(f"partition: {name}\tlow_watermark: {start}")
    for outcome in outcomes.values():
        if isinstance(outcome, BarnabasError):
            complain("barnabas records delete", outcome)
    return EXIT_OK if len(starts) == len(outcomes) else EXIT_FAILURE


def _offsets(
    topic: str | None, partition: int | None, offset: int | None, path: str | None
) -> dict[TopicPartition, int]:
    """Return the offsets from the options or the file. Raises UsageError, BadOffsets or OSError."""
    given = [value is not None for value in (topic, partition, offset)]
    if path is not None:
        if any(given):
            raise click.UsageError(
                "--offset-json-file cannot be combined with --topic, --partition and --offset"
            )
        return parse_offsets(Path(path).read_text(encoding="utf-8", errors="replace"))
    if topic is None or partition is None or offset is None:
        raise click.UsageError("name the records: --topic, --partition and --offset, or a file")
    return {TopicPartition(topic, partition): offset}


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Return the new log start of each partition in Kafka's file. Raises BadOffsets."""
    try:
        content: Any = json.loads(text)
    except ValueError as error:
        raise BadOffsets(f"the file is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("version", 1) != 1:
        raise BadOffsets('the file does not have the form {"version": 1, "partitions": [...]}')
    entries = content.get("partitions")
    if not isinstance(entries, list) or not entries:
        raise BadOffsets("the file has no partitions")
    found: dict[TopicPartition, int] = {}
    for entry in entries:
        name, offset = _entry(entry)
        if name in found:
            raise BadOffsets(f"the file has partition {name} twice")
        found[name] = offset
    return found


def _entry(entry: Any) -> tuple[TopicPartition, int]:
    match entry:
        case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
            # JSON's true is also an int in Python.
            is_number = type(partition) is int and type(offset) is int
            if is_number and 0 <= partition < 2**31 and _END <= offset <= _OFFSET_MAX:
                return TopicPartition(topic, partition), offset
    raise BadOffsets(
        f"{json.dumps(entry)}: not a topic (text), a partition and an offset (numbers)"
    )
