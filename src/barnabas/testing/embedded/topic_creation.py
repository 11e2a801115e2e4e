"""Creates a topic for a test, or waits for a topic that another program creates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin.admin import Admin, NewTopic, TopicDescription
from barnabas.client.admin.admin_arguments import ConfigText
from barnabas.client.errors import Unreachable
from barnabas.counted import counted
from barnabas.errors import KafkaError, TopicAlreadyExists, UnknownTopicOrPartition
from barnabas.testing.embedded.client_thread import ClientThread
from barnabas.testing.embedded.topic import Topic
from barnabas.testing.embedded.waiting import Sight, is_wait_timeout

__tracebackhide__ = is_wait_timeout

_PARTITIONS_IN_TIME = 100  # the slowest disk creates these within the usual timeout
_LOOK_FOR_LOGS_EVERY_S = 1.0  # not more often, because the response is large


class WantedTopic(NamedTuple):
    name: str
    partitions: int | None  # None: the broker's default, or any number
    replication_factor: int | None  # likewise
    config: Mapping[str, ConfigText]  # the configs of a new topic


def open_topic(wanted: WantedTopic, clients: ClientThread, timeout_s: float) -> Topic:
    """Return the topic, creating it if it does not exist.

    Raises ValueError if it exists with different properties. A request may time out before
    thousands of partitions have their logs. The repeated request then finds that the topic exists,
    even before any broker reports it.
    """
    _check(wanted)

    async def create() -> bool:
        admin = await clients.admin()
        try:
            await admin.create_topics([_new(wanted)])
        # Created by another test, or by an earlier attempt whose response was lost.
        except TopicAlreadyExists:
            return False
        return True

    async def describe() -> TopicDescription:
        (found,) = await (await clients.admin()).describe_topics([wanted.name])
        return found

    is_new = clients.run(create, f"the creation of topic {wanted.name!r}", timeout_s)
    # Each log is forced to disk, and none becomes visible before all logs of the request exist.
    patience_s = timeout_s * max(1, (wanted.partitions or 1) / _PARTITIONS_IN_TIME)
    topic = wait_for_topic(wanted.name, None, clients, patience_s)
    # A newly created topic has the requested properties.
    if not is_new:
        _compare(wanted, clients.run(describe, f"topic {wanted.name!r}", timeout_s))
    return topic


def wait_for_topic(
    name: str, partitions: int | None, clients: ClientThread, timeout_s: float
) -> Topic:
    """Wait until the topic exists and each partition has a leader, and return it.

    Raises WaitTimeout if no replica or leader is added for `timeout_s`.
    """
    arguments.topic_name(name, "name")
    looked_at = -_LOOK_FOR_LOGS_EVERY_S
    made = 0

    async def look() -> Sight[None]:
        admin = await clients.admin()
        try:
            (found,) = await admin.describe_topics([name])
        except UnknownTopicOrPartition:
            nonlocal looked_at, made
            now = asyncio.get_running_loop().time()
            if now - looked_at >= _LOOK_FOR_LOGS_EVERY_S:
                looked_at, made = now, await _logs(admin, name)
            return Sight(None, False, "no such topic", made or None)
        leaders = [each.leader for each in found.partitions]
        is_whole = partitions is None or len(leaders) == partitions
        seen = f"{counted(len(leaders), 'partition')}, with the leaders {leaders}"
        led = len(leaders) - leaders.count(-1)
        is_ready = is_whole and -1 not in leaders
        # The producer may remember an earlier topic with this name and more partitions.
        if is_ready:
            await clients.look_at(name)
        return Sight(None, is_ready, seen, ("leaders", led))

    wanted = f"topic {name!r}"
    if partitions is not None:
        wanted += f" with {counted(partitions, 'partition')}"
    clients.wait(look, f"{wanted} and its leaders", timeout_s)
    return Topic(name, clients)


async def _logs(admin: Admin, name: str) -> int:
    """Return the number of a topic's replicas that are known to have been created."""
    try:
        described = await admin.describe_log_dirs()
    except (KafkaError, Unreachable):
        return 0
    directories = chain.from_iterable(described.values())
    return sum(each.topic == name for directory in directories for each in directory.replicas)


def _check(wanted: WantedTopic) -> None:
    arguments.topic_name(wanted.name, "name")
    for argument in ("partitions", "replication_factor"):
        number = getattr(wanted, argument)
        if number is not None:
            arguments.whole_number(number, argument, least=1, most=arguments.INT32_MAX)


def _new(wanted: WantedTopic) -> NewTopic:
    return NewTopic(
        wanted.name,
        wanted.partitions or -1,
        wanted.replication_factor or -1,
        configs=wanted.config,
    )


def _compare(wanted: WantedTopic, found: TopicDescription) -> None:
    counts = {
        "partitions": len(found.partitions),
        "replication_factor": len(found.partitions[0].replicas),
    }
    for argument, count in counts.items():
        number = getattr(wanted, argument)
        if number is not None and number != count:
            raise ValueError(
                f"{argument}: topic {wanted.name!r} exists, and has {count}, not {number}: "
                "choose another name, or delete it first"
            )
