"""Implements `kafka-leader-election.sh`, which elects preferred or unclean leaders (KIP-460)."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.kafka.java_errors import java_text
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    ZOOKEEPER,
    Line,
    Tool,
    admin_of,
    at_servers,
    flag_words,
    option_words,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.partitions.reassign_plan import read_names
from barnabas.client.admin.partition_admin import PREFERRED, UNCLEAN
from barnabas.errors import ElectionNotNeeded, KafkaError
from barnabas.types import TopicPartition

_TYPES = {"preferred": PREFERRED, "unclean": UNCLEAN}


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    kind = _check(given)
    return [
        [
            *("elect-leaders", "--election-type", kind),
            *option_words(given, "topic"),
            *option_words(given, "partition"),
            *option_words(given, "path-to-json-file"),
            *flag_words(given, "all-topic-partitions"),
            *at_servers(given, "admin.config"),
        ]
    ]


def _check(given: Given) -> str:
    """Return the election type. Raises BadCommandLine."""
    # Kafka's converter ignores case.
    kind = given.required_text("election-type").lower()
    if kind not in _TYPES:
        raise BadCommandLine(f"--election-type {kind}: not one of {', '.join(_TYPES)}")
    given.one_of("topic", "all-topic-partitions", "path-to-json-file")
    if ("topic" in given) != ("partition" in given):
        raise BadCommandLine("Option partition is only allowed if topic is used, and the reverse")
    return kind


def run(given: Given) -> int:
    """Elect leaders, and return the exit code: 1 if any election failed."""
    kind = _check(given)
    names: list[TopicPartition] | None = None
    if "topic" in given:
        names = [TopicPartition(given.required_text("topic"), given.number("partition", 0) or 0)]
    elif "path-to-json-file" in given:
        path = Path(given.required_text("path-to-json-file"))
        names = read_names(path.read_text(encoding="utf-8", errors="replace"))
    # None means all partitions. The controller omits partitions that need no election (KIP-460).
    outcomes = run_client(_elect(given, _TYPES[kind], names))
    elected = [str(name) for name, error in outcomes.items() if error is None]
    # ELECTION_NOT_NEEDED is a success, because the wanted replica already leads.
    unneeded = [
        str(name) for name, error in outcomes.items() if isinstance(error, ElectionNotNeeded)
    ]
    what = f"leader election ({kind.upper()}) for partition"
    if elected:
        click.echo(f"Successfully completed {what}s {', '.join(elected)}")
    if unneeded:
        click.echo(f"Valid replica already elected for partitions {', '.join(unneeded)}")
    failed = 0
    for name, error in outcomes.items():
        if error is not None and not isinstance(error, ElectionNotNeeded):
            failed += 1
            click.echo(f"Error completing {what}: {name}: {java_text(error)}")
    if failed:
        click.echo(f"{failed} replica(s) could not be elected", err=True)
    return EXIT_FAILURE if failed else EXIT_OK


async def _elect(
    given: Given, kind: int, names: list[TopicPartition] | None
) -> dict[TopicPartition, KafkaError | None]:
    async with admin_of(given, "admin.config") as admin:
        return dict(sorted((await admin.elect_leaders(kind, names)).items()))


TOOL = Tool(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections "
    "supported are preferred replicas and unclean replicas.",
    (
        *flags("all-topic-partitions"),
        *values(
            "admin.config=FILE bootstrap-server=HOST:PORT election-type=PREFERRED|UNCLEAN "
            "partition=N path-to-json-file=FILE topic=TOPIC"
        ),
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST, "zookeeper": ZOOKEEPER},
)
