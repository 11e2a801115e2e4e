"""Asks brokers about topics, and about the offsets of partitions (first, last, or by time)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.client import arguments
from barnabas.client.offsets import EARLIEST, LATEST, OffsetAndTimestamp, OffsetFinder
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


class Lookups:
    """Provides the methods of `Consumer` that neither read records nor change positions."""

    _cluster: Cluster
    _offsets: OffsetFinder
    _api_timeout_ms: int

    # ---- offsets ----

    async def beginning_offsets(
        self, topic_partitions: arguments.Partitions
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition's first record, or its end offset if it is empty.

        Args:
            topic_partitions: one partition or a list; they need not be assigned.

        Raises:
            UnknownTopicOrPartition, UnknownPartition: a partition does not exist.
            Unreachable, KafkaError: no response within `default.api.timeout.ms`.
        """
        return await self._ends(topic_partitions, EARLIEST)

    async def end_offsets(
        self, topic_partitions: arguments.Partitions
    ) -> dict[TopicPartition, int]:
        """Return each partition's end offset, after the last record that this consumer may read.

        With `read_committed`, the end offset is not beyond the start of the first open transaction.
        The arguments and the errors are the same as for `beginning_offsets`.
        """
        return await self._ends(topic_partitions, LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offset of each partition's first record at or after the timestamp.

        Args:
            timestamps: ms since the epoch (UTC), by partition.

        Returns the record's offset, timestamp and leader epoch, or None if all records are older.
        The errors are the same as for `beginning_offsets`.
        """
        wanted = {
            name: arguments.whole_number(timestamp_ms, "timestamps")
            for name, timestamp_ms in arguments.by_partition(timestamps, "timestamps").items()
        }
        found = await self._offsets.find(wanted, self._api_timeout_ms)
        return {name: None if at.offset < 0 else at for name, at in found.items()}

    async def _ends(
        self, topic_partitions: arguments.Partitions, which: int
    ) -> dict[TopicPartition, int]:
        timestamps = dict.fromkeys(arguments.partitions([topic_partitions]), which)
        found = await self._offsets.find(timestamps, self._api_timeout_ms)
        return {name: at.offset for name, at in found.items()}

    # ---- topics ----

    async def partitions_for(self, topic: str) -> list[int]:
        """Ask a broker for the partition numbers of a topic.

        Raises:
            UnknownTopicOrPartition: the topic does not exist; the call does not create it.
        """
        # The metadata may be as old as metadata.max.age.ms. Forget the topic, so that a broker is
        # certain to be asked.
        self._cluster.metadata.forget(arguments.topic_name(topic))
        view = await self._cluster.metadata.topic(topic, self._api_timeout_ms, create=False)
        return list(view.partitions)

    partitions_for_topic = partitions_for  # name used by other clients

    async def available_partitions_for(self, topic: str) -> list[int]:
        """Return the partitions that have a leader according to the consumer's metadata.

        A broker is asked only if the topic is unknown. The errors are the same as for
        `partitions_for`.
        """
        view = await self._cluster.metadata.topic(
            arguments.topic_name(topic), self._api_timeout_ms, create=False
        )
        return list(view.choice.available)

    available_partitions_for_topic = available_partitions_for  # name used by other clients

    async def topics(self) -> set[str]:
        """Return the names of all topics, including internal topics."""
        return set(await self.list_topics())

    async def list_topics(self, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
        """Return topics with their partition numbers.

        Args:
            topics: the topics to return if they exist; None: every topic, including internal ones.
        """
        return {
            topic.name or "": sorted(each.partition_index for each in topic.partitions)
            for topic in await self._describe(topics)
        }

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """Return the ids (KIP-516), 16 bytes each, of the topics that exist and have an id.

        A topic that was deleted and recreated has a different id.
        """
        return {
            topic.name or "": bytes(topic.topic_id)
            for topic in await self._describe(topics)
            if any(topic.topic_id)
        }

    async def _describe(self, topics: Iterable[str] | None) -> list[MetadataResponseTopic]:
        wanted = None
        if topics is not None:
            names = dict.fromkeys(arguments.topic_names(topics))
            wanted = [MetadataRequestTopic(name=name) for name in names]

        async def attempt() -> list[MetadataResponseTopic]:
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            response = await self._cluster.call_any(METADATA, request, MetadataResponse)
            described = [topic for topic in response.topics if not topic.error_code]
            return sorted(described, key=lambda topic: topic.name or "")

        return await self._cluster.persist(attempt, self._api_timeout_ms)
