"""Implements `barnabas log-dirs`, which works and prints like `kafka-log-dirs.sh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.log_dirs.move_command import move
from barnabas.cli.log_dirs.strays_command import strays_of
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin, LogDirDescription
from barnabas.counted import counted

Described = Mapping[int, tuple[LogDirDescription, ...]]
"""Maps broker ids to log directories."""


@command_group()
def log_dirs() -> None:
    """Describe the log directories of brokers, and move replicas between them.

    \b
    Examples:
      barnabas log-dirs describe
      barnabas log-dirs describe --broker 1 --topic orders
      barnabas log-dirs move orders --to /disk2/kafka
      barnabas log-dirs strays /var/lib/barnabas --delete-all
    """


log_dirs.add_command(move)
log_dirs.add_command(strays_of)


@log_dirs.command()
@click.option("--broker", "brokers", type=int, multiple=True, metavar="ID", help="Repeatable.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="Repeatable.",
)
@as_json
@bootstrap_server
def describe(brokers: tuple[int, ...], topics: tuple[str, ...], as_json: bool, servers: str) -> int:
    """Show the log directories of all brokers, or of some, with their replicas, sizes and lags.

    Logs that were set aside are shown with their sizes; `barnabas log-dirs strays` deletes them.

    On a terminal, the output is a table; in a pipe or a file, it consists of Kafka's lines, of
    which the last is JSON. If a broker cannot use one of its directories, the exit code is 1.

    \b
    Examples:
      barnabas log-dirs describe
      barnabas log-dirs describe --broker 1 --broker 2 --topic orders
      barnabas log-dirs describe --json
    """

    async def work() -> Described:
        async with Admin(servers, **client_options()) as admin:
            return await admin.describe_log_dirs()

    every = run_client(work())
    missing = set(brokers) - every.keys()
    if missing:
        raise click.UsageError(
            f"--broker {min(missing)}: this broker is not alive; the live brokers are "
            f"{', '.join(map(str, every))}"
        )
    # Ask all brokers, so that a dead one is reported at once.
    chosen = {each: every[each] for each in every if not brokers or each in brokers}
    found = with_replicas_of(topics, chosen)
    if as_json:
        click.echo(json.dumps(_values(found), indent=2))
    elif sys.stdout.isatty():
        _show(found)
    else:
        for line in describe_lines(found):
            click.echo(line)
    # The exit code informs a monitoring system of a failed directory (KIP-112).
    is_well = all(each.error is None for directories in found.values() for each in directories)
    return EXIT_OK if is_well else EXIT_FAILURE


def describe_lines(found: Described) -> Iterator[str]:
    """Yield the lines that Kafka 3.9 prints, the last of which is JSON."""
    yield "Querying brokers for log directories information"
    yield f"Received log directory information from brokers {','.join(map(str, found))}"
    brokers = [
        {
            "broker": broker_id,
            "logDirs": [
                {
                    "partitions": [
                        {
                            "partition": str(name),
                            "size": replica.size_bytes,
                            "offsetLag": replica.offset_lag,
                            "isFuture": replica.is_future,
                        }
                        for name, replica in sorted(directory.replicas.items())
                    ],
                    "error": directory.error,
                    "logDir": directory.path,
                    **_strays(directory),
                }
                for directory in directories
            ],
        }
        for broker_id, directories in found.items()
    ]
    yield json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":"))


def _strays(directory: LogDirDescription) -> dict[str, object]:
    """Return an entry for stray logs, which Kafka's tool does not print, or nothing if there are
    none.
    """
    found = sorted(directory.strays.items())
    return {"strays": [{"name": name, "size": size} for name, size in found]} if found else {}


def with_replicas_of(topics: Collection[str], found: Described) -> Described:
    """Return the directories with the replicas of these topics, or of all if none is given."""
    if not topics:
        return found
    return {
        broker_id: tuple(_only(directory, topics) for directory in directories)
        for broker_id, directories in found.items()
    }


def _only(directory: LogDirDescription, topics: Collection[str]) -> LogDirDescription:
    replicas = {name: each for name, each in directory.replicas.items() if name.topic in topics}
    return directory._replace(replicas=replicas)


def _values(found: Described) -> list[dict[str, Any]]:
    return [
        {
            "broker": broker_id,
            "path": directory.path,
            "error": directory.error,
            "total_bytes": None if directory.total_bytes < 0 else directory.total_bytes,
            "usable_bytes": None if directory.usable_bytes < 0 else directory.usable_bytes,
            "strays": [
                {"name": name, "size_bytes": size_bytes}
                for name, size_bytes in sorted(directory.strays.items())
            ],
            "replicas": [
                {
                    "topic": name.topic,
                    "partition": name.partition,
                    "size_bytes": replica.size_bytes,
                    "offset_lag": replica.offset_lag,
                    "is_future": replica.is_future,
                }
                for name, replica in sorted(directory.replicas.items())
            ],
        }
        for broker_id, directories in found.items()
        for directory in directories
    ]


def _show(found: Described) -> None:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for broker_id, directories in found.items():
        for directory in directories:
            size = sum(replica.size_bytes for replica in directory.replicas.values())
            facts = [counted(len(directory.replicas), "replica"), decimal(size)]
            if directory.usable_bytes >= 0:
                facts.append(f"{decimal(directory.usable_bytes)} free")
            heading = Text(f"broker {broker_id}  {directory.path}", "bold")
            console.print(heading.append(f"  {', '.join(facts)}", "dim"))
            if directory.error is not None:
                console.print(Text(f"  {directory.error}", "bold red"))
            table = Table(box=None, pad_edge=False, header_style="dim")
            for title in ("  partition", "size", "lag", ""):
                table.add_column(title, justify="right" if title in ("size", "lag") else "left")
            for name, replica in sorted(directory.replicas.items()):
                moving = "moving here" if replica.is_future else ""
                lag = str(replica.offset_lag)
                table.add_row(f"  {name}", decimal(replica.size_bytes), lag, moving)
            for stray, size_bytes in sorted(directory.strays.items()):
                table.add_row(f"  {stray}", decimal(size_bytes), "", "set aside")
            console.print(table)
