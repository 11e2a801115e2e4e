"""Chooses the partition of a record (PR-2): by key, or by one of three rules if it has no key.

Pure: entropy is passed in as `Random`. A partition is available if it has a leader. If no partition
has a leader, any partition may be chosen, and the record waits in the accumulator until there is a
leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.client.arguments import INT64_MAX, whole_number
from barnabas.client.config import ChoosePartition
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.clock import Random

_ANY_SIZE = 2**31
_REMEMBERED_KEYS = 8_192
_REMEMBERED_KEY_BYTES = 64


class Partitions(NamedTuple):
    """The partitions of a topic in one generation of the metadata."""

    partition_count: int
    available: tuple[int, ...]  # partitions with a leader, ascending
    generation: int  # grows by one with each metadata refresh

    def candidates(self) -> tuple[int, ...] | range:
        return self.available or range(self.partition_count)


class Keyless(Protocol):
    """A rule that chooses partitions for records without a key."""

    def choose(self, topic: str, partitions: Partitions) -> int: ...

    def on_appended(self, topic: str, size_bytes: int) -> None: ...

    def stays_bytes(self, topic: str) -> int: ...


class _Stay:
    """The partition that currently receives the records of a topic that have no key."""

    __slots__ = ("generation", "partition", "sent_bytes")

    def __init__(self, partition: int, generation: int) -> None:
        self.partition = partition
        self.generation = generation
        self.sent_bytes = 0


class Sticky:
    """Stays with a random available partition for `batch.size` bytes, so that batches fill up.

    Because it counts bytes instead of batches, a slow broker receives no more than its share
    (KIP-794).
    """

    def __init__(self, random: Random, batch_size: int) -> None:
        self._random = random
        self._batch_size = batch_size
        self._stays: dict[str, _Stay] = {}

    def choose(self, topic: str, partitions: Partitions) -> int:
        stay = self._stays.get(topic)
        # In the common case, there is no new metadata, so the partition still has its leader.
        if (
            stay is not None
            and stay.sent_bytes < self._batch_size
            and stay.generation == partitions.generation
        ):
            return stay.partition
        candidates: Sequence[int] = partitions.candidates()
        if stay is not None and stay.partition in candidates:
            if stay.sent_bytes < self._batch_size:
                # New metadata is no reason to leave a batch half full.
                stay.generation = partitions.generation
                return stay.partition
            if len(candidates) > 1:
                # Choose a different partition each time (KIP-480), so that none gets two batches in
                # a row.
                candidates = [number for number in candidates if number != stay.partition]
        chosen = candidates[self._random.below(len(candidates))]
        self._stays[topic] = _Stay(chosen, partitions.generation)
        return chosen

    def on_appended(self, topic: str, size_bytes: int) -> None:
        stay = self._stays.get(topic)
        if stay is not None:
            stay.sent_bytes += size_bytes

    def stays_bytes(self, topic: str) -> int:
        stay = self._stays.get(topic)
        return 0 if stay is None else self._batch_size - stay.sent_bytes


class RoundRobin:
    """Uses the next partition for each record, after a random start (Kafka's default up to 2.3)."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next: dict[str, int] = {}

    def choose(self, topic: str, partitions: Partitions) -> int:
        turn = self._next.get(topic)
        if turn is None:
            # Otherwise, the first records of all producers would go to partition 0.
            turn = self._random.below(2**31)
        self._next[topic] = turn + 1
        candidates = partitions.candidates()
        return candidates[turn % len(candidates)]

    def on_appended(self, topic: str, size_bytes: int) -> None:
        """Do nothing, because sizes do not matter to this rule."""

    def stays_bytes(self, topic: str) -> int:
        return 0


class RandomUntilRefresh:
    """Uses one random available partition until the next metadata refresh (as in Kafka 0.8)."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._current: dict[str, tuple[int, int]] = {}  # topic -> (generation, partition)

    def choose(self, topic: str, partitions: Partitions) -> int:
        generation, chosen = self._current.get(topic, (-1, -1))
        if generation != partitions.generation:
            candidates = partitions.candidates()
            chosen = candidates[self._random.below(len(candidates))]
            self._current[topic] = (partitions.generation, chosen)
        return chosen

    def on_appended(self, topic: str, size_bytes: int) -> None:
        """Do nothing, because sizes do not matter to this rule."""

    def stays_bytes(self, topic: str) -> int:
        return _ANY_SIZE


class Partitioner:
    """Applies the rule of a producer, which is one of the names for `partitioner` or a callable."""

    def __init__(self, rule: str | ChoosePartition, random: Random, batch_size: int) -> None:
        self._custom = None if isinstance(rule, str) else rule
        self._keyless: Keyless
        if rule == "round-robin":
            self._keyless = RoundRobin(random)
        elif rule == "random-until-refresh":
            self._keyless = RandomUntilRefresh(random)
        else:
            self._keyless = Sticky(random, batch_size)
        self._by_key: dict[tuple[bytes, int], int] = {}

    @property
    def is_custom(self) -> bool:
        return self._custom is not None

    def partition(self, topic: str, key: bytes | None, partitions: Partitions) -> int:
        """Return the number of the partition for a record without an explicit partition."""
        if self._custom is not None:
            chosen = self._custom(topic, key, range(partitions.partition_count))
            # Accept any int, because the later error for a wrong number includes the topic.
            chosen = whole_number(chosen, "partitioner", least=-INT64_MAX)
            if not 0 <= chosen < partitions.partition_count:
                raise ValueError(
                    f"the partitioner chose partition {chosen} of {topic}, "
                    f"which has {partitions.partition_count}"
                )
            return chosen
        if key is None:
            return self._keyless.choose(topic, partitions)
        # Hashing costs half a microsecond per four bytes, and keys recur.
        known = self._by_key.get((key, partitions.partition_count))
        if known is None:
            known = partition_for_key(key, partitions.partition_count)
            if len(key) > _REMEMBERED_KEY_BYTES:
                return known  # long keys are not cached, to save memory
            if len(self._by_key) >= _REMEMBERED_KEYS:
                self._by_key.clear()
            self._by_key[key, partitions.partition_count] = known
        return known

    def on_appended(self, topic: str, size_bytes: int) -> None:
        """Count a record without a key, of this size, towards the partition chosen last."""
        self._keyless.on_appended(topic, size_bytes)

    def stays_bytes(self, topic: str) -> int:
        """Return how many more bytes of keyless records may go to the last chosen partition."""
        return 0 if self._custom is not None else self._keyless.stays_bytes(topic)
