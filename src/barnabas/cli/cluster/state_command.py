"""Implements `barnabas cluster describe` and `health`, for any Barnabas or Kafka cluster."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from barnabas.cli.cluster.health import problems
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.log_dirs.sizes import broker_sizes
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.cli.waiting import soon
from barnabas.counted import counted

if TYPE_CHECKING:
    from barnabas.client.admin.admin import ClusterDescription, TopicDescription

_MIN_ISR = "min.insync.replicas"


class State(NamedTuple):
    """Holds the brokers' responses."""

    cluster: ClusterDescription
    topics: list[TopicDescription]
    min_isr: dict[str, int]  # for topics with partitions that lack in-sync replicas
    sizes: dict[int, int]  # bytes by broker, if requested and available

    @property
    def summary(self) -> str:
        partitions = sum(len(topic.partitions) for topic in self.topics)
        return (
            f"{counted(len(self.cluster.brokers), 'broker')}, controller "
            f"{self.cluster.controller_id}, {counted(len(self.topics), 'topic')}, "
            f"{counted(partitions, 'partition')}"
        )


@click.command()
@as_json
@bootstrap_server
def describe(as_json: bool, servers: str) -> None:
    """Show the id, the controller and the brokers of a cluster, and how many partitions each broker
    leads.

    \b
    Examples:
      barnabas cluster describe
      barnabas cluster describe --bootstrap-server broker1:9092 --json
    """
    state = run_client(_state(servers, with_sizes=not as_json and sys.stdout.isatty()))
    partitions = [each for topic in state.topics for each in topic.partitions]
    leaders = Counter(each.leader for each in partitions)
    replicas = Counter(broker_id for each in partitions for broker_id in each.replicas)
    cluster = state.cluster
    if as_json:
        values = {
            "cluster_id": cluster.cluster_id,
            "controller": cluster.controller_id,
            "topics": len(state.topics),
            "partitions": len(partitions),
            "brokers": [
                {
                    **broker._asdict(),
                    "leaders": leaders[broker.broker_id],
                    "replicas": replicas[broker.broker_id],
                }
                for broker in cluster.brokers
            ],
        }
        click.echo(json.dumps(values, indent=2))
        return
    if sys.stdout.isatty():
        _show_table(state, leaders, replicas)
        return
    click.echo(f"Cluster {cluster.cluster_id}: {state.summary}")
    for broker in cluster.brokers:
        rack = "" if broker.rack is None else f"\tRack: {broker.rack}"
        click.echo(
            f"\tBroker: {broker.broker_id}\tAddress: {broker.host}:{broker.port}\t"
            f"Leaders: {leaders[broker.broker_id]}\tReplicas: {replicas[broker.broker_id]}{rack}"
            + ("\tController" if broker.broker_id == cluster.controller_id else "")
        )


@click.command()
@as_json
@bootstrap_server
def health(as_json: bool, servers: str) -> int:
    """Report the problems of a cluster, the worst first, and exit with 1 if there are any.

    Problems are: no controller; brokers that are left out because they are too old for this
    cluster; brokers that have replicas but are not alive; and partitions that have no leader, are
    below min.insync.replicas, or are under-replicated. Partitions that are being reassigned may be
    under-replicated for a while.

    \b
    Examples:
      barnabas cluster health
      barnabas cluster health --json
      until barnabas cluster health; do sleep 1; done
    """
    state = run_client(_state(servers))
    found = list(problems(state.cluster, state.topics, state.min_isr))
    if as_json:
        values = {
            "healthy": not found,
            "problems": [
                {
                    "kind": each.kind,
                    "topic": None if each.partition is None else each.partition.topic,
                    "partition": None if each.partition is None else each.partition.partition,
                    "text": each.text,
                }
                for each in found
            ],
        }
        click.echo(json.dumps(values, indent=2))
    elif found:
        for each in found:
            click.echo(f"{each.kind}: {each.text}")
    else:
        click.echo(f"healthy: {state.summary}, all replicas in sync")
    return EXIT_FAILURE if found else EXIT_OK


def _show_table(state: State, leaders: Mapping[int, int], replicas: Mapping[int, int]) -> None:
    """Print a table of the brokers on a terminal. `leaders` and `replicas` are counts by broker."""
    from rich.console import Console
    from rich.text import Text

    from barnabas.cli.terminal_table import Cells, outside_text, show_table, size_text

    console = Console(highlight=False)
    heading = Text(f"Cluster {state.cluster.cluster_id}", style="bold")
    console.print(heading.append(f"  {state.summary}", style="dim"))
    rows: list[Cells] = [
        [
            str(broker.broker_id),
            outside_text(f"{broker.host}:{broker.port}"),
            outside_text(broker.rack or "-"),
            str(leaders.get(broker.broker_id, 0)),
            str(replicas.get(broker.broker_id, 0)),
            size_text(state.sizes.get(broker.broker_id)),
            Text("controller" * (broker.broker_id == state.cluster.controller_id), style="bold"),
        ]
        for broker in state.cluster.brokers
    ]
    titles = (">broker", "address", "rack", ">leaders", ">replicas", ">size", "")
    show_table(console, titles, rows)


async def _state(servers: str, *, with_sizes: bool = False) -> State:
    # Imported only here, because `cluster start` loads this module and needs the client later.
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.configs import TOPIC, ConfigResource

    async with Admin(servers, **client_options()) as admin:
        topics = await admin.describe_topics()
        min_isr = {}
        for topic in topics:
            # min.insync.replicas matters only if replicas are missing, so a healthy cluster needs
            # no further request.
            if any(len(each.isr) < len(each.replicas) for each in topic.partitions):
                resource = ConfigResource(TOPIC, topic.name)
                (entry,) = await admin.describe_configs(resource, [_MIN_ISR])
                min_isr[topic.name] = int(entry.value or 1)
        # A hung broker must not delay the output, so sizes are shown only if they arrive in time.
        directories = await soon(admin.describe_log_dirs(), {}) if with_sizes else {}
        cluster = await admin.describe_cluster()
        return State(cluster, topics, min_isr, broker_sizes(directories))
