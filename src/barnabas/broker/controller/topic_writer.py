"""Checks clients' changes to topics and writes them to the metadata store.

A written change reaches the controller by its watches, like the change of any broker; nothing is
carried out here. All topics of one request are one commit, which costs one wait for the disk. If
another broker was faster, they are tried one by one, and each gets its own answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.clock import Random
from barnabas.cluster import layout
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.store import (
    BadVersion,
    Create,
    MetadataError,
    MetadataStore,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Znode,
)
from barnabas.controller.placement import Assignment, place, place_more
from barnabas.controller.topics import (
    NewTopic,
    check_added_replicas,
    check_assignment,
    check_collision,
    check_config,
    check_growth,
    check_new_partitions,
)
from barnabas.errors import (
    InvalidPartitions,
    InvalidTopic,
    KafkaError,
    NotController,
    ReassignmentInProgress,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.topic_name import check_topic_name

_INSERTED_AT_ONCE = 1000  # topics per commit, which is one frame of the journal


class Growth(NamedTuple):
    """The partitions that a topic has, and those to be added."""

    existing: Mapping[int, Sequence[int]]
    added: Assignment


_READS = 3  # of possible remains of a deleted topic, before a topic of that name is written


class TopicWriter:
    """Checks and writes topics."""

    __slots__ = ("_image", "_random", "_store")

    def __init__(
        self, store: MetadataStore, random: Random, image: Callable[[], ClusterImage]
    ) -> None:
        """`image` returns the cluster as known here, or raises NotController."""
        self._store = store
        self._random = random
        self._image = image

    # --- new topics ------------------------------------------------------------------------------

    def check(self, topics: Sequence[NewTopic]) -> list[Assignment | KafkaError]:
        """Return each topic's placement, or its refusal, in Kafka's order of checks."""
        image = self._image()
        names = set(image.topics)
        outcomes: list[Assignment | KafkaError] = []
        for topic in topics:
            try:
                # Names that come earlier in the same request also count.
                if topic.name in names:
                    raise TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
                assignment = self._assign(topic, image)
                check_topic_name(topic.name)
                check_collision(topic.name, names)
                check_config(topic.configs)
            except KafkaError as error:
                outcomes.append(error.with_traceback(None))  # without the frames of all of them
            else:
                outcomes.append(assignment)
                names.add(topic.name)
        return outcomes

    def _assign(self, topic: NewTopic, image: ClusterImage) -> Assignment:
        if topic.assignment is not None:
            check_assignment(topic.assignment, image.brokers)
            return topic.assignment
        check_new_partitions(topic.partitions)
        racks = _racks(image)
        limit = max(len(racks), 1)  # a broker that has just started knows none, and `place` refuses
        start, shift = self._random.below(limit), self._random.below(limit)
        return place(racks, topic.partitions, topic.replication_factor, start, shift)

    async def create(self, topics: Sequence[tuple[NewTopic, Assignment]]) -> dict[str, KafkaError]:
        """Write these checked topics; returns errors for those that already exist, by name."""
        failures: dict[str, KafkaError] = {}
        for first in range(0, len(topics), _INSERTED_AT_ONCE):
            some = topics[first : first + _INSERTED_AT_ONCE]
            try:
                await self._insert(some)
            except NodeExists:
                for each in some:
                    try:
                        await self._insert([each])
                    except NodeExists:
                        name = each[0].name
                        failures[name] = TopicAlreadyExists(f"Topic '{name}' already exists.")
        return failures

    async def _insert(self, topics: Iterable[tuple[NewTopic, Assignment]]) -> None:
        """Write each topic's config and assignment; the controller's watch does the rest."""
        some = tuple(topics)
        for reads_left in reversed(range(_READS)):
            operations: list[Operation] = []
            for topic, assignment in some:
                path = layout.topic_config_path(topic.name)
                config = layout.encode_config(topic.configs)
                # If an administrator removed a topic by hand, its config may still exist.
                left_over = await self._read(path)
                operations.append(Create(path, config) if left_over is None else Set(path, config))
                node = layout.encode_topic(self._random.uuid(), assignment)
                operations.append(Create(layout.topic_path(topic.name), node))
            try:
                await self.commit(operations)
                return
            except NoNode:
                # The config belonged to an earlier topic, whose deletion has just been completed.
                if not reads_left:
                    raise

    # --- more partitions -------------------------------------------------------------------------

    async def grow(
        self,
        topic: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> Growth:
        """Give a topic `total` partitions; with `validate_only` only place them.

        Raises UnknownTopicOrPartition, InvalidTopic (if the topic is being deleted),
        ReassignmentInProgress, InvalidPartitions, InvalidReplicaAssignment, PolicyViolation,
        InvalidReplicationFactor or NotController.
        """
        path = layout.topic_path(topic)
        while True:
            image = self._image()
            if await self._read(layout.delete_topic_path(topic)) is not None:
                raise InvalidTopic("The topic is queued for deletion.")
            # The store and its version decide, because several clients may enlarge one topic.
            node = await self._read(path)
            if node is None:
                raise UnknownTopicOrPartition(f"The topic '{topic}' does not exist.")
            before = layout.decode_topic(topic, node.data)
            # As in Kafka, a topic that is being reassigned does not grow.
            if before.adding or before.removing:
                raise ReassignmentInProgress(
                    f"A partition reassignment is in progress for the topic '{topic}'."
                )
            if 0 not in before.replicas:
                raise InvalidPartitions(
                    f"topic {topic} has no partition 0 to take the replication factor from"
                )
            check_growth(topic, len(before.replicas), total)
            if assignment is None:
                added = place_more(_racks(image), before.replicas, total)
            else:
                added = check_added_replicas(before.replicas, assignment, total, image.brokers)
            growth = Growth(before.replicas, added)
            if validate_only:
                return growth
            known = image.topics.get(topic)  # its node may have lost the id to an old tool
            topic_id = before.topic_id or (known and known.topic_id) or self._random.uuid()
            data = layout.encode_topic_node(
                before._replace(
                    topic_id=topic_id,
                    replicas={**before.replicas, **added},
                )
            )
            with suppress(BadVersion, NoNode):  # another broker has written it: reread
                await self.commit([Set(path, data, node.version)])
                return growth

    # --- deletion --------------------------------------------------------------------------------

    async def delete(self, names: Sequence[str]) -> None:
        """Request the deletion of these topics; topics already requested are ignored."""
        operations: list[Operation] = [Create(layout.delete_topic_path(name)) for name in names]
        try:
            await self.commit(operations)
        except NodeExists:
            for operation in operations:
                with suppress(NodeExists):
                    await self.commit([operation])

    # ---------------------------------------------------------------------------------------------

    async def commit(self, operations: Sequence[Operation]) -> None:
        """Commit for a client, which asks another broker if the store fails.

        Raises NotController, NodeExists, NoNode or BadVersion.
        """
        self._image()
        try:
            await self._store.commit(operations)
        except (NodeExists, NoNode, BadVersion):
            raise
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error

    async def _read(self, path: str) -> Znode | None:
        """Read for a client. Raises NotController as `commit` does."""
        try:
            return await self._store.read(path)
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker.broker_id: broker.rack for broker in image.brokers.values()}
