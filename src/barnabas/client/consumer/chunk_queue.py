"""Queues fetched chunks until a poll takes them, and counts their bytes. Pure.

Invariant: the chunks of a partition are taken in the order in which they arrived, though chunks of
other partitions may be taken in between. A chunk is valid while its partition is still in the
generation in which the chunk was fetched. A seek or a rebalance makes the chunk stale; stale chunks
are dropped when the queue reaches them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container

from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.consumer.fetched import Chunk
from barnabas.types import TopicPartition

_Entry = tuple[AssignedPartition, int, Chunk]  # the int is the generation of the fetch


class ChunkQueue:
    """A queue of chunks, oldest first. `AssignedPartition.buffered` counts a partition's chunks."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self.size_bytes = 0

    def put(self, state: AssignedPartition, chunk: Chunk) -> None:
        """Append a chunk, which must be the newest of its partition."""
        state.buffered += 1
        self._entries.append((state, state.generation, chunk))
        self.size_bytes += len(chunk.records)

    def take(
        self, only: Container[TopicPartition] | None = None
    ) -> tuple[AssignedPartition, Chunk] | None:
        """Take the oldest valid chunk whose partition is not paused.

        If `only` is given, chunks of other partitions are left in the queue.
        """
        passed: list[_Entry] = []
        found: tuple[AssignedPartition, Chunk] | None = None
        while self._entries and found is None:
            state, generation, chunk = entry = self._entries.popleft()
            if not state.is_current(generation):
                self.size_bytes -= len(chunk.records)
            elif state.paused or (only is not None and state.topic_partition not in only):
                passed.append(entry)
            else:
                self.size_bytes -= len(chunk.records)
                state.buffered -= 1
                found = state, chunk
        # Put them back at the front, ahead of any later chunks of their partitions.
        self._entries.extendleft(reversed(passed))
        return found

    def take_each(self) -> list[tuple[AssignedPartition, Chunk]]:
        """Take the oldest valid chunk of each partition that is not paused."""
        taken: dict[TopicPartition, tuple[AssignedPartition, Chunk]] = {}
        for _ in range(len(self._entries)):
            state, generation, chunk = entry = self._entries.popleft()
            if state.is_current(generation) and (state.paused or state.topic_partition in taken):
                self._entries.append(entry)
                continue
            self.size_bytes -= len(chunk.records)
            if state.is_current(generation):
                state.buffered -= 1
                taken[state.topic_partition] = state, chunk
        return list(taken.values())

    def drop_paused(self) -> None:
        """Drop the chunks of paused partitions. They are fetched again after `resume`."""
        for state, generation, _ in self._entries:
            if state.paused and state.is_current(generation):
                state.refetch()
        kept = [entry for entry in self._entries if entry[0].is_current(entry[1])]
        self._entries = deque(kept)
        self.size_bytes = sum(len(chunk.records) for _, _, chunk in kept)
