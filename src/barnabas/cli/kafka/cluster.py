"""Implements `kafka-cluster.sh`, which prints a cluster's id. Its other actions are for KRaft."""

from __future__ import annotations

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, values
from barnabas.cli.kafka.tool import (
    Line,
    NotCovered,
    Retired,
    Tool,
    admin_of,
    at_servers,
    servers,
)
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client

_COMMANDS = ("cluster-id", "unregister")


def _check(given: Given) -> None:
    """Check the command line. Raises BadCommandLine or NotCovered."""
    if len(given.others) != 1 or given.others[0] not in _COMMANDS:
        raise BadCommandLine(
            f"{' '.join(given.others) or 'no command'}: give one of {', '.join(_COMMANDS)}"
        )
    # `unregister` exists only in KRaft. Reject it as Kafka 3.9 does in ZooKeeper mode.
    if given.others[0] == "unregister":
        raise NotCovered("The target cluster does not support the broker unregistration API.")
    servers(given)


def explain(given: Given) -> list[Line]:
    """Return our equivalent, which also shows the controller and the brokers."""
    _check(given)
    return [["cluster", "describe", *at_servers(given, "config")]]


def run(given: Given) -> int:
    """Print the cluster's id."""
    _check(given)
    click.echo(f"Cluster ID: {run_client(_cluster_id(given))}")
    return EXIT_OK


async def _cluster_id(given: Given) -> str:
    async with admin_of(given, "config") as admin:
        return (await admin.describe_cluster()).cluster_id


TOOL = Tool(
    "The Kafka cluster tool.",
    values("bootstrap-server=HOST:PORT config=FILE id=ID"),
    explain,
    run,
    {"command-config": Retired("Kafka calls it --config here", "config")},
    abbreviates=True,
    operands="cluster-id",
)
