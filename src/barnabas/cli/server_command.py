"""`barnabas server` in the help; `server start` itself never comes this way (see `cli.main`)."""

from __future__ import annotations

import click

from barnabas.cli.server import HELP
from barnabas.cli.server import start as start_broker


@click.group()
def server() -> None:
    """Run a broker.

    \b
    Examples:
      barnabas server start
      barnabas server start --data-dir ~/barnabas --port 9192
      barnabas server start /etc/kafka/server.properties --override num.partitions=3
    """


@server.command(
    short_help="Run a broker in this process.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    help=HELP,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def start(arguments: tuple[str, ...]) -> int:
    return start_broker(arguments)
