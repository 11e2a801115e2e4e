"""A broker that does not clean by itself, and a cleaner for it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas import Broker
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.cleaner_parts import CleanerParts
from barnabas.broker.partitions.cleaner_schedule import CleanerSchedule
from barnabas.broker.partitions.log_cleaner import LogCleaner
from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from barnabas.protocol.api import CREATE_TOPICS, DELETE_TOPICS, FETCH, PRODUCE
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.records.record import BatchBuilder, Record
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.types import TopicPartition
from tests.kit.broker.fetches import fetch_request, only, records_in
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import PATIENCE_S, RawClient

T = TypeVar("T")


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "300",
    "min.cleanable.dirty.ratio": "0.01",
}


class Cleaned:
    """A broker that does not clean by itself, and a cleaner for it."""

    def __init__(self, broker: Broker, client: RawClient) -> None:
        self.broker = broker
        self.client = client

    @property
    def server(self) -> Server:
        return self.broker.server

    def config(self, settings: dict[str, str]) -> BrokerConfig:
        names = {name.replace("_", "."): text for name, text in settings.items()}
        return BrokerConfig(
            {**self.server.config.properties, "log.cleaner.enable": "true", **names}
        )

    def parts(self, settings: dict[str, str], *, inline: bool = False) -> CleanerParts:
        return CleanerParts(
            CurrentConfig(self.config(settings)),
            self.server.clock,
            self.server.node.replicas,
            self.server.parts.partitions.failures,
            OsFiles(),
            inline,
        )

    def cleaning(self, **settings: str) -> CleanerSchedule:
        """As it runs beside a broker; it has been started."""
        cleaning = CleanerSchedule(self.parts(settings))

        async def start() -> None:
            cleaning.start()

        self.run(start())
        return cleaning

    def cleaner(self, *, inline: bool = True, **settings: str) -> LogCleaner:
        return LogCleaner(self.parts(settings, inline=inline))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """On the broker's loop."""
        return self.broker.thread.run(work, PATIENCE_S)

    def log(self, topic: str) -> Log:
        return self.server.node.replicas.leader_of(TopicPartition(topic, 0)).log

    def create(self, topic: str, **settings: str) -> None:
        configs = COMPACTED | {name.replace("_", "."): text for name, text in settings.items()}
        wanted = CreatableTopic(
            name=topic,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=n, value=v) for n, v in configs.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)
        assert self.client.call(CREATE_TOPICS, 5, request).topics[0].error_code == 0

    def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000)
        assert self.client.call(DELETE_TOPICS, 5, request).responses[0].error_code == 0

    def produce(self, topic: str, *pairs: tuple[str, str | None]) -> None:
        """A batch for each pair."""
        for key, value in pairs:
            batch = BatchBuilder()
            batch.append(1_700_000_000_000, key.encode(), None if value is None else value.encode())
            answer = self.client.call(PRODUCE, 9, produce_request(topic, {0: batch.build()}))
            assert answer.responses[0].partition_responses[0].error_code == 0

    def fill(self, topic: str, count: int = 40) -> None:
        """Ten keys again and again, a few segments of them."""
        self.produce(topic, *((f"k{i % 10}", f"value {i}") for i in range(count)))

    def read(self, topic: str) -> list[Record]:
        found: list[Record] = []
        end = self.log(topic).log_end_offset
        offset = 0
        while offset < end:
            answer = only(self.client.call(FETCH, 11, fetch_request(topic, offset)))
            assert answer.error_code == 0
            more = [r for r in records_in(answer) if r.offset >= offset]
            if not more:
                break
            found += more
            offset = more[-1].offset + 1
        return found
