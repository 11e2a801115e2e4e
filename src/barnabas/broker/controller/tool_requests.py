"""Processes requests that tools write to metadata nodes, as Kafka's own tools did before 2.4.

    /admin/preferred_replica_election  {"version":1,"partitions":[{"topic":"t","partition":0}]}
    /admin/reassign_partitions         the same, with "replicas":[1,2] for each

The controller removes a request when it has been carried out. An election is removed immediately,
and a reassignment when it has ended. If a tool finds the node, it reports that another operation is
in progress. An invalid request is logged and removed, so that it does not block later requests.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from typing import Any, Final

from barnabas.cluster.image import ClusterImage, PartitionImage
from barnabas.cluster.layout import CONTROLLER_EPOCH
from barnabas.cluster.store import Check, Delete, MetadataStore, NoNode, Operation, Set
from barnabas.controller.controller import Controller, Decision
from barnabas.errors import ElectionNotNeeded, KafkaError
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

ELECTION: Final = "/admin/preferred_replica_election"
MOVES: Final = "/admin/reassign_partitions"

CarryOut = Callable[[Callable[[Controller], Decision]], Awaitable[object]]
_Outcomes = dict[TopicPartition, KafkaError | None]


class ToolRequests:
    """Processes the requests of tools during one term. `carry_out` decides, commits and sends."""

    __slots__ = ("_carry_out", "_epoch_version", "_moves", "_store")

    def __init__(self, store: MetadataStore, epoch_version: int, carry_out: CarryOut) -> None:
        self._store = store
        self._epoch_version = epoch_version
        self._carry_out = carry_out
        self._moves: dict[TopicPartition, tuple[int, ...]] = {}
        """The reassignments listed in the node. Usually there are none."""

    async def process(self, changed: Container[str], image: Callable[[], ClusterImage]) -> None:
        """Process new requests, and remove finished ones. `image` returns the current image of the
        cluster.
        """
        if ELECTION in changed:
            names = await self._read(ELECTION)
            if names is not None:
                await self._elect(names)
        if MOVES in changed:
            self._moves = await self._read(MOVES) or {}
            await self._start(image())
        over = [name for name in self._moves if not _is_moving(image(), name)]
        if over:
            for name in over:
                del self._moves[name]
            await self._write(MOVES, self._moves)

    async def _elect(self, names: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        outcomes: _Outcomes = {}

        def decide(machine: Controller) -> Decision:
            decision, found = machine.elect_leaders(list(names), unclean=False)
            outcomes.update(found)
            return decision

        await self._carry_out(decide)
        for name, error in outcomes.items():
            # A tool lists all partitions, most of which already have their preferred leader.
            if error is not None and not isinstance(error, ElectionNotNeeded):
                _log.warning(
                    "%s: cannot elect the preferred leader of %s: %s", ELECTION, name, error
                )
        await self._write(ELECTION, {})

    async def _start(self, image: ClusterImage) -> None:
        wanted = {
            name: replicas
            for name, replicas in self._moves.items()
            if not _is_moving(image, name) and not _is_there(image, name, replicas)
        }
        if not wanted:
            return
        outcomes: _Outcomes = {}

        def decide(machine: Controller) -> Decision:
            decision, found = machine.reassign(wanted)
            outcomes.update(found)
            return decision

        await self._carry_out(decide)
        for name, error in outcomes.items():
            if error is not None:
                _log.warning("%s: cannot reassign %s: %s", MOVES, name, error)

    async def _read(self, path: str) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Return the requested partitions, or None if there is no valid request."""
        node = await self._store.read(path)
        if node is None:
            return None
        try:
            entries: list[Any] = json.loads(node.data or b"")["partitions"]
            return {
                TopicPartition(str(each["topic"]), int(each["partition"])): tuple(
                    map(int, each.get("replicas", ()))
                )
                for each in entries
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.error("removing malformed %s (%r): %r", path, error, node.data)
            await self._write(path, {})
            return None

    async def _write(self, path: str, left: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Write back what remains of a request.

        Has no effect if this controller has been deposed.
        """
        change: Operation = Delete(path)
        if left:
            entries = [
                {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
                for name, replicas in left.items()
            ]
            data = json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"))
            change = Set(path, data.encode())
        with suppress(NoNode):
            await self._store.commit([Check(CONTROLLER_EPOCH, self._epoch_version), change])


def _is_moving(image: ClusterImage, name: TopicPartition) -> bool:
    partition = _partition(image, name)
    return partition is not None and bool(partition.adding or partition.removing)


def _is_there(image: ClusterImage, name: TopicPartition, replicas: tuple[int, ...]) -> bool:
    partition = _partition(image, name)
    return partition is not None and partition.replicas == replicas


def _partition(image: ClusterImage, name: TopicPartition) -> PartitionImage | None:
    topic = image.topics.get(name.topic)
    return None if topic is None else topic.partitions.get(name.partition)
