"""PR-2, PR-3: records that join a batch which a decision has opened, and those that may not."""

from __future__ import annotations

from barnabas.client.channel import system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, ProducerConfig
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord, ProducerBatch
from barnabas.client.producer.open_batches import OpenBatches
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.client.view import ClusterView, TopicView
from barnabas.records.record import record_size_bound
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
LIMIT = 500


class Open:
    """Open batches of a topic with one partition."""

    def __init__(self, **options: int) -> None:
        config = ProducerConfig(batch_size=LIMIT, **options)  # type: ignore[arg-type]
        seams = system_seams()
        cluster = Cluster("localhost:9", ClientConfig(), seams)
        choice = Partitions(1, (0,), 1)
        topic = TopicView("t", bytes(16), False, {}, choice)
        cluster.metadata.view = ClusterView(topics={"t": topic})
        self.accumulator = Accumulator(config)
        self.partitioner = Partitioner("sticky", seams.random, LIMIT)
        self.batches = OpenBatches(cluster, config, self.accumulator, self.partitioner)
        self.choice = choice

    def append(self, key: bytes | None = None) -> ProducerBatch:
        """Append a record by a decision, which opens its batch."""
        self.batches.count("t")
        self.partitioner.partition("t", key, self.choice)
        size_bytes = record_size_bound(key, b"v", ())
        record = CheckedRecord("t", b"v", key, None, None, (), size_bytes)
        batch, _ = self.accumulator.append(T0, record, 0, 0)
        if key is None:
            self.partitioner.on_appended("t", size_bytes)
        self.batches.keep(batch, is_free=key is None)
        return batch


def test_nothing_joins_before_a_decision() -> None:
    assert Open().batches.join("t", b"v") is None


def test_records_join_the_batch_of_the_decision() -> None:
    made = Open()
    batch = made.append()
    deliveries = [made.batches.join("t", b"v") for _ in range(3)]
    assert [each and (each.batch, each.index) for each in deliveries] == [
        (batch, 1),
        (batch, 2),
        (batch, 3),
    ]
    assert batch.record_count == 4
    assert made.accumulator.used_bytes == batch.size_bytes


def test_records_with_a_key_join_the_batch_of_its_partition() -> None:
    made = Open()
    batch = made.append(b"k")
    assert made.batches.join("t", b"v") is None, "the partitioner was not asked where to stay"
    joined = made.batches.join("t", b"v", b"other")
    assert joined is not None
    assert joined.batch is batch
    records = made.accumulator.unfinished_batches[0].records
    assert records is not None
    assert records.count == 2


def test_a_batch_never_passes_batch_size() -> None:
    made = Open()
    batch = made.append()
    while made.batches.join("t", b"x" * 50) is not None:
        assert batch.size_bytes < LIMIT
    assert batch.size_bytes > LIMIT - 100


def test_buffer_memory_bounds_what_joins() -> None:
    """PR-3: a record that finds no room is not counted."""
    made = Open(buffer_memory=150)
    made.append()
    before = made.accumulator.used_bytes
    assert made.batches.join("t", b"x" * 100) is None
    assert made.accumulator.used_bytes == before


def test_what_has_to_be_decided_does_not_join() -> None:
    made = Open()
    made.append()
    assert made.batches.join("t", bytearray(b"v")) is None, "it has to be copied"
    assert made.batches.join("t", None) is None
    assert made.batches.join("unknown", b"v") is None
    assert made.batches.join([], b"v") is None  # type: ignore[arg-type]  # refused by the check
    late = CheckedRecord("t", b"v", None, None, 7, (), 30)
    assert made.batches.join_record(late) is None, "it has a timestamp of its own"
    assert made.batches.join_record(late._replace(timestamp_ms=None)) is not None


def test_closed_batches_take_no_more_and_the_partitioner_counts_what_joined() -> None:
    """PR-2: the partition is left after `batch.size` bytes, however the records came in."""
    made = Open()
    made.append()
    made.append(b"k")
    joined = made.batches.join("t", b"v" * 20)
    assert joined is None, "the last decision was about a key"
    made.append()
    left = made.partitioner.stays_bytes("t")
    assert made.batches.join("t", b"v" * 20) is not None
    made.batches.close()
    assert made.batches.join("t", b"v") is None
    assert made.batches.join("t", b"v", b"k") is None
    assert made.partitioner.stays_bytes("t") < left - 20


def test_a_batch_that_was_taken_is_not_open() -> None:
    made = Open()
    batch = made.append()
    batch.encode()
    assert made.batches.join("t", b"v") is None
