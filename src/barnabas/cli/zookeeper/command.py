"""Implements `barnabas zookeeper`. Its `start` exists only for --help (see `cli.main`)."""

from __future__ import annotations

import click

from barnabas.cli.group import ServerCommand, command_group, file_names
from barnabas.cli.zookeeper.start_command import HELP
from barnabas.cli.zookeeper.start_command import start as start_server


@command_group()
def zookeeper() -> None:
    """Run a ZooKeeper server on this machine.

    \b
    Examples:
      barnabas zookeeper start
      barnabas zookeeper start --data-dir /srv/zookeeper --port 2182
    """


@zookeeper.command(
    cls=ServerCommand,
    short_help="Run a ZooKeeper server in this process.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    help=HELP,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=file_names)
def start(arguments: tuple[str, ...]) -> int:
    return start_server(arguments)
