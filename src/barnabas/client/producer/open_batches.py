"""Implements the fast path: a record joins an open batch without any decision.

    send --> join --> the open batch of its topic, or of its key's partition
               `--> None: to `Intake`, which decides, and may open the batch for later records

When `Intake` decides to append a record to a batch, it opens the batch. The batch stays open for as
long as the same decision would be made again: for records without a key, until the partitioner
leaves the partition; for records with a key, until `batch.size` is reached. New metadata, a new
transaction state, a full buffer or a failure closes all open batches, so that new decisions are
made. An open batch accepts only records that consist of bytes and have no headers, timestamp or
explicit partition. All other records take the slow path.

Invariant: a batch is closed (`limit_bytes` is set to 0) before anything else for its partition is
queued behind it. Records that join a batch therefore stay in order within the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.client.cluster import Cluster
from barnabas.client.config import ProducerConfig
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord, ProducerBatch
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.partitioner import Partitioner
from barnabas.records.record import RECORD_OVERHEAD_BYTES

if TYPE_CHECKING:
    from barnabas.client.producer.open_records import OpenRecords


class OpenBatches:
    """The batches of a producer that records may join without a decision of their own."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        partitioner: Partitioner,
    ) -> None:
        self._metadata = cluster.metadata
        self._wall_ms = cluster.seams.clock.wall_ms
        self._batch_size = config.batch_size
        self._buffer_memory = config.buffer_memory
        self._accumulator = accumulator
        self._partitioner = partitioner
        self._by_topic: dict[str, ProducerBatch] = {}  # for records without a key
        self._by_partition: dict[tuple[str, int], ProducerBatch] = {}  # for records with a key

    def join(self, topic: str, value: Any, key: Any = None) -> Delivery | None:
        """Queue a record in a batch that is open for it. Returns None if a decision is needed.

        This duplicates the code with which `Intake` appends a record, and is inlined as far as
        possible, because it runs for every record.
        """
        try:
            batch = self._by_topic.get(topic) if key is None else self._for_key(topic, key)
        except TypeError:  # the topic or key is not hashable; the slow path rejects it
            return None
        if batch is None or type(value) is not bytes:
            return None
        added_bytes = len(value) + RECORD_OVERHEAD_BYTES
        if key is not None:
            added_bytes += len(key)
        size_bytes = batch.size_bytes + added_bytes
        accumulator = self._accumulator
        used_bytes = accumulator.used_bytes + added_bytes
        if size_bytes >= batch.limit_bytes or used_bytes > self._buffer_memory:
            return None
        batch.size_bytes = size_bytes
        accumulator.used_bytes = used_bytes
        records: OpenRecords = batch.records  # type: ignore[assignment]  # it is open
        timestamp_ms = self._wall_ms()
        index = len(records.values)
        if key is not None:
            # A record with a key does not count towards the partitioner's stay (PR-2).
            records.keys[index] = key
            batch.counted_bytes += added_bytes
        records.timestamps.append(timestamp_ms)
        records.values.append(value)
        return Delivery(batch, index, timestamp_ms)

    def join_record(self, record: CheckedRecord) -> Delivery | None:
        """Queue a checked record, as `join` does. Returns None if a decision is needed."""
        topic, value, key, partition, timestamp_ms, headers, _ = record
        if partition is None and timestamp_ms is None and not headers:
            return self.join(topic, value, key)
        return None

    def keep(self, batch: ProducerBatch, *, is_free: bool) -> None:
        """Let more records join this batch: keyless records only while the partitioner stays."""
        if not batch.limit_bytes:
            return  # another batch is queued behind it
        topic, partition = batch.topic_partition
        # A custom partitioner must be called for each record, because only the partitioner can tell
        # where the next record goes.
        if not self._partitioner.is_custom:
            self._by_partition[topic, partition] = batch
        stays_bytes = self._partitioner.stays_bytes(topic) if is_free else 0
        if stays_bytes > 0:
            self._by_topic[topic] = batch
            batch.counted_bytes = batch.size_bytes
            # A record that would exceed the stay needs a new decision, which may move on.
            batch.limit_bytes = min(self._batch_size, batch.size_bytes + stays_bytes)

    def close(self) -> None:
        """Close all batches, so that no record joins a batch until a new decision opens one."""
        self._by_partition.clear()
        for topic in list(self._by_topic):
            self.count(topic)

    def count(self, topic: str) -> ProducerBatch | None:
        """Make the partitioner count the records that joined the topic's open batch, if any."""
        batch = self._by_topic.pop(topic, None)
        if batch is not None:
            self._partitioner.on_appended(topic, batch.size_bytes - batch.counted_bytes)
            batch.counted_bytes = batch.size_bytes
        return batch

    def _for_key(self, topic: str, key: Any) -> ProducerBatch | None:
        """Return the batch that is open for this key, if any."""
        if not self._by_partition or type(key) is not bytes:
            return None
        view = self._metadata.view.topics.get(topic)
        if view is None:
            return None
        partition = self._partitioner.partition(topic, key, view.choice)
        return self._by_partition.get((topic, partition))
