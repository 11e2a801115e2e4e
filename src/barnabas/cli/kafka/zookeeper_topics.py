"""Implements `kafka-topics.sh --zookeeper` as in Kafka 2.3.1, with its messages and layout.

    Topic:test<TAB>PartitionCount:1<TAB>ReplicationFactor:1<TAB>Configs:k=v,k=v
    <TAB>Topic: test<TAB>Partition: 0<TAB>Leader: 0<TAB>Replicas: 0<TAB>Isr: 0

The request is sent to the brokers registered in ZooKeeper, whose usual rules apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from barnabas.cli.complaint import warn
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import admin_of, patterns
from barnabas.cli.kafka.topic_assignment import assignment_of
from barnabas.cli.kafka.zookeeper_brokers import (
    Found,
    cluster_of,
    warn_of_zookeeper,
    with_brokers,
)
from barnabas.cli.options import key_values, run_client
from barnabas.cli.topics.describe import Filters
from barnabas.client.admin.admin import (
    TOPIC,
    Admin,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    TopicDescription,
)
from barnabas.client.admin.configs import (
    DYNAMIC_TOPIC_CONFIG,
    ConfigOperation,
    ConfigOperationType,
)
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import BarnabasError, TopicAlreadyExists

COLLISION: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
_ALTERS_CONFIGS: Final = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be removed "
    "in future releases.\n"
    "         Going forward, please use kafka-configs.sh for this functionality"
)
_ADDS_PARTITIONS: Final = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or "
    "ordering of the messages will be affected"
)
_MARKED: Final = "Note: This will have no impact if delete.topic.enable is not set to true."
_REPORTS: Final = ("under-replicated-partitions", "unavailable-partitions")
_ONLY_BY_BROKERS: Final = ("under-min-isr-partitions", "at-min-isr-partitions", "topic-id")
_OVERRIDES: Final = "topics-with-overrides"
_WITHOUT_RACKS: Final = "disable-rack-aware"


class Refused(BarnabasError):
    """Raised if the tool itself rejects the command line, with the tool's message."""


def check(given: Given, action: str) -> None:
    """Raise BadCommandLine for options that the tool rejects with --zookeeper."""
    for name in _ONLY_BY_BROKERS:
        given.not_with(name, "zookeeper")
    # 2.3.1 had no defaults for these, because num.partitions is a broker setting, and 2.3.1 did not
    # ask the brokers.
    if action == "create" and "replica-assignment" not in given:
        given.need("partitions", "replication-factor")
    given.not_with(*_REPORTS)


def run(given: Given, action: str) -> None:
    """Execute the action through the brokers registered in ZooKeeper. Raises
    BarnabasError."""
    check(given, action)
    warn_of_zookeeper()
    found = cluster_of(given)
    # 2.3.1 placed the replicas itself, and could ignore racks.
    if _WITHOUT_RACKS in given and any(broker.rack is not None for broker in found.brokers):
        warn(
            "kafka-topics.sh",
            f"--{_WITHOUT_RACKS} has no effect: the brokers place replicas, and take racks "
            "into account",
        )
    at = with_brokers(given, found)
    work = {"create": _create, "list": _list, "describe": _describe, "alter": _alter}
    run_client(work.get(action, _delete)(at, found))


async def _create(given: Given, found: Found) -> None:
    name = given.required_text("topic")
    if "." in name or "_" in name:
        click.echo(COLLISION)
    partitions, factor = given.number("partitions"), given.number("replication-factor")
    if partitions is not None and partitions < 1:
        raise Refused("Number of partitions must be larger than 0.")
    if factor is not None and factor < 1:
        raise Refused("Replication factor must be larger than 0.")
    # 2.3.1 counts the brokers in ZooKeeper. A broker would also reject this, but with a different
    # message.
    if factor is not None and factor > len(found.brokers):
        raise Refused(
            f"Replication factor: {factor} larger than available brokers: {len(found.brokers)}."
        )
    await create_topic(given, name, _configs(given))


async def create_topic(given: Given, name: str, configs: Mapping[str, str]) -> None:
    """Create the topic that the command line describes. Raises BadCommandLine.

    The caller has already checked the number of partitions and the replication factor.
    """
    partitions, factor = given.number("partitions"), given.number("replication-factor")
    topic = NewTopic(
        name,
        -1 if partitions is None else partitions,
        -1 if factor is None else factor,
        dict(configs),
        assignment_of(given),
    )
    async with admin_of(given) as admin:
        try:
            await admin.create_topics([topic])
        except TopicAlreadyExists:
            if "if-not-exists" not in given:
                raise
        else:
            click.echo(f"Created topic {name}.")


async def _list(given: Given, found: Found) -> None:
    async with admin_of(given) as admin:
        for name in _chosen(given, await admin.list_topics()):
            # A topic is listed until all of its replicas have been deleted.
            mark = " - marked for deletion" if name in found.deleted_topics else ""
            click.echo(f"{name}{mark}")


async def _describe(given: Given, found: Found) -> None:
    async with admin_of(given) as admin:
        names = await _existing(admin, given)
        topics = await admin.describe_topics(names) if names else []
        resources = [ConfigResource(TOPIC, topic.name) for topic in topics]
        configs = await admin.describe_configs(resources) if resources else {}
    filters = Filters(*(name in given for name in _REPORTS))
    for topic in topics:
        own = _own(configs[ConfigResource(TOPIC, topic.name)])
        is_marked = topic.name in found.deleted_topics
        # Reports about partitions have no headings, and --topics-with-overrides prints only
        # headings.
        if not any(filters) and (own or _OVERRIDES not in given):
            click.echo(_heading(topic, own, is_marked))
        if _OVERRIDES not in given:
            for line in _partitions(topic, filters, is_marked):
                click.echo(line)


def _own(configs: Sequence[ConfigEntry]) -> list[str]:
    """Return the topic's own configs. ZooKeeper does not store the configs from brokers' files."""
    return [
        f"{each.name}={each.value or ''}" for each in configs if each.source == DYNAMIC_TOPIC_CONFIG
    ]


def _heading(topic: TopicDescription, own: Sequence[str], is_marked: bool) -> str:
    replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
    mark = "\tMarkedForDeletion:true" if is_marked else ""
    return (
        f"Topic:{topic.name}\tPartitionCount:{len(topic.partitions)}\t"
        f"ReplicationFactor:{replicas}\tConfigs:{','.join(own)}{mark}"
    )


def _partitions(topic: TopicDescription, filters: Filters, is_marked: bool) -> list[str]:
    # The mark is part of the heading if there is one. Otherwise, it is part of the partition's
    # line.
    mark = "\tMarkedForDeletion: true" if is_marked and any(filters) else ""
    return [
        f"\tTopic: {topic.name}\tPartition: {each.partition}\tLeader: {each.leader}\t"
        f"Replicas: {','.join(map(str, each.replicas))}\tIsr: {','.join(map(str, each.isr))}{mark}"
        for each in filters.of(topic, ())
    ]


async def _alter(given: Given, _found: Found) -> None:
    count = given.number("partitions")
    assignment = assignment_of(given)
    set_, removed = _configs(given), [name.strip() for name in given.texts("delete-config")]
    changes = [ConfigOperation(name, ConfigOperationType.SET, set_[name]) for name in set_]
    changes += [ConfigOperation(name, ConfigOperationType.DELETE, None) for name in removed]
    async with admin_of(given) as admin:
        # For each topic, 2.3.1 first prints the warning and then makes the change.
        names = await _existing(admin, given)
        for topic in await admin.describe_topics(names) if names else ():
            if changes:
                click.echo(_ALTERS_CONFIGS)
                await admin.alter_configs(ConfigResource(TOPIC, topic.name), changes)
                click.echo(f"Updated config for topic {topic.name}.")
            if count is not None:
                await _enlarge(admin, topic, count, assignment)


async def _enlarge(
    admin: Admin, topic: TopicDescription, count: int, assignment: dict[int, list[int]] | None
) -> None:
    # The number of partitions determines where the state of groups and transactions is stored.
    # Changing the number would not move this state.
    if topic.name in INTERNAL_TOPICS:
        raise Refused(
            "The number of partitions for the internal topics"
            "Set(__consumer_offsets, __transaction_state) cannot be changed."
        )
    click.echo(_ADDS_PARTITIONS)
    there = len(topic.partitions)
    # The brokers would also reject this, but not with 2.3.1's message.
    if count <= there:
        raise Refused(
            "The number of partitions for a topic can only be increased. Topic "
            f"{topic.name} currently has {there} partitions, {count} would not be an increase."
        )
    added = None
    if assignment is not None:
        added = [assignment[number] for number in sorted(assignment) if number >= there]
    await admin.create_partitions(topic.name, count, added or None)
    click.echo("Adding partitions succeeded!")


async def _delete(given: Given, found: Found) -> None:
    async with admin_of(given) as admin:
        for name in await _existing(admin, given):
            if name in INTERNAL_TOPICS:
                raise Refused(
                    f"Topic {name} is a kafka internal topic and is not allowed to be marked for "
                    "deletion."
                )
            if name in found.deleted_topics:
                click.echo(f"Topic {name} is already marked for deletion.")
                continue
            await admin.delete_topics([name])
            click.echo(f"Topic {name} is marked for deletion.\n{_MARKED}")


async def _existing(admin: Admin, given: Given) -> list[str]:
    """Return the selected topics. Without --if-exists, raises Refused if there are none."""
    names = _chosen(given, await admin.list_topics())
    topic = given.text("topic")
    if topic is not None and not names and "if-exists" not in given:
        raise Refused(f"Topic '{topic}' does not exist as expected")
    return names


def _chosen(given: Given, names: Sequence[str]) -> list[str]:
    """Return the topics that --topic and --exclude-internal select."""
    topic = given.text("topic")
    wanted = None if topic is None else patterns(topic, "topic")
    return [
        name
        for name in names
        if (wanted is None or wanted.fullmatch(name))
        and not ("exclude-internal" in given and name in INTERNAL_TOPICS)
    ]


def _configs(given: Given) -> dict[str, str]:
    texts = given.texts("config")
    for text in texts:
        if "=" not in text:
            raise BadCommandLine(
                "Invalid topic config: all configs to be added must be in the format "
                f'"key=val": {text}'
            )
    return {name: value.strip() for name, value in key_values(texts, "--config").items()}
