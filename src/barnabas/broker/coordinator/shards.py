"""Manages a coordinator's shards, one for each partition of the coordinator's topic that this
broker leads.

A shard is created when the broker becomes the partition's leader and dropped when the broker is no
longer the leader. First, the partition must be loaded by reading it from the beginning in slices.
Until that is complete, requests are answered with COORDINATOR_LOAD_IN_PROGRESS. There are no
snapshots, but compaction limits how much has to be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Generic

from barnabas.broker.coordinator.pending_reply import Fail, ShardOutcome
from barnabas.broker.coordinator.shard import Ask, M, Shard, ShardContext
from barnabas.broker.coordinator.shard_loading import Decode, replay
from barnabas.broker.coordinator.state_replica import StateReplica
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptData,
    KafkaError,
    NotCoordinator,
    is_out_of_descriptors,
)

_log = logging.getLogger(__name__)

_AGAIN_AFTER_S = 1.0  # retry interval when no file descriptor is free

_EXPECTED = (CorruptData, KafkaError, OSError)

Make = Callable[[int, int], M]
"""Creates an empty machine for a partition in a coordinator epoch."""


class Shards(Generic[M]):
    """Loads and drops shards, and finds the shard for a group or transactional id."""

    __slots__ = (
        "_context",
        "_count",
        "_decode",
        "_loaded",
        "_loader",
        "_loading",
        "_make",
        "_refused",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        make: Make[M],
        decode: Decode,
        context: ShardContext,
        count: Callable[[], int],
    ) -> None:
        """`decode` decodes records of the topic, and `count` returns the number of
        its partitions.
        """
        self.topic = topic
        self._make = make
        self._decode = decode
        self._context = context
        self._count = count
        self._loaded: dict[int, Shard[M]] = {}
        self._loading: deque[StateReplica] = deque()
        self._refused: set[int] = set()  # partitions that could not be read
        self._loader: asyncio.Task[None] | None = None

    def partition_of(self, key: str) -> int:
        """Return the partition for this key.

        Raises CoordinatorNotAvailable until the topic exists.
        """
        count = self._count()
        if not count:
            raise CoordinatorNotAvailable(f"{self.topic} does not exist yet")
        return partition_of(key, count)

    def shard_of(self, key: str) -> Shard[M]:
        """Return the shard for this group or transactional id.

        Raises NotCoordinator, CoordinatorLoadInProgress or CoordinatorNotAvailable.
        """
        partition = self.partition_of(key)
        shard = self._loaded.get(partition)
        if shard is not None:
            return shard
        name = f"{self.topic}-{partition}"
        if partition in self._refused:
            raise CoordinatorNotAvailable(
                f"{name} cannot be read; see the broker's log for the reason"
            )
        if any(replica.topic_partition.partition == partition for replica in self._loading):
            raise CoordinatorLoadInProgress(f"{name} is being loaded")
        raise NotCoordinator(f"this broker does not lead {name}")

    def ask(self, key: str, decide: Ask[M], fail: Fail) -> ShardOutcome:
        """Ask the machine that is in charge of the key. If asking fails, `fail` builds the
        response.
        """
        try:
            shard = self.shard_of(key)
        except KafkaError as error:
            return fail(error)
        return shard.ask(decide, fail)

    @property
    def ready(self) -> list[Shard[M]]:
        """Return all shards that have been loaded, ordered by partition."""
        return [self._loaded[partition] for partition in sorted(self._loaded)]

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def shard_at(self, partition: int) -> Shard[M] | None:
        """Return the shard for this partition if it is ready."""
        return self._loaded.get(partition)

    # --- loading and dropping --------------------------------------------------------------------

    def take(self, replica: StateReplica) -> None:
        """Load the partition, which this broker now leads in a new epoch."""
        self.drop(replica.topic_partition.partition)
        # If the log is empty, it does not have to wait for other partitions to be loaded.
        if replica.log.log_start_offset == replica.log.log_end_offset:
            self._begin(replica, self._new_machine(replica))
            return
        self._loading.append(replica)
        if self._loader is None:
            self._loader = asyncio.get_running_loop().create_task(self._load())

    def drop(self, partition: int) -> None:
        """Drop the partition, because this broker no longer leads it or because its log is
        offline.
        """
        shard = self._loaded.pop(partition, None)
        if shard is not None:
            shard.drop()
        self._refused.discard(partition)
        self._loading = deque(
            replica for replica in self._loading if replica.topic_partition.partition != partition
        )

    def close(self) -> None:
        """Fail all requests that are still waiting, and stop loading."""
        self._loading.clear()
        if self._loader is not None:
            self._loader.cancel()
        for partition in list(self._loaded):
            self.drop(partition)

    async def _load(self) -> None:
        """Load one partition at a time, because concurrent loads would only delay each other."""
        while self._loading:
            replica = self._loading[0]
            partition = replica.topic_partition.partition
            epoch = replica.partition.leader_epoch
            machine, context, log = self._new_machine(replica), self._context, replica.log
            try:
                steps = replay(log, machine, self._decode, context.load_bytes, context.pool)
                async for _ in steps:
                    if self._is_overtaken(replica, epoch):
                        break
            except Exception as error:  # continue with the next partitions even after a bug
                if isinstance(error, OSError) and is_out_of_descriptors(error):
                    replica.fail(error)  # this logs the error once
                    await asyncio.sleep(_AGAIN_AFTER_S)
                elif not self._is_overtaken(replica, epoch) and replica.log is log:  # not moved
                    self._loading.popleft()
                    self._refuse(partition, error)
                continue
            if self._is_overtaken(replica, epoch):
                continue
            self._loading.popleft()
            self._begin(replica, machine)
        self._loader = None

    def _is_overtaken(self, replica: StateReplica, epoch: int) -> bool:
        """Return whether this load is obsolete because the partition has been dropped or is being
        loaded again.
        """
        return (
            not self._loading
            or self._loading[0] is not replica
            or replica.partition.leader_epoch != epoch
        )

    def _new_machine(self, replica: StateReplica) -> M:
        return self._make(replica.topic_partition.partition, replica.partition.leader_epoch)

    def _begin(self, replica: StateReplica, machine: M) -> None:
        shard = Shard(replica, machine, self._context, _fail)
        self._loaded[shard.partition] = shard
        shard.begin()

    def _refuse(self, partition: int, error: Exception) -> None:
        self._refused.add(partition)
        _log.error(
            "%s-%d cannot be loaded: %s. The groups or transactions that it coordinates are "
            "unavailable; everything else works. Check it with `barnabas dump --verify`; restore "
            "it from a replica or a backup, or move its directory elsewhere, and restart the "
            "broker",
            self.topic,
            partition,
            error,
            exc_info=None if isinstance(error, _EXPECTED) else error,
        )


def _fail(replica: StateReplica, error: OSError) -> None:
    """Mark the replica as failed after a failed append.

    `Shards.drop` then drops its shard as well.
    """
    replica.fail(error)
