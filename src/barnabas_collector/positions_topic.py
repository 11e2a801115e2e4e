"""Creates the positions topic, rejects a topic that would lose positions, and reads the topic to
its end.

Compaction keeps each file's last position, no matter how long the file is idle.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.admin.configs import TOPIC, ConfigResource
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.offsets import LATEST
from barnabas.errors import ConfigError, KafkaError, TopicAlreadyExists
from barnabas.types import TopicPartition
from barnabas_collector.positions import POSITIONS_TOPIC, Positions
from barnabas_collector.shipment import Shipment
from barnabas_collector.topic_end import records_until

_log = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
_POSITIONS: Final = TopicPartition(POSITIONS_TOPIC, 0)


async def prepare_positions_topic(admin: Admin, topic: str = POSITIONS_TOPIC) -> None:
    """Create the topic if it does not exist.

    Raises `ConfigError` if the topic would delete positions by age or size, because everything
    would then be sent again.
    """
    try:
        new = NewTopic(topic, 1, configs={_POLICY: "compact"})
        await admin.create_topics([new])
        return
    # Another collector, or an administrator with a different policy, may have created it.
    except TopicAlreadyExists:
        pass
    try:
        entries = await admin.describe_configs(ConfigResource(TOPIC, topic), [_POLICY])
    except KafkaError as error:  # this user may be allowed only to read and write
        _log.warning("cannot check that %s=compact for %s: %s", _POLICY, topic, error)
        return
    for entry in entries:
        # Also reject `compact,delete`, which deletes the position of an idle file after a while.
        if entry.name == _POLICY and entry.value != "compact":
            raise ConfigError(
                f"{topic} has {_POLICY}={entry.value}, so its positions will be "
                "deleted, after which everything is sent again; to change it, run barnabas "
                f"configs alter --topic {topic} --add {_POLICY}=compact"
            )


class PositionsReader:
    """Reads the positions topic. Use it as an async context manager."""

    def __init__(self, shipment: Shipment, positions: Positions) -> None:
        servers, options = shipment.bootstrap_servers, shipment.client_options
        self._positions = positions
        self._admin = Admin(servers, **options)
        # The topic also contains the positions of aborted transactions, whose lines were not
        # committed.
        self._consumer = Consumer(servers, **options, isolation_level="read_committed")
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> PositionsReader:
        await self._stack.enter_async_context(self._admin)
        await self._stack.enter_async_context(self._consumer)
        self._consumer.assign([_POSITIONS])
        await self._consumer.seek_to_beginning()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def read_to_end(self) -> None:
        """Read up to the current end of the topic.

        This waits for other collectors' open transactions in the topic.
        """
        # The end is the high watermark, not the last stable offset. This waits for open
        # transactions, because one of them may contain the start of a successor.
        end = (await self._admin.list_offsets({_POSITIONS: LATEST}))[_POSITIONS].offset
        async for records in records_until(self._consumer, {_POSITIONS: end}):
            for record in records:
                self._positions.load(record.key, record.value)
