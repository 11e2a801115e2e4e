"""CO-2, TP-2: what is fetched and not polled yet keeps the order of each partition."""

from __future__ import annotations

from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.consumer.chunk_queue import ChunkQueue
from barnabas.client.consumer.fetched import Chunk
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition


class Queue:
    """Two partitions, and chunks of one record each, by name."""

    def __init__(self, *names: str) -> None:
        self.chunks = ChunkQueue()
        self.states = {topic: AssignedPartition(TopicPartition(topic, 0), "none") for topic in "AB"}
        for state in self.states.values():
            state.seek(0)
        for name in names:
            topic, offset = name
            builder = BatchBuilder()
            builder.append(1_000, None, b"value")
            records = memoryview(builder.build(int(offset)))
            state = self.states[topic]
            self.chunks.put(state, Chunk(state.topic_partition, int(offset), records))

    def take(self, *only: str) -> str | None:
        names = {self.states[topic].topic_partition for topic in only}
        found = self.chunks.take(names or None)
        return None if found is None else f"{found[1].topic_partition.topic}{found[1].offset}"

    def rest(self) -> list[str]:
        taken = []
        while (name := self.take()) is not None:
            taken.append(name)
        return taken


def test_a_paused_partition_keeps_its_order_while_others_are_read() -> None:
    queue = Queue("A0", "B0", "A1")
    queue.states["A"].paused = True
    assert queue.take() == "B0"
    queue.states["A"].paused = False
    assert queue.rest() == ["A0", "A1"]
    assert (queue.chunks.size_bytes, queue.states["A"].buffered) == (0, 0)


def test_a_partition_that_is_not_asked_for_keeps_its_order() -> None:
    queue = Queue("A0", "B0", "A1", "B1")
    assert queue.take("B") == "B0"
    assert queue.rest() == ["A0", "A1", "B1"]


def test_nothing_is_found_and_nothing_is_lost() -> None:
    queue = Queue("A0", "A1")
    size_bytes = queue.chunks.size_bytes
    assert queue.take("B") is None
    assert queue.chunks.size_bytes == size_bytes > 0
    assert queue.rest() == ["A0", "A1"]


def test_what_was_fetched_before_a_seek_is_dropped() -> None:
    queue = Queue("A0", "B0", "A1")
    queue.states["A"].seek(7)
    assert queue.rest() == ["B0"]
    assert queue.chunks.size_bytes == 0


def test_one_chunk_of_each_partition_is_taken_in_order() -> None:
    queue = Queue("A0", "B0", "A1", "B1", "A2")
    taken = [chunk.offset for _, chunk in queue.chunks.take_each()]
    assert taken == [0, 0]
    assert queue.rest() == ["A1", "B1", "A2"]


def test_room_is_made_of_what_paused_partitions_have() -> None:
    queue = Queue("A0", "B0", "A1")
    queue.states["A"].paused = True
    queue.chunks.drop_paused()
    assert queue.states["A"].buffered == 0
    queue.states["A"].paused = False
    assert queue.rest() == ["B0"]
    assert queue.chunks.size_bytes == 0
