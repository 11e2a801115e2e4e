"""What clients want of topics: looked at, and written to the metadata store.

A wish that is written comes back to the controller by its watches, like anybody else's; nothing is
carried out here. All that one request wants is one commit, so it costs one wait for the disk. If
somebody else was faster, the wishes are tried one by one, and each gets its own answer.
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
    check_topic_name,
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

_INSERTED_AT_ONCE = 1000  # topics; a commit is one frame of the journal


class Growth(NamedTuple):
    """What a topic gets, beside the partitions that it has."""

    existing: Mapping[int, Sequence[int]]
    added: Assignment


_LOOKS = 3  # at what may be left of a topic, before its namesake is written


class Wishes:
    """Checks and writes; `image_of`: the cluster as it is known here, if it may be changed from
    here: it raises NotController else."""

    __slots__ = ("_image_of", "_random", "_store")

    def __init__(
        self, store: MetadataStore, random: Random, image_of: Callable[[], ClusterImage]
    ) -> None:
        self._store = store
        self._random = random
        self._image_of = image_of

    # --- new topics ------------------------------------------------------------------------------

    def check(self, topics: Sequence[NewTopic]) -> list[Assignment | KafkaError]:
        """Where the replicas of each shall be, or why it cannot be, in Kafka's order of checks."""
        image = self._image_of()
        names = set(image.topics)
        outcomes: list[Assignment | KafkaError] = []
        for topic in topics:
            try:
                if topic.name in names:
                    raise TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
                assignment = self._assign(topic, image)
                check_topic_name(topic.name)
                check_collision(topic.name, names)
                check_config(topic.configs)
            except KafkaError as error:
                outcomes.append(error)
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
        limit = max(len(racks), 1)  # a broker that has just come knows of none, and is told so
        start, shift = self._random.below(limit), self._random.below(limit)
        return place(racks, topic.partitions, topic.replication_factor, start, shift)

    async def create(self, topics: Sequence[tuple[NewTopic, Assignment]]) -> dict[str, KafkaError]:
        """Write these topics, which have been checked; by name, those that exist already."""
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
        """Config and assignment of each. Their watcher does the rest."""
        some = tuple(topics)
        for looks_left in reversed(range(_LOOKS)):
            operations: list[Operation] = []
            for topic, assignment in some:
                path = layout.topic_config_path(topic.name)
                config = layout.encode_config(topic.configs)
                # A config may be left of a topic that an administrator removed by hand.
                left_over = await self._read(path)
                operations.append(Create(path, config) if left_over is None else Set(path, config))
                node = layout.encode_topic(self._random.uuid(), assignment)
                operations.append(Create(layout.topic_path(topic.name), node))
            try:
                await self.commit(operations)
                return
            except NoNode:
                # The config was that of a namesake whose deletion has just come to its end.
                if not looks_left:
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
        """Give a topic `total` partitions; with `validate_only` only say where they would be.

        Raises UnknownTopicOrPartition, InvalidTopic for one that is being deleted,
        ReassignmentInProgress, InvalidPartitions, InvalidReplicaAssignment, PolicyViolation,
        InvalidReplicationFactor, NotController.
        """
        path = layout.topic_path(topic)
        while True:
            image = self._image_of()
            if await self._read(layout.delete_topic_path(topic)) is not None:
                raise InvalidTopic("The topic is queued for deletion.")
            # The store's word counts, and its version: several may want to enlarge one topic.
            node = await self._read(path)
            if node is None:
                raise UnknownTopicOrPartition(f"The topic '{topic}' does not exist.")
            before = layout.decode_topic(topic, node.data)
            if before.adding or before.removing:
                raise ReassignmentInProgress(
                    f"A partition reassignment is in progress for the topic '{topic}'."
                )
            if 0 not in before.replicas:
                raise InvalidPartitions(f"topic {topic} has no partition 0 to go on from")
            check_growth(topic, len(before.replicas), total)
            if assignment is None:
                added = place_more(_racks(image), before.replicas, total)
            else:
                added = check_added_replicas(before.replicas, assignment, total, image.brokers)
            growth = Growth(before.replicas, added)
            if validate_only:
                return growth
            data = layout.encode_topic_node(
                before._replace(
                    topic_id=before.topic_id or self._random.uuid(),
                    replicas={**before.replicas, **added},
                )
            )
            with suppress(BadVersion, NoNode):  # then look again at what somebody else made of it
                await self.commit([Set(path, data, node.version)])
                return growth

    # --- deletion --------------------------------------------------------------------------------

    async def delete(self, names: Sequence[str]) -> None:
        """Write that these topics shall go; somebody else's wish is as good as ours."""
        operations: list[Operation] = [Create(layout.delete_topic_path(name)) for name in names]
        try:
            await self.commit(operations)
        except NodeExists:
            for operation in operations:
                with suppress(NodeExists):
                    await self.commit([operation])

    # ---------------------------------------------------------------------------------------------

    async def commit(self, operations: Sequence[Operation]) -> None:
        """Commit on behalf of a client, who is told to ask another broker if the store fails.

        Raises NotController, and NodeExists, NoNode and BadVersion as they are.
        """
        self._image_of()
        try:
            await self._store.commit(operations)
        except (NodeExists, NoNode, BadVersion):
            raise
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error

    async def _read(self, path: str) -> Znode | None:
        """Read on behalf of a client; raises NotController as `commit` does."""
        try:
            return await self._store.read(path)
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker.broker_id: broker.rack for broker in image.brokers.values()}
