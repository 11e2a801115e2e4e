"""Implements `barnabas topics`, which works like `kafka-topics.sh`."""

from __future__ import annotations

import asyncio
import json
import sys

import click

from barnabas.cli.complaint import warn
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.log_dirs.sizes import topic_sizes
from barnabas.cli.options import as_json, key_values, one_topic, run_client, topic_name
from barnabas.cli.topics.describe import (
    NOTHING_MOVES,
    Filters,
    Moving,
    describe_text,
    describe_values,
)
from barnabas.cli.waiting import soon
from barnabas.client.admin.admin import TOPIC, Admin, ConfigEntry, ConfigResource, NewTopic
from barnabas.client.admin.admin import TopicDescription as Description
from barnabas.client.errors import Unreachable
from barnabas.counted import counted
from barnabas.errors import (
    ClusterAuthorizationFailed,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)

_CONTROLLER_TIMEOUT_S = 2.0


@command_group()
def topics() -> None:
    """Create, list, describe, alter and delete topics.

    \b
    Examples:
      barnabas topics create test --partitions 3
      barnabas topics list
      barnabas topics describe test
      barnabas topics alter test --partitions 6
      barnabas topics delete test
    """


@topics.command()
@topic_name
@click.option(
    "--partitions", type=int, default=-1, metavar="N", help="Default: the broker's num.partitions."
)
@click.option(
    "--replication-factor",
    type=int,
    default=-1,
    metavar="N",
    help="Default: the broker's default.replication.factor.",
)
@click.option(
    "--replica-assignment",
    metavar="0:1,1:2",
    help="The brokers of each partition, its preferred leader first, instead of the two counts.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A topic config, such as retention.ms=86400000; may be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic already exists.")
@bootstrap_server
def create(  # noqa: PLR0913  (a command's parameters are its options)
    topic_argument: str | None,
    topic_option: str | None,
    partitions: int,
    replication_factor: int,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    servers: str,
) -> None:
    """Create a topic.

    \b
    Examples:
      barnabas topics create test
      barnabas topics create --topic test --partitions 3 --replication-factor 1
      barnabas topics create users --config cleanup.policy=compact --if-not-exists
    """
    name = one_topic(topic_argument, topic_option)
    assignment = None if replica_assignment is None else _assignment(replica_assignment)
    if assignment is not None and (partitions, replication_factor) != (-1, -1):
        raise click.UsageError(
            "--replica-assignment sets the numbers of partitions and replicas: leave out "
            "--partitions and --replication-factor"
        )
    topic = NewTopic(
        name, partitions, replication_factor, key_values(configs, "--config"), assignment
    )

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            try:
                await admin.create_topics([topic])
            except TopicAlreadyExists:
                if not if_not_exists:
                    raise
                click.echo(f"Topic {name} already exists.")
            else:
                click.echo(f"Created topic {name}.")

    run_client(work())


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out Kafka's internal topics.")
@as_json
@bootstrap_server
def list_(exclude_internal: bool, as_json: bool, servers: str) -> None:
    """List the topics, one per line; on a terminal, in a table with their partitions and sizes.

    \b
    Examples:
      barnabas topics list
      barnabas topics list --bootstrap-server broker1:9092,broker2:9092 --json
    """

    if not as_json and sys.stdout.isatty():
        from barnabas.cli.tables import show_topic_list

        show_topic_list(*run_client(_describe_sizes(servers, exclude_internal)))
        return

    async def work() -> list[str]:
        async with Admin(servers, **client_options()) as admin:
            return await admin.list_topics(include_internal=not exclude_internal)

    names = run_client(work())
    if as_json:
        click.echo(json.dumps(names))
    else:
        for name in names:
            click.echo(name)


@topics.command()
@topic_name
@click.option(
    "--under-replicated-partitions",
    "under_replicated",
    is_flag=True,
    help="Only partitions with replicas out of sync.",
)
@click.option(
    "--unavailable-partitions",
    "unavailable",
    is_flag=True,
    help=("Only partitions without a leader."),
)
@click.option(
    "--under-min-isr-partitions",
    "under_min_isr",
    is_flag=True,
    help="Only partitions below min.insync.replicas.",
)
@click.option(
    "--at-min-isr-partitions",
    "at_min_isr",
    is_flag=True,
    help=("Only partitions at min.insync.replicas."),
)
@click.option("--exclude-internal", is_flag=True, help="Leave out Kafka's internal topics.")
@as_json
@bootstrap_server
def describe(
    topic_argument: str | None,
    topic_option: str | None,
    exclude_internal: bool,
    as_json: bool,
    servers: str,
    **filters: bool,
) -> None:
    """Show the partitions, leaders, replicas and configs of a topic, or of all topics.

    On a terminal, the output is a table; in a pipe or a file, it consists of the lines that Kafka
    prints.

    \b
    Examples:
      barnabas topics describe test
      barnabas topics describe --topic test --json
      barnabas topics describe --under-replicated-partitions
    """
    name = topic_argument or topic_option
    if name is not None:
        name = one_topic(topic_argument, topic_option)
    described, moving = run_client(_describe(servers, name, exclude_internal))
    wanted = Filters(**filters)
    if as_json:
        click.echo(json.dumps(describe_values(described, wanted, moving), indent=2))
    elif sys.stdout.isatty():
        from barnabas.cli.tables import show_topics

        show_topics(described, wanted, moving=moving)
    else:
        click.echo(describe_text(described, wanted, moving), nl=False)


@topics.command()
@topic_name
@click.option(
    "--partitions", type=click.IntRange(1), required=True, metavar="N", help="The new total."
)
@click.option(
    "--replica-assignment",
    metavar="0:1,1:2",
    help="The brokers of each partition, its preferred leader first; existing ones do not change.",
)
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@bootstrap_server
def alter(
    topic_argument: str | None,
    topic_option: str | None,
    partitions: int,
    replica_assignment: str | None,
    if_exists: bool,
    servers: str,
) -> None:
    """Add partitions to a topic; their number cannot be reduced again.

    Existing records are not moved. From now on, a key may map to another partition, so the records
    of one key are in order only before and after the change, not across it.

    \b
    Examples:
      barnabas topics alter test --partitions 6
      barnabas topics alter --topic test --partitions 3 --replica-assignment 0,0,0
    """
    name = one_topic(topic_argument, topic_option)
    assignment = None if replica_assignment is None else _assignment(replica_assignment)
    # The option lists all partitions, but only the new ones are sent.
    if assignment is not None and len(assignment) != partitions:
        raise click.UsageError(
            f"--replica-assignment names {counted(len(assignment), 'partition')}, but "
            f"--partitions is {partitions}"
        )

    async def work() -> int:
        async with Admin(servers, **client_options()) as admin:
            # Look up the existing partitions, because the request contains only the new ones.
            (topic,) = await admin.describe_topics([name])
            there = len(topic.partitions)
            added = None
            if assignment is not None:
                added = [assignment[number] for number in range(there, partitions)]
            await admin.create_partitions(name, partitions, added)
            return there

    try:
        there = run_client(work())
    except UnknownTopicOrPartition:
        if not if_exists:
            raise
        click.echo(f"Topic {name} does not exist.")
        return
    click.echo(
        f"Topic {name} has {counted(partitions, 'partition')}, {partitions - there} of them new."
    )
    warn(
        "barnabas topics alter",
        "from now on, a key may map to a different partition than its earlier records",
    )


@topics.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=topic_names)
@click.option(
    "--topic",
    "option_names",
    multiple=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="The same as NAME.",
)
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@bootstrap_server
def delete(
    names: tuple[str, ...], option_names: tuple[str, ...], if_exists: bool, servers: str
) -> None:
    """Delete topics with all their records.

    \b
    Examples:
      barnabas topics delete test
      barnabas topics delete test-1 test-2 --if-exists
    """
    wanted = list(dict.fromkeys(names + option_names))
    if not wanted:
        raise click.UsageError("name a topic")

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            for name in wanted:
                try:
                    await admin.delete_topics([name])
                except UnknownTopicOrPartition:
                    if not if_exists:
                        raise
                    click.echo(f"Topic {name} does not exist.")
                else:
                    click.echo(f"Deleted topic {name}.")

    run_client(work())


async def _describe_sizes(
    servers: str, exclude_internal: bool
) -> tuple[list[Description], dict[str, int]]:
    """Return the topics, and their sizes where the brokers report them."""
    async with Admin(servers, **client_options()) as admin:
        found = await admin.describe_topics()
        # Filter the topics in the client, because the protocol offers no such filter.
        kept = [topic for topic in found if not (exclude_internal and topic.is_internal)]
        return kept, topic_sizes(await soon(admin.describe_log_dirs(), {}), kept)


async def _describe(
    servers: str, name: str | None, exclude_internal: bool
) -> tuple[list[tuple[Description, list[ConfigEntry]]], Moving]:
    async with Admin(servers, **client_options()) as admin:
        found = await admin.describe_topics(None if name is None else [name])
        kept = [topic for topic in found if not (exclude_internal and topic.is_internal)]
        resources = [ConfigResource(TOPIC, topic.name) for topic in kept]
        configs = await admin.describe_configs(resources)
        described = [(topic, configs[ConfigResource(TOPIC, topic.name)]) for topic in kept]
        return described, await _moving(admin)


async def _moving(admin: Admin) -> Moving:
    """Return the partitions being reassigned, which only the controller knows. Without a
    controller, or if it rejects the request, everything else is shown.
    """
    try:
        # During an election, there is no controller to ask. This must not delay the rest of the
        # output.
        async with asyncio.timeout(_CONTROLLER_TIMEOUT_S):
            return await admin.list_partition_reassignments()
    except (TimeoutError, Unreachable, ClusterAuthorizationFailed, UnsupportedVersion):
        return NOTHING_MOVES


def _assignment(text: str) -> dict[int, list[int]]:
    """Parse `0:1,1:2`: partition 0 on brokers 0 and 1, partition 1 on 1 and 2."""
    try:
        return {
            partition: [int(broker) for broker in brokers.split(":")]
            for partition, brokers in enumerate(text.split(","))
        }
    except ValueError:
        raise click.UsageError(
            f"--replica-assignment {text}: not broker ids, such as 0:1,1:2 (two partitions)"
        ) from None
