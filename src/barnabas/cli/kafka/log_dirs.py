"""Implements `kafka-log-dirs.sh`, which prints the log directories of brokers as JSON (KIP-113)."""

from __future__ import annotations

from collections.abc import Mapping

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    ZOOKEEPER,
    Line,
    Tool,
    admin_of,
    at_servers,
)
from barnabas.cli.log_dirs.command import describe_lines, with_replicas_of
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import LogDirDescription


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    given.need("describe")
    line = ["log-dirs", "describe"]
    for broker in _brokers(given):
        line += ["--broker", str(broker)]
    for topic in filter(None, (given.text("topic-list") or "").split(",")):
        line += ["--topic", topic]
    return [[*line, *at_servers(given)]]


def _brokers(given: Given) -> list[int]:
    """Return the brokers to ask. An empty list means all brokers. Raises BadCommandLine."""
    words = [word for word in (given.text("broker-list") or "").split(",") if word.strip()]
    try:
        # In this tool, --broker-list lists ids. It is not the deprecated name of
        # --bootstrap-server.
        return list(dict.fromkeys(int(word) for word in words))
    except ValueError:
        raise BadCommandLine(
            f"--broker-list {','.join(words)}: not broker ids, such as 0,1,2"
        ) from None


def run(given: Given) -> int:
    """Print the brokers' log directories with their replicas, as one line of JSON."""
    given.need("describe")
    brokers = _brokers(given)
    topics = {word for word in (given.text("topic-list") or "").split(",") if word}
    found = run_client(_describe(given))
    # Ask all brokers, so that a dead one is detected without waiting for a timeout.
    missing = [broker for broker in brokers if broker not in found]
    if missing:
        click.echo(
            f"ERROR: The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, missing))}. Current existent brokers: "
            f"{','.join(map(str, sorted(found)))}",
            err=True,
        )
        return EXIT_FAILURE
    asked = {broker: found[broker] for broker in brokers or sorted(found)}
    for line in describe_lines(with_replicas_of(topics, asked)):
        click.echo(line)
    return EXIT_OK


async def _describe(given: Given) -> Mapping[int, tuple[LogDirDescription, ...]]:
    async with admin_of(given) as admin:
        return await admin.describe_log_dirs()


TOOL = Tool(
    "This tool helps to query log directory usage on the specified brokers.",
    (
        *flags("describe"),
        *values(
            "bootstrap-server=HOST:PORT broker-list=ID,ID command-config=FILE topic-list=TOPIC,..."
        ),
    ),
    explain,
    run,
    {"zookeeper": ZOOKEEPER},
)
