"""Creates a coordinator's internal topic when a client first needs it (TP-8).

Any broker can create internal topics, so clients do not have to contact the controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.counted import counted
from barnabas.errors import (
    CoordinatorNotAvailable,
    InvalidReplicationFactor,
    KafkaError,
    TopicAlreadyExists,
)
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from barnabas.cluster.image import TopicImage
    from barnabas.config import BrokerConfig
    from barnabas.controller.topics import NewTopic

    CreateTopics = Callable[[Sequence[NewTopic]], Awaitable[list[TopicImage | KafkaError]]]

_log = logging.getLogger(__name__)

REPLICATION_FACTORS = {
    GROUP_TOPIC: "offsets.topic.replication.factor",
    TRANSACTION_TOPIC: "transaction.state.log.replication.factor",
}
"""The setting that contains the replication factor of each topic."""
_MIN_ISR = "transaction.state.log.min.isr"


class InternalTopics:
    """Creates each internal topic only once, even if many clients need it at the same time."""

    __slots__ = ("_create_topics", "_making", "_refused")

    def __init__(self, create_topics: CreateTopics) -> None:
        """`create_topics` creates topics and, once this broker knows them, returns each topic or
        its failure.
        """
        self._create_topics = create_topics
        self._making: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, str] = {}  # the last one logged, because clients ask every second

    async def make(
        self, name: str, config: BrokerConfig, charge: Callable[[int], None], origin: str
    ) -> None:
        """Wait until the topic exists. Raises CoordinatorNotAvailable, with the reason, if the
        topic cannot be created.

        `charge` is called with the number of partitions if this call creates the topic. `origin`
        describes the request that needs the topic.
        """
        task = self._making.get(name)
        # Clients retry every second, so requests that arrive at the same time share one attempt to
        # create the topic.
        if task is None:
            task = asyncio.get_running_loop().create_task(self._make(name, config, charge, origin))
            self._making[name] = task
            task.add_done_callback(lambda _: self._making.pop(name, None))
        await shielded(task)

    async def _make(
        self, name: str, config: BrokerConfig, charge: Callable[[int], None], origin: str
    ) -> None:
        topic = offsets_topic(config) if name == GROUP_TOPIC else transactions_topic(config)
        topic = topic._replace(cause=f"the first {origin}")
        # Do not create the topic if no transaction could ever be completed with it.
        if reason := _unwritable(topic, config):
            raise self._refusal(name, reason)
        try:
            (outcome,) = await self._create_topics([topic])
        except KafkaError as error:
            outcome = error
        # Another broker created the topic in the meantime.
        if isinstance(outcome, TopicAlreadyExists):
            self._refused.pop(name, None)
            return
        if isinstance(outcome, KafkaError):
            raise self._refusal(name, _reason(name, config, outcome)) from outcome
        charge(topic.partitions)
        self._refused.pop(name, None)
        _log.info("created %s with %s", name, counted(topic.partitions, "partition"))

    def _refusal(self, name: str, reason: str) -> CoordinatorNotAvailable:
        """Return the error. It is logged unless it is the same as the last one logged."""
        text = f"{name} cannot be created: {reason}"
        if self._refused.get(name) != text:
            self._refused[name] = text
            _log.error("%s", text)
        return CoordinatorNotAvailable(text)


def _unwritable(topic: NewTopic, config: BrokerConfig) -> str:
    """Return why records could never be written to the topic, or "" if they can be."""
    min_isr = int(topic.configs.get("min.insync.replicas", 1))
    if min_isr <= topic.replication_factor:
        return ""
    key = REPLICATION_FACTORS[topic.name]
    return (
        f"{_MIN_ISR} is {min_isr}{_origin(config, _MIN_ISR)}, and {key} is only "
        f"{topic.replication_factor}{_origin(config, key)}: no write could ever be acknowledged; "
        f"set {_MIN_ISR} to {topic.replication_factor} or less, or {key} to {min_isr} or more, "
        "and restart this broker"
    )


def _origin(config: BrokerConfig, key: str) -> str:
    return "" if config.is_set(key) else ", its default"


def _reason(name: str, config: BrokerConfig, outcome: KafkaError) -> str:
    """Return the reason. It names the setting if there are too few brokers for the replication
    factor.
    """
    if not isinstance(outcome, InvalidReplicationFactor):
        return str(outcome)
    key = REPLICATION_FACTORS[name]
    return (
        f"{key} is {config.int(key)}{_origin(config, key)}: {outcome}; start more brokers, or "
        f"set {key} to the number of brokers that there will be and restart this one"
    )


def offsets_topic(config: BrokerConfig) -> NewTopic:
    """Return `__consumer_offsets` as configured by `offsets.topic.*`."""
    from barnabas.controller.topics import NewTopic  # loaded with the first topic

    return NewTopic(
        GROUP_TOPIC,
        config.int("offsets.topic.num.partitions"),
        _for_one_node(config, REPLICATION_FACTORS[GROUP_TOPIC]),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
        },
    )


def transactions_topic(config: BrokerConfig) -> NewTopic:
    """Return `__transaction_state` as configured by `transaction.state.log.*`."""
    from barnabas.controller.topics import NewTopic  # loaded with the first topic

    return NewTopic(
        TRANSACTION_TOPIC,
        config.int("transaction.state.log.num.partitions"),
        _for_one_node(config, REPLICATION_FACTORS[TRANSACTION_TOPIC]),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(_for_one_node(config, _MIN_ISR)),
            "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        },
    )


def _for_one_node(config: BrokerConfig, key: str) -> int:
    """Return the replication factor, which on a standalone broker is 1 instead of Kafka's default
    of 3.

    A value that has been set explicitly is not changed, and creating the topic fails if there are
    too few brokers for it.
    """
    is_alone = not config.str("zookeeper.connect")
    return 1 if is_alone and not config.is_set(key) else config.int(key)
