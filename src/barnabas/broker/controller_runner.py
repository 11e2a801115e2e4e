"""The pump of the controller: gets this broker registered and elected, and drives the machine.

    watch fires -> read what is new -> decide -> commit -> apply -> deliver

One round at a time, in a task of its own; a watch only says that another round is due. Creating or
deleting a topic is a wish written to the store: it comes back through the watch, like anybody
else's, and whoever made it waits until a round has delivered what follows from it. There is no
second way, for one node either.

When a commit fails, somebody else is in charge or nobody knows what the store holds. Then the
runner resigns: it decides nothing any more, and says so to all who ask.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from barnabas.broker.registration import become_controller, ensure_base, register
from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.control import ControlRequest
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.loading import (
    children,
    load_brokers,
    load_topic,
    load_topic_paths,
    load_topics,
)
from barnabas.cluster.store import (
    BadVersion,
    Create,
    MetadataError,
    MetadataStore,
    NodeExists,
    Operation,
    Set,
)
from barnabas.controller.controller import Controller, Decision
from barnabas.controller.placement import Assignment, place
from barnabas.controller.topics import (
    NewTopic,
    check_assignment,
    check_collision,
    check_config,
    check_topic_name,
)
from barnabas.errors import (
    NotController,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

_log = logging.getLogger(__name__)

_PRODUCER_IDS_PER_BLOCK = 1000
_NO_TOPIC_ID = bytes(16)


class ControllerRunner:
    """The controller's office on this broker. `start` and `stop` are called once each."""

    __slots__ = (
        "_broker_id",
        "_clock",
        "_controller",
        "_deliver",
        "_due",
        "_failure",
        "_pump_task",
        "_random",
        "_store",
        "_waiting",
    )

    def __init__(
        self,
        store: MetadataStore,
        broker_id: int,
        clock: Clock,
        random: Random,
        deliver: Callable[[ControlRequest], None],
    ) -> None:
        """`deliver` gets what this broker is told, on the loop, in order, after the commit."""
        self._store = store
        self._broker_id = broker_id
        self._clock = clock
        self._random = random
        self._deliver = deliver
        self._controller: Controller | None = None
        self._failure: Exception | None = None
        self._due = asyncio.Event()
        self._pump_task: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for the end of the round begun next

    @property
    def image(self) -> ClusterImage:
        """What has been committed, as the controller knows it."""
        return self._office().image

    async def start(self, broker: BrokerImage, cluster_id: str | None = None) -> str:
        """Register, be elected, take up everything that the store holds; returns the cluster's id.

        `cluster_id`: the one in the data directories, if they have any. Everything is delivered
        when it returns. Raises ConfigError (id taken, another cluster) and CorruptData.
        """
        cluster_id = await ensure_base(self._store, cluster_id, self._random)
        await register(self._store, broker, self._clock)
        elected = await become_controller(self._store, self._broker_id, self._clock)
        if elected is None:
            raise NotController("another broker is the controller of this metadata store")
        epoch, epoch_version = elected
        topics = await load_topics(self._store)
        image = ClusterImage(
            cluster_id,
            self._broker_id,
            epoch,
            await load_brokers(self._store),
            topics,
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._controller = Controller(epoch_version, image)
        deleting = await children(self._store, layout.DELETE_TOPICS)
        await self._carry_out(self._controller.elected(deleting))
        await self._round()
        self._pump_task = asyncio.get_running_loop().create_task(self._pump())
        return cluster_id

    async def stop(self) -> None:
        """Decide nothing any more; whoever waits gets NotController."""
        if self._pump_task is not None:
            self._pump_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump_task
        self._resign(NotController("the broker is stopping"))

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make a topic, and return it when it has been delivered with its leaders.

        With `validate_only` nothing is made. Raises the KafkaError that a client must get:
        InvalidTopic, TopicAlreadyExists, InvalidConfig, InvalidPartitions,
        InvalidReplicationFactor, InvalidReplicaAssignment, NotController.
        """
        name, assignment = topic.name, topic.assignment
        image = self._office().image
        check_topic_name(name)
        if name in image.topics:
            raise TopicAlreadyExists(f"topic {name} exists already")
        check_collision(name, image.topics)
        if assignment is None:
            assignment = self._place(topic.partitions, topic.replication_factor)
        else:
            check_assignment(assignment, image.brokers)
        check_config(topic.configs)
        if validate_only:
            unled = {number: PartitionImage.never_led(ids) for number, ids in assignment.items()}
            return TopicImage(name, _NO_TOPIC_ID, unled, dict(topic.configs))
        await self._write_topic(name, assignment, topic.configs)
        await self._whole_round()
        created = self.image.topics.get(name)
        if created is None:
            raise UnknownTopicOrPartition(f"topic {name} was deleted as soon as it was created")
        return created

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with all of its records; returns when no trace is left in the store.

        Raises UnknownTopicOrPartition, NotController.
        """
        if name not in self._office().image.topics:
            raise UnknownTopicOrPartition(f"topic {name} does not exist")
        with suppress(NodeExists):  # somebody else's wish is as good as ours
            await self._commit([Create(layout.delete_topic_path(name))])
        await self._whole_round()

    async def allocate_producer_id_block(self) -> tuple[int, int]:
        """The first and the last of a thousand producer ids that nobody has had before."""
        while True:
            node = await self._store.read(layout.PRODUCER_ID_BLOCK)
            assert node is not None, f"{layout.PRODUCER_ID_BLOCK} is made at every start"
            previous = layout.decode_producer_id_block(node.data)
            first = 0 if previous is None else previous.last + 1
            block = ProducerIdBlock(self._broker_id, first, first + _PRODUCER_IDS_PER_BLOCK - 1)
            data = layout.encode_producer_id_block(block)
            try:
                await self._commit([Set(layout.PRODUCER_ID_BLOCK, data, node.version)])
            except BadVersion:
                continue  # another broker took that one
            return block.first, block.last

    def _place(self, partitions: int, replication_factor: int) -> Assignment:
        brokers = self._office().image.brokers
        racks = {broker.broker_id: broker.rack for broker in brokers.values()}
        start, shift = self._random.below(len(racks)), self._random.below(len(racks))
        return place(racks, partitions, replication_factor, start, shift)

    async def _write_topic(
        self, name: str, assignment: Assignment, configs: Mapping[str, str]
    ) -> None:
        """The wish: config and assignment. Its watcher does the rest."""
        config_path, config = layout.topic_config_path(name), layout.encode_config(configs)
        topic = layout.encode_topic(self._random.uuid(), assignment)
        # A config may be left of a topic that an administrator removed by hand.
        left_over = await self._store.read(config_path)
        operations: list[Operation] = [
            Create(config_path, config) if left_over is None else Set(config_path, config),
            Create(layout.topic_path(name), topic),
        ]
        try:
            await self._commit(operations)
        except NodeExists:
            raise TopicAlreadyExists(f"topic {name} exists already") from None

    async def _pump(self) -> None:
        while self._failure is None:
            await self._due.wait()
            came_before = len(self._waiting)
            try:
                await self._round()
            except Exception as error:
                # Whatever it is: to go on would be to decide on what is not known to be true.
                _log.exception("the controller resigns")
                self._resign(error)
            else:
                served, self._waiting = self._waiting[:came_before], self._waiting[came_before:]
                _complete(served)

    async def _whole_round(self) -> None:
        """Wait for a round that began after this call: it has seen whatever was committed."""
        self._office()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._due.set()
        await future

    async def _round(self) -> None:
        """Take up whatever has changed since the last round."""
        self._due.clear()
        # Watch first, read then: what changes in between makes another round.
        self._store.watch(layout.TOPICS, self._due.set)
        self._store.watch(layout.DELETE_TOPICS, self._due.set)
        controller = self._office()
        added = []
        for name in await children(self._store, layout.TOPICS):
            if name not in controller.image.topics:
                topic = await load_topic(self._store, name)
                if topic is not None:
                    added.append(topic)
        if added:
            await self._carry_out(controller.topics_added(added))
        wished = await children(self._store, layout.DELETE_TOPICS)
        if wished:
            await self._carry_out(controller.deletions_wished(wished))
            # Replicas are deleted when `deliver` has returned, so the nodes can go.
            paths = [path for name in wished for path in await load_topic_paths(self._store, name)]
            await self._carry_out(controller.replicas_deleted(wished, paths))

    async def _carry_out(self, decision: Decision) -> None:
        """Commit, apply, send; in this order, or nothing."""
        if decision.operations:
            await self._store.commit(decision.operations)
        self._office().apply(decision)
        for broker_id, request in decision.requests:
            assert broker_id == self._broker_id, f"no way yet to reach broker {broker_id}"
            try:
                self._deliver(request)
            except OSError as error:
                # A log that cannot be made or removed is that broker's trouble, and its clients
                # learn of it there; the other topics go on.
                _log.error("%s was not carried out: %s", type(request).__name__, error)

    async def _commit(self, operations: list[Operation]) -> None:
        """A commit outside of the rounds, on behalf of a client."""
        self._office()
        try:
            await self._store.commit(operations)
        except (NodeExists, BadVersion):
            raise
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error

    def _office(self) -> Controller:
        if self._failure is not None or self._controller is None:
            raise NotController(f"this broker is not the controller: {self._failure}")
        return self._controller

    def _resign(self, error: Exception) -> None:
        self._failure = self._failure or error
        waiting, self._waiting = self._waiting, []
        _complete(waiting, NotController(f"the controller resigned: {error}"))


def _complete(waiting: list[asyncio.Future[None]], error: Exception | None = None) -> None:
    for future in waiting:
        if future.done():  # cancelled: nobody waits any more
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
