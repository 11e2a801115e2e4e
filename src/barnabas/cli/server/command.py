"""Implements `barnabas server`. Its `server start` exists only for --help (see `cli.main`)."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.complaint import complain
from barnabas.cli.group import ServerCommand, command_group, file_names
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.server.start_command import HELP
from barnabas.cli.server.start_command import start as start_broker
from barnabas.cli.server.stop import CannotStop, Selection, default_selection, directory_of
from barnabas.cli.server.stop import stop as stop_broker


@command_group()
def server() -> None:
    """Run or stop a broker.

    \b
    Examples:
      barnabas server start
      barnabas server start --data-dir ~/barnabas --port 9192
      barnabas server start /etc/kafka/server.properties --override num.partitions=3
      barnabas server stop
    """


@server.command(
    cls=ServerCommand,
    short_help="Run a broker in this process.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    help=HELP,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=file_names)
def start(arguments: tuple[str, ...]) -> int:
    return start_broker(arguments)


@server.command()
@click.argument("properties_file", metavar="[server.properties]", required=False)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The broker with this log directory.",
)
@click.option("--port", type=click.IntRange(1, 65_535), metavar="PORT", help="... on this port.")
@click.option("--pid", type=click.IntRange(1), metavar="PID", help="... with this process id.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(0),
    default=60_000,
    show_default=True,
    metavar="MS",
    help="How long to wait until it has stopped.",
)
def stop(
    properties_file: str | None,
    directory: Path | None,
    port: int | None,
    pid: int | None,
    timeout_ms: int,
) -> int:
    """Stop a broker on this machine cleanly, and wait until it has stopped.

    Without options, it stops your broker on the default log directory (/tmp/kafka-logs, or
    KAFKA_LOG_DIRS), and no other broker. A properties file selects the broker that uses the first
    of its log.dirs; a file that does not exist is ignored.

    \b
    Examples:
      barnabas server stop
      barnabas server stop --dir ~/barnabas
      barnabas server stop --port 9192
      barnabas server stop /etc/kafka/server.properties
    """
    try:
        if properties_file is not None and not (directory or port or pid):
            directory = directory_of(properties_file)
        selection = Selection(directory, pid, port)
        stopped = stop_broker(selection if any(selection) else default_selection(), timeout_ms)
    except CannotStop as error:
        complain("barnabas server stop", str(error))
        return EXIT_FAILURE
    click.echo(f"Stopped server {stopped}.")
    return EXIT_OK
