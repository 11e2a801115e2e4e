"""`kafka-log-dirs.sh`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    ZOOKEEPER,
    Line,
    Tool,
    at_servers,
    client_configs,
    no_client_configs,
    servers,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import Admin, LogDirDescription


def explain(given: Given) -> list[Line]:
    """Our command for the line."""
    given.need("describe")
    no_client_configs(given)
    line = ["log-dirs", "describe"]
    for broker in _brokers(given):
        line += ["--broker", str(broker)]
    for topic in filter(None, (given.text("topic-list") or "").split(",")):
        line += ["--topic", topic]
    return [[*line, *at_servers(given)]]


def _brokers(given: Given) -> list[int]:
    """The brokers to ask; none: all. Raises BadCommandLine."""
    words = [word for word in (given.text("broker-list") or "").split(",") if word.strip()]
    try:
        return list(dict.fromkeys(int(word) for word in words))
    except ValueError:
        raise BadCommandLine(
            f"--broker-list {','.join(words)}: not broker ids, such as 0,1,2"
        ) from None


def run(given: Given) -> int:
    """Print the directories of brokers and the replicas in them, as JSON in one line."""
    given.need("describe")
    brokers = _brokers(given)
    topics = {word for word in (given.text("topic-list") or "").split(",") if word}
    found = run_client(_described(given))
    missing = [broker for broker in brokers if broker not in found]
    if missing:
        click.echo(
            f"ERROR: The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, missing))}. Current existent brokers: "
            f"{','.join(map(str, sorted(found)))}",
            err=True,
        )
        return EXIT_FAILURE
    asked = brokers or sorted(found)
    click.echo("Querying brokers for log directories information")
    click.echo(f"Received log directory information from brokers {','.join(map(str, asked))}")
    values = [_broker(broker, found[broker], topics) for broker in asked]
    click.echo(json.dumps({"brokers": values, "version": 1}, separators=(",", ":")))
    return EXIT_OK


async def _described(given: Given) -> Mapping[int, tuple[LogDirDescription, ...]]:
    async with Admin(servers(given), **client_configs(given)) as admin:
        return await admin.describe_log_dirs()


def _broker(
    broker: int, directories: tuple[LogDirDescription, ...], topics: set[str]
) -> dict[str, Any]:
    return {
        "broker": broker,
        "logDirs": [
            {
                "partitions": [
                    {
                        "partition": str(name),
                        "size": replica.size_bytes,
                        "offsetLag": replica.offset_lag,
                        "isFuture": replica.is_future,
                    }
                    for name, replica in directory.replicas.items()
                    if not topics or name.topic in topics
                ],
                "error": directory.error,
                "logDir": directory.path,
            }
            for directory in directories
        ],
    }


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
