"""Validates the changes that clients make to topics, and writes them to the metadata store.

This module only writes the changes. The controller is notified by its watches and applies them. All
topics in a request are written in one commit, which needs only one disk sync. If that commit
conflicts with another broker, the topics are written one at a time, each with its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.broker.controller.topic_causes import TopicCauses
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

_INSERTED_AT_ONCE = 1000  # topics per commit and therefore per journal record


class Growth(NamedTuple):
    """The existing partitions of a topic, and the partitions that will be added."""

    existing: Mapping[int, Sequence[int]]
    added: Assignment


_READS = 3  # attempts to remove the rest of a deleted topic before its name is used again


class TopicWriter:
    """Checks changes to topics and writes them."""

    __slots__ = ("_causes", "_image", "_random", "_store")

    def __init__(
        self,
        store: MetadataStore,
        random: Random,
        causes: TopicCauses,
        image: Callable[[], ClusterImage],
    ) -> None:
        """`image` returns the cluster as far as this broker knows it, or raises NotController."""
        self._causes = causes
        self._store = store
        self._random = random
        self._image = image

    # --- new topics ------------------------------------------------------------------------------

    def check(self, topics: Sequence[NewTopic]) -> list[Assignment | KafkaError]:
        """Return the placement of each topic, or the error if the topic is rejected. The checks are
        in Kafka's order.
        """
        image = self._image()
        names = set(image.topics)
        outcomes: list[Assignment | KafkaError] = []
        for topic in topics:
            try:
                # A topic that appears earlier in the same request also counts as existing.
                if topic.name in names:
                    raise TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
                assignment = self._assign(topic, image)
                check_topic_name(topic.name)
                check_collision(topic.name, names)
                check_config(topic.configs)
            except KafkaError as error:
                outcomes.append(error.with_traceback(None))  # without tracebacks
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
        limit = max(len(racks), 1)  # right after startup there are none, so `place` fails
        start, shift = self._random.below(limit), self._random.below(limit)
        return place(racks, topic.partitions, topic.replication_factor, start, shift)

    async def create(self, topics: Sequence[tuple[NewTopic, Assignment]]) -> dict[str, KafkaError]:
        """Write the topics that passed `check`. Return errors, by name, for topics that already
        exist.
        """
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
        """Write the config and the assignment of each topic."""
        some = tuple(topics)
        for reads_left in reversed(range(_READS)):
            operations: list[Operation] = []
            for topic, assignment in some:
                path = layout.topic_config_path(topic.name)
                config = layout.encode_config(topic.configs)
                # An administrator may have removed a topic by hand and left its config behind.
                left_over = await self._read(path)
                operations.append(Create(path, config) if left_over is None else Set(path, config))
                topic_id = self._random.uuid()
                # The controller may read the topic before this commit has returned.
                self._causes.note(topic_id, topic.cause)
                node = layout.encode_topic(topic_id, assignment)
                operations.append(Create(layout.topic_path(topic.name), node))
            try:
                await self.commit(operations)
                return
            except NoNode:
                # The config belonged to an earlier topic, which was deleted in the meantime.
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
        """Increase the number of partitions of a topic to `total`. If `validate_only`, only compute
        the placement.

        Raises UnknownTopicOrPartition, InvalidTopic (if the topic is being deleted),
        ReassignmentInProgress, InvalidPartitions, InvalidReplicaAssignment, PolicyViolation,
        InvalidReplicationFactor or NotController.
        """
        path = layout.topic_path(topic)
        while True:
            image = self._image()
            if await self._read(layout.delete_topic_path(topic)) is not None:
                raise InvalidTopic("The topic is queued for deletion.")
            # Use the data version in the store, because several clients may be adding partitions to
            # the same topic.
            node = await self._read(path)
            if node is None:
                raise UnknownTopicOrPartition(f"The topic '{topic}' does not exist.")
            before = layout.decode_topic(topic, node.data)
            # As in Kafka, partitions cannot be added to a topic while it is being reassigned.
            if before.adding or before.removing:
                raise ReassignmentInProgress(
                    f"A partition reassignment is in progress for the topic '{topic}'."
                )
            if 0 not in before.replicas:
                raise InvalidPartitions(
                    f"topic {topic} has no partition 0 from which to take the replication factor"
                )
            check_growth(topic, len(before.replicas), total)
            if assignment is None:
                added = place_more(_racks(image), before.replicas, total)
            else:
                added = check_added_replicas(before.replicas, assignment, total, image.brokers)
            growth = Growth(before.replicas, added)
            if validate_only:
                return growth
            topic_id = before.topic_id
            if topic_id is None:
                known = image.topics.get(topic)  # an old tool may have removed the id from the node
                topic_id = self._random.uuid() if known is None else known.topic_id
            data = layout.encode_topic_node(
                before._replace(
                    topic_id=topic_id,
                    replicas={**before.replicas, **added},
                )
            )
            with suppress(BadVersion, NoNode):  # if another broker wrote the node, read again
                await self.commit([Set(path, data, node.version)])
                return growth

    # --- deletion --------------------------------------------------------------------------------

    async def delete(self, names: Sequence[str]) -> None:
        """Request the deletion of these topics, ignoring topics whose deletion has already been
        requested.
        """
        operations: list[Operation] = [Create(layout.delete_topic_path(name)) for name in names]
        try:
            await self.commit(operations)
        except NodeExists:
            for operation in operations:
                with suppress(NodeExists):
                    await self.commit([operation])

    # ---------------------------------------------------------------------------------------------

    async def commit(self, operations: Sequence[Operation]) -> None:
        """Commit on behalf of a client. If the store fails, raise NotController, so that the client
        tries another broker.

        May raise NotController, NodeExists, NoNode or BadVersion.
        """
        self._image()
        try:
            await self._store.commit(operations)
        except (NodeExists, NoNode, BadVersion):
            raise
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error

    async def _read(self, path: str) -> Znode | None:
        """Read on behalf of a client. Raises NotController if the store fails, as `commit` does."""
        try:
            return await self._store.read(path)
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker.broker_id: broker.rack for broker in image.brokers.values()}
