"""How a test comes to a topic: creates it, or waits for the one that somebody else creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.embedded.client_thread import ClientThread
from barnabas.broker.embedded.topic import Topic
from barnabas.broker.embedded.waiting import Sight
from barnabas.client import arguments
from barnabas.client.admin.admin import NewTopic, TopicDescription
from barnabas.client.admin.admin_arguments import ConfigText
from barnabas.errors import TopicAlreadyExists, UnknownTopicOrPartition


class WantedTopic(NamedTuple):
    name: str
    partitions: int | None  # None: the broker's default, or whatever it has
    replication_factor: int | None  # as above
    config: Mapping[str, ConfigText]  # of a new one


def open_topic(wanted: WantedTopic, clients: ClientThread, timeout_s: float) -> Topic:
    """The topic, which is created unless it exists.

    Raises ValueError if it exists otherwise than wanted.
    """
    _check(wanted)

    async def open_it() -> None:
        admin = await clients.admin()
        try:
            await admin.create_topics([_new(wanted)])
        except TopicAlreadyExists:
            (found,) = await admin.describe_topics([wanted.name])
            _compare(wanted, found)

    clients.run(open_it, f"the creation of topic {wanted.name!r}", timeout_s)
    return wait_for_topic(wanted.name, None, clients, timeout_s)


def wait_for_topic(
    name: str, partitions: int | None, clients: ClientThread, timeout_s: float
) -> Topic:
    """The topic once it exists and each partition has a leader, or WaitTimeout."""
    arguments.topic_name(name, "name")

    async def look() -> Sight[None]:
        admin = await clients.admin()
        try:
            (found,) = await admin.describe_topics([name])
        except UnknownTopicOrPartition:
            return Sight(None, False, "no such topic")
        leaders = [each.leader for each in found.partitions]
        is_whole = partitions is None or len(leaders) == partitions
        seen = f"{len(leaders)} partitions, with the leaders {leaders}"
        return Sight(None, is_whole and -1 not in leaders, seen)

    wanted = f"topic {name!r}"
    if partitions is not None:
        wanted += f" with {partitions} partitions"
    clients.wait(look, f"{wanted} and its leaders", timeout_s)
    return Topic(name, clients)


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
