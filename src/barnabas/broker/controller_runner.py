"""The pump of the controller: gets this broker registered and elected, and drives the machine.

    watch fires -> read what is new -> decide -> commit -> apply -> deliver

One round at a time, in a task of its own; a watch only says that another round is due. Creating,
enlarging or deleting a topic is a wish written to the store: it comes back through the watch, like
anybody else's, and whoever made it waits until a round has delivered what follows from it. There is
no second way, for one node either.

When a commit fails, somebody else is in charge or nobody knows what the store holds. Then the
runner resigns: it decides nothing any more, and says so to all who ask.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from barnabas.broker.registration import (
    become_controller,
    ensure_base,
    give_topic_ids,
    register,
)
from barnabas.broker.wishes import Wishes
from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.control import ControlRequest, UpdateMetadata
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.loading import (
    LatestEpochOf,
    children,
    load_added_partitions,
    load_brokers,
    load_topic,
    load_topic_config,
    load_topic_paths,
    load_topics,
    no_log,
)
from barnabas.cluster.store import BadVersion, MetadataStore, Set
from barnabas.controller.controller import Controller, Decision
from barnabas.controller.placement import Assignment
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    KafkaError,
    NotController,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_PRODUCER_IDS_PER_BLOCK = 1000
_NO_TOPIC_ID = bytes(16)
_PARTITIONS_AT_ONCE = 16
"""Made or removed between two looks at what else there is to do; each costs file operations."""


class ControllerRunner:
    """The controller's office on this broker. `start` and `stop` are called once each."""

    __slots__ = (
        "_broker_id",
        "_clock",
        "_controller",
        "_deliver",
        "_due",
        "_epoch_version",
        "_failure",
        "_halted",
        "_latest_epoch_of",
        "_lost",
        "_pump_task",
        "_random",
        "_reconfigured",
        "_store",
        "_touched",
        "_waiting",
        "_wishes",
    )

    def __init__(
        self,
        store: MetadataStore,
        broker_id: int,
        clock: Clock,
        random: Random,
        deliver: Callable[[ControlRequest], object],
        latest_epoch_of: LatestEpochOf = no_log,
    ) -> None:
        """`deliver` hands a request to this broker; it must not await, and may raise OSError.

        `latest_epoch_of`: what this broker's logs know of leader epochs that the store has lost.
        """
        self._store = store
        self._broker_id = broker_id
        self._clock = clock
        self._random = random
        self._deliver = deliver
        self._latest_epoch_of = latest_epoch_of
        self._wishes = Wishes(store, random, lambda: self.image)
        self._controller: Controller | None = None
        self._epoch_version = -1
        self._failure: Exception | None = None
        self._pump_task: asyncio.Task[None] | None = None
        self._due = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for the end of the round begun next
        # What the next round has to look at, beside the lists of topics and of deletions.
        self._touched: set[str] = set()  # topics whose node has changed
        self._reconfigured: set[str] = set()
        self._lost: dict[TopicPartition, None] = {}  # with a log directory
        self._halted: set[str] = set()  # topics that go when all their replicas are back

    @property
    def image(self) -> ClusterImage:
        """What has been committed, as the controller knows it."""
        return self._office().image

    @property
    def known_partitions(self) -> frozenset[TopicPartition]:
        """Every partition that has a replica on this broker; what else it hosts is a stray."""
        return frozenset(
            TopicPartition(topic.name, number)
            for topic in self.image.topics.values()
            for number, partition in topic.partitions.items()
            if self._broker_id in partition.replicas
        )

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
        epoch, self._epoch_version = elected
        names = await children(self._store, layout.TOPICS)
        await give_topic_ids(self._store, names, self._epoch_version, self._random)
        self._watch_topics(names)
        topics = await load_topics(self._store, self._latest_epoch_of)
        image = ClusterImage(
            cluster_id,
            self._broker_id,
            epoch,
            await load_brokers(self._store),
            topics,
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._controller = Controller(self._epoch_version, image)
        deleting = await children(self._store, layout.DELETE_TOPICS)
        await self._carry_out(self._controller.elected(deleting))
        await self._round()
        if self._waiting:  # a directory may have failed while its partitions were made
            self._due.set()
        self._pump_task = asyncio.get_running_loop().create_task(self._pump())
        return cluster_id

    async def stop(self) -> None:
        """Decide nothing any more; whoever waits gets NotController."""
        if self._pump_task is not None:
            self._pump_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump_task
        self._resign(NotController("the broker is stopping"))

    # --- what clients want -----------------------------------------------------------------------

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make a topic, and return it when it has been delivered with its leaders.

        With `validate_only` nothing is made. Raises the KafkaError that a client must get:
        InvalidTopic, TopicAlreadyExists, InvalidConfig, InvalidPartitions, PolicyViolation,
        InvalidReplicationFactor, InvalidReplicaAssignment, NotController.
        """
        (outcome,) = await self.create_topics([topic], validate_only=validate_only)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicImage | KafkaError]:
        """As `create_topic` for each, all in one commit and one round; what fails is returned."""
        checked = self._wishes.check(topics)
        accepted = [
            (topic, assignment)
            for topic, assignment in zip(topics, checked, strict=True)
            if not isinstance(assignment, KafkaError)
        ]
        failures: dict[str, KafkaError] = {}
        if accepted and not validate_only:
            failures = await self._wishes.create(accepted)
            await self._whole_round()
        outcomes: list[TopicImage | KafkaError] = []
        for topic, assignment in zip(topics, checked, strict=True):
            if isinstance(assignment, KafkaError):
                outcomes.append(assignment)
            elif validate_only:
                outcomes.append(_not_yet(topic, assignment))
            else:
                outcomes.append(failures.get(topic.name) or self._created(topic.name))
        return outcomes

    def _created(self, name: str) -> TopicImage | KafkaError:
        created = self.image.topics.get(name)
        if created is None:
            return UnknownTopicOrPartition(f"topic {name} was deleted as soon as it was created")
        return created

    async def create_partitions(
        self,
        topic: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> TopicImage:
        """Let a topic have `total` partitions, and return it when the new ones have leaders (TP-5).

        `assignment`: the replicas of each new one, in the order of their numbers; else they are
        placed. No record moves. With `validate_only` nothing is made, and the answer is the same.
        Raises what `Wishes.grow` does.
        """
        existing, added = await self._wishes.grow(
            topic, total, assignment, validate_only=validate_only
        )
        if validate_only:
            known = self.image.topics.get(topic) or _not_yet(NewTopic(topic), {})
            return known._replace(partitions={**known.partitions, **_never_led(added)})
        _log.warning(
            "topic %s has %d partitions now and had %d: a key may go to another partition than "
            "before, so records of one key are in order only among those that follow",
            topic,
            total,
            len(existing),
        )
        await self._whole_round()
        grown = self._created(topic)
        if isinstance(grown, KafkaError):
            raise grown
        return grown

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with all of its records; returns when no trace is left in the store.

        Raises UnknownTopicOrPartition, RequestTimedOut if a log directory that holds a part of it
        has failed (it goes when that is back), NotController.
        """
        (error,) = await self.delete_topics([name])
        if error is not None:
            raise error

    async def delete_topics(self, names: Sequence[str]) -> list[KafkaError | None]:
        """As `delete_topic` for each, all in one commit and one round; what fails is returned."""
        known = [name for name in dict.fromkeys(names) if name in self.image.topics]
        if known:
            await self._wishes.delete(known)
            await self._whole_round()
        outcomes: list[KafkaError | None] = []
        for name in names:
            if name not in known:
                outcomes.append(UnknownTopicOrPartition(f"topic {name} does not exist"))
            elif name in self._halted:
                outcomes.append(
                    RequestTimedOut(
                        f"topic {name} is being deleted, but a part of it lies in a log directory "
                        "that has failed: it goes when that is back"
                    )
                )
            else:
                outcomes.append(None)
        return outcomes

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
                await self._wishes.commit([Set(layout.PRODUCER_ID_BLOCK, data, node.version)])
            except BadVersion:
                continue  # another broker took that one
            return block.first, block.last

    # --- what this broker tells ------------------------------------------------------------------

    async def replicas_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """This broker has lost these with a log directory; returns when everybody knows."""
        self._lost.update(dict.fromkeys(partitions))
        await self._whole_round()

    async def topic_config_changed(self, topic: str) -> None:
        """A topic's config node has been written; returns when every broker has what it says."""
        self._reconfigured.add(topic)
        await self._whole_round()

    # --- rounds ----------------------------------------------------------------------------------

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
        await self._take_up_new_topics()
        await self._take_up_touched_topics()
        await self._take_up_configs()
        if self._lost:
            lost, self._lost = self._lost, {}
            await self._carry_out(self._office().replicas_offline(self._broker_id, lost))
        await self._take_up_deletions()

    async def _take_up_new_topics(self) -> None:
        known = self._office().image.topics
        names = [name for name in await children(self._store, layout.TOPICS) if name not in known]
        if not names:
            return
        await give_topic_ids(self._store, names, self._epoch_version, self._random)
        self._watch_topics(names)
        loaded = [await load_topic(self._store, name, self._latest_epoch_of) for name in names]
        added = [topic for topic in loaded if topic is not None]
        if added:
            await self._carry_out(self._office().topics_added(added))

    async def _take_up_touched_topics(self) -> None:
        """A topic that was touched may have grown."""
        topics = self._office().image.topics
        touched, self._touched = self._touched, set()
        names = sorted(name for name in touched if name in topics and name not in self._halted)
        self._watch_topics(names)
        grown = []
        for name in names:
            added = await load_added_partitions(self._store, topics[name], self._latest_epoch_of)
            if added:
                partitions = {**topics[name].partitions, **added}
                grown.append(topics[name]._replace(partitions=partitions))
        if grown:
            await self._carry_out(self._office().partitions_added(grown))

    async def _take_up_configs(self) -> None:
        topics = self._office().image.topics
        names, self._reconfigured = self._reconfigured, set()
        configs = {}
        for name in sorted(names):
            if name in topics:
                configs[name] = await load_topic_config(self._store, name)
        if configs:
            await self._carry_out(self._office().configs_changed(configs))

    async def _take_up_deletions(self) -> None:
        controller = self._office()
        wished = [
            name
            for name in await children(self._store, layout.DELETE_TOPICS)
            if name not in self._halted
        ]
        if not wished:
            return
        await self._carry_out(controller.deletions_wished(wished))
        self._halted.update(name for name in wished if _is_offline(controller.image, name))
        deleted = [name for name in wished if name not in self._halted]
        # Replicas are deleted when `deliver` has returned, so the nodes can go.
        paths = [path for name in deleted for path in await load_topic_paths(self._store, name)]
        if paths:
            await self._carry_out(controller.replicas_deleted(deleted, paths))

    def _watch_topics(self, names: Sequence[str]) -> None:
        for name in names:
            self._store.watch(layout.topic_path(name), partial(self._topic_touched, name))

    def _topic_touched(self, name: str) -> None:
        self._touched.add(name)
        self._due.set()

    async def _carry_out(self, decision: Decision) -> None:
        """Commit, apply, send; in this order, or nothing."""
        if decision.operations:
            await self._store.commit(decision.operations)
        self._office().apply(decision)
        for broker_id, request in decision.requests:
            assert broker_id == self._broker_id, f"no way yet to reach broker {broker_id}"
            for part in _parts(request):
                try:
                    self._deliver(part)
                except OSError as error:
                    # A log that cannot be made or removed is that broker's trouble, and its
                    # clients learn of it there; the other topics go on.
                    _log.error("%s was not carried out: %s", type(part).__name__, error)
                if part is not request:
                    await asyncio.sleep(0)

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


def _parts(request: ControlRequest) -> Iterator[ControlRequest]:
    """The same request in pieces that do not keep the broker from its clients for long."""
    if isinstance(request, UpdateMetadata) or len(request.partitions) <= _PARTITIONS_AT_ONCE:
        yield request
        return
    for first in range(0, len(request.partitions), _PARTITIONS_AT_ONCE):
        some = request.partitions[first : first + _PARTITIONS_AT_ONCE]
        yield request._replace(partitions=some)  # type: ignore[arg-type]


def _is_offline(image: ClusterImage, name: str) -> bool:
    """Whether a replica of this topic cannot be deleted at the moment."""
    topic = image.topics.get(name)
    return topic is not None and any(each.offline_replicas for each in topic.partitions.values())


def _not_yet(topic: NewTopic, assignment: Assignment) -> TopicImage:
    """A topic as it would be."""
    return TopicImage(topic.name, _NO_TOPIC_ID, _never_led(assignment), dict(topic.configs))


def _never_led(assignment: Assignment) -> dict[int, PartitionImage]:
    return {number: PartitionImage.never_led(replicas) for number, replicas in assignment.items()}
