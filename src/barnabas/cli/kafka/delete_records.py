"""Implements `kafka-delete-records.sh`, which deletes the records below the offsets in a file."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.kafka.java_errors import java_text
from barnabas.cli.kafka.options import Given, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    ZOOKEEPER,
    Line,
    Tool,
    admin_of,
    at_servers,
    option_words,
)
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.records.delete_command import parse_offsets
from barnabas.client.admin.admin import Admin
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    given.need("offset-json-file")
    return [["records", "delete", *option_words(given, "offset-json-file"), *at_servers(given)]]


def run(given: Given) -> int:
    """Delete the records. As in Kafka, an error is printed on standard output, and the exit code is
    0.
    """
    path = Path(given.required_text("offset-json-file"))
    offsets = parse_offsets(path.read_text(encoding="utf-8", errors="replace"))
    # Read the file first. If it is malformed, the tool must not print that the deletion has
    # started.
    admin = admin_of(given)
    click.echo("Executing records delete operation")
    outcomes = run_client(_delete(admin, offsets))
    click.echo("Records delete operation completed:")
    for name, outcome in outcomes.items():
        if isinstance(outcome, int):
            click.echo(f"partition: {name}\tlow_watermark: {outcome}")
        else:
            click.echo(f"partition: {name}\terror: {java_text(outcome)}")
    return EXIT_OK


async def _delete(
    admin: Admin, offsets: dict[TopicPartition, int]
) -> dict[TopicPartition, int | BarnabasError]:
    outcomes: dict[TopicPartition, int | BarnabasError] = {}
    async with admin:
        # Process partitions one at a time, so that a rejected one does not affect the others.
        for name, first in offsets.items():
            try:
                await admin.describe_topics([name.topic])  # fails fast for an unknown topic
                outcomes |= await admin.delete_records({name: first})
            except BarnabasError as error:
                outcomes[name] = error
    return outcomes


TOOL = Tool(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    values("bootstrap-server=HOST:PORT command-config=FILE offset-json-file=FILE"),
    explain,
    run,
    {"broker-list": BROKER_LIST, "zookeeper": ZOOKEEPER},
)
