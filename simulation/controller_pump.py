"""The controller's office on a simulated broker: campaigns, reads, decides, commits, tells.

The machine is the real one, and so are the reading of topics, the book of deletions and the nodes
by which brokers tell of failed log directories; this is the smallest shell that they can have. A
commit that fails, or of which nobody knows, ends in reading everything again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.controller.topic_deletion import TopicDeletions
from barnabas.broker.controller.topic_nodes import TopicNodes
from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    IsrAnswer,
    LeaderAndIsr,
    StopReplica,
)
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.loading import children, load_brokers
from barnabas.cluster.store import Create, MetadataError, Operation, SessionExpired, Set
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision, split
from barnabas.controller.guard import LogEnd, Settings
from barnabas.errors import KafkaError, KafkaStorageError, NotController
from barnabas.types import TopicPartition
from simulation.channels import Channels
from simulation.network import Reply
from simulation.wire import (
    AskEnd,
    EndAnswer,
    ProposeToController,
    ShutdownAnswer,
    WishShutdown,
)
from simulation.world import Promise

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

_CALL_TIMEOUT_MS = 1000
_RETRY_MS = 70
_ASK_ENDS_EVERY_MS = 150


class _Work(NamedTuple):
    """Something to decide; `done` hears whether it was carried out."""

    decide: Callable[[Controller], Decision]
    done: Callable[[bool], None]


class ControllerPump:
    """One broker's; in office it has a `controller`."""

    __slots__ = (
        "_asks_ends",
        "_broker",
        "_channels",
        "_deletions",
        "_due",
        "_lost",
        "_topics",
        "_touched",
        "_wake",
        "_watchers",
        "_works",
        "controller",
        "epoch_version",
    )

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self.controller: Controller | None = None
        self.epoch_version = -1
        self._watchers = {  # in the order in which they are looked at
            layout.BROKER_IDS: self._take_up_brokers,
            layout.TOPICS: self._take_up_topics,
            log_dir_notifications.PATH: self._take_up_log_dir_events,
            layout.DELETE_TOPICS: self._take_up_deletions,
        }
        self._due: dict[str, None] = {}  # of those paths, what has changed
        self._touched: dict[str, None] = {}  # topics whose node has changed
        self._lost: list[tuple[int, Sequence[TopicPartition], int]] = []
        self._deletions = TopicDeletions()
        self._topics: TopicNodes | None = None
        self._works: deque[_Work] = deque()
        self._channels = Channels(broker, self._answered)
        self._asks_ends: Controller | None = None  # on whose behalf replicas are being asked
        self._wake: Promise[None] = Promise()

    def start(self) -> None:
        self._broker.cluster.world.start(self._broker.life, self._run())

    def session_expired(self) -> None:
        self._resign("its session is over")
        self._woken()

    async def _run(self) -> None:
        broker = self._broker
        while True:
            self._wake = Promise()
            try:
                if self.controller is None:
                    await self._campaign()
                elif not await self._round():
                    await self._wake
            except SessionExpired:
                self._resign("its session is over")
                await broker.cluster.world.sleep(broker.life, _RETRY_MS)
            except MetadataError as error:
                # Somebody else is in charge, or nobody knows what the store holds now.
                self._resign(str(error))
                await broker.cluster.world.sleep(broker.life, _RETRY_MS)

    # --- the office ------------------------------------------------------------------------------

    async def _campaign(self) -> None:
        broker, store = self._broker, self._broker.session
        store.watch(layout.CONTROLLER, self._woken)
        holder = await store.read(layout.CONTROLLER)
        node = await store.read(layout.CONTROLLER_EPOCH)
        if holder is not None and node is not None:
            if holder.owner == store.session_id:  # a commit of ours whose answer was lost
                await self._take_office(layout.decode_epoch(node.data), node.version)
            else:
                await self._wake
            return
        epoch, version = 0, 0
        operations: list[Operation] = []
        if node is None:
            operations.append(Create(layout.CONTROLLER_EPOCH, layout.encode_epoch(0)))
        else:
            epoch, version = layout.decode_epoch(node.data), node.version
        data = layout.encode_controller(broker.broker_id, broker.now_ms)
        operations.append(Create(layout.CONTROLLER, data, ephemeral=True))
        operations.append(Set(layout.CONTROLLER_EPOCH, layout.encode_epoch(epoch + 1), version))
        await store.commit(operations)
        await self._take_office(epoch + 1, version + 1)

    async def _take_office(self, epoch: int, version: int) -> None:
        broker, store = self._broker, self._broker.session
        world, options = broker.cluster.world, broker.cluster.options
        world.tell("broker {} is the controller, epoch {}", broker.broker_id, epoch)
        self._due, self._touched, self._lost = {}, {}, []
        self._deletions = TopicDeletions()
        for path in self._watchers:
            store.watch(path, partial(self._changed, path, version))
        reader = self._topics = TopicNodes(
            store, world, broker.latest_epoch_of, version, self._touch
        )
        topics = await reader.unknown(())
        brokers = await load_brokers(store)
        names = {topic.topic_id: name for name, topic in topics.items()}
        image = ClusterImage("sim", broker.broker_id, epoch, brokers, topics, names)
        settings = Settings(options.min_insync_replicas, options.is_unclean_allowed)
        deleting = await children(store, layout.DELETE_TOPICS)
        self.epoch_version = version
        controller = broker.cluster.machines.controller(version, image, settings)
        controller.topic_versions = reader.versions
        self.controller = controller
        self._channels.begin(controller)
        await self._carry_out(controller.elected(deleting))
        self._due[layout.DELETE_TOPICS] = self._due[log_dir_notifications.PATH] = None

    def _resign(self, reason: str) -> None:
        if self.controller is not None:
            self._broker.cluster.world.tell(
                "broker {} leaves the controller's office: {}", self._broker.broker_id, reason
            )
        self.controller = None
        works, self._works = self._works, deque()
        for work in works:
            work.done(False)
        self._channels.end()

    def _woken(self) -> None:
        self._wake.resolve(None)

    def _changed(self, path: str, version: int) -> None:
        if self.controller is not None and self.epoch_version == version:
            self._due[path] = None
            self._woken()

    def _touch(self, topic: str) -> None:
        self._touched[topic] = None
        self._woken()

    async def _round(self) -> bool:
        """Whether there was anything to do."""
        controller, store = self.controller, self._broker.session
        assert controller is not None
        if controller.ends_wanted and self._asks_ends is not controller:
            self._asks_ends = controller
            self._broker.cluster.world.start(self._broker.life, self._ask_ends(controller))
        for path, take_up in self._watchers.items():
            if path in self._due:
                del self._due[path]
                store.watch(path, partial(self._changed, path, self.epoch_version))
                await take_up(controller)
                return True
        if self._touched:
            await self._take_up_touched_topics(controller)
        elif self._lost:
            await self._carry_out(controller.replicas_offline(*self._lost.pop(0)))
        elif self._deletions.without_replicas():
            await self._finish_deletions(controller)
        elif self._works:
            await self._do(self._works.popleft(), controller)
        else:
            return False
        return True

    async def _take_up_brokers(self, controller: Controller) -> None:
        await self._carry_out(controller.brokers_changed(await load_brokers(self._broker.session)))

    async def _take_up_topics(self, controller: Controller) -> None:
        assert self._topics is not None
        added = await self._topics.unknown(controller.image.topics)
        if added:
            await self._carry_out(controller.topics_added(list(added.values())))

    async def _take_up_touched_topics(self, controller: Controller) -> None:
        assert self._topics is not None
        touched, self._touched = self._touched, {}
        topics = controller.image.topics
        grown = await self._topics.grown(
            [topics[name] for name in touched if name in topics and name not in self._deletions]
        )
        if grown:
            await self._carry_out(controller.partitions_added(grown))

    async def _take_up_log_dir_events(self, controller: Controller) -> None:
        for broker_id in await log_dir_notifications.take(self._broker.session, self.epoch_version):
            if self.controller is controller and broker_id in controller.image.brokers:
                asked = log_dir_notifications.everything_hosted(controller.image, broker_id)
                self._channels.send(*asked)

    async def _take_up_deletions(self, controller: Controller) -> None:
        names = await children(self._broker.session, layout.DELETE_TOPICS)
        wished = [name for name in names if name not in self._deletions]
        if wished:
            for name in wished:
                self._deletions.begin(name, controller.image.topics.get(name))
            await self._carry_out(controller.deletions_requested(wished))

    async def _finish_deletions(self, controller: Controller) -> None:
        assert self._topics is not None
        names = self._deletions.without_replicas()
        paths = await self._topics.paths_of(names)
        if paths:
            await self._carry_out(controller.replicas_deleted(names, paths))
        self._deletions.removed(names)

    def _answered(
        self, broker_id: int, request: ControlRequest, codes: Mapping[TopicPartition, int]
    ) -> None:
        controller = self.controller
        if controller is None:
            return
        if isinstance(request, LeaderAndIsr):
            lost = [name for name, code in codes.items() if code == KafkaStorageError.code]
            broker = controller.image.brokers.get(broker_id)
            if lost and broker is not None:
                self.lose(broker_id, lost, broker.epoch)
        elif isinstance(request, StopReplica) and request.delete:
            self._deletions.answered(broker_id, request, codes)
            self._woken()

    def lose(self, broker_id: int, names: Sequence[TopicPartition], broker_epoch: int = -1) -> None:
        """A live broker has lost these replicas with its log directory."""
        self._lost.append((broker_id, names, broker_epoch))
        self._woken()

    async def _do(self, work: _Work, controller: Controller) -> None:
        try:
            await self._carry_out(work.decide(controller))
        except MetadataError:
            work.done(False)
            raise
        work.done(True)

    async def _carry_out(self, decision: Decision) -> None:
        """Commit, apply, send; in this order, or nothing."""
        controller = self.controller
        for operations in split(decision.operations):
            await self._broker.session.commit(operations)
        if controller is None or controller is not self.controller:
            return  # the session ended meanwhile
        controller.apply(decision)
        for note in decision.notes:
            self._broker.cluster.world.tell("controller: {}", note)
        for broker_id, request in decision.requests:
            self._channels.send(broker_id, request)

    # --- what others ask -------------------------------------------------------------------------

    def add(self, decide: Callable[[Controller], Decision], done: Callable[[bool], None]) -> None:
        """Have something decided when its turn comes."""
        if self.controller is None:
            done(False)
            return
        self._works.append(_Work(decide, done))
        self._woken()

    def proposed(self, request: ProposeToController, reply: Reply) -> None:
        name = request.proposal.topic_partition
        answers: dict[TopicPartition, IsrAnswer] = {}

        def decide(controller: Controller) -> Decision:
            decision, found = controller.isr_proposed(
                request.broker_id, request.broker_epoch, [request.proposal]
            )
            answers.update(found)
            return decision

        def done(is_done: bool) -> None:
            reply(answers[name] if is_done else IsrAnswer(NotController.code))

        self.add(decide, done)

    def shutdown_requested(self, request: WishShutdown, reply: Reply) -> None:
        answer = [ShutdownAnswer(NotController.code)]

        def decide(controller: Controller) -> Decision:
            try:
                decision, left = controller.shutdown_requested(
                    request.broker_id, request.broker_epoch
                )
            except KafkaError as error:
                answer[0] = ShutdownAnswer(error.code)
                return Decision((), controller.image, ())
            answer[0] = ShutdownAnswer(0, len(left))
            return decision

        def done(is_done: bool) -> None:
            reply(answer[0] if is_done else ShutdownAnswer(NotController.code))

        self.add(decide, done)

    # --- where logs end --------------------------------------------------------------------------

    async def _ask_ends(self, controller: Controller) -> None:
        """Ask until every replica has said where its log ends, of all that are wanted."""
        broker = self._broker
        world = broker.cluster.world
        while self.controller is controller and controller.ends_wanted:
            for name in sorted(controller.ends_wanted):
                if name.topic not in controller.image.topics:
                    continue  # deleted while others were asked
                ends = await self._ends_of(controller, name)
                if ends is not None:
                    self.add(partial(_ends_known, name, ends), _nothing)
            await world.sleep(broker.life, _ASK_ENDS_EVERY_MS)
        if self._asks_ends is controller:
            self._asks_ends = None

    async def _ends_of(
        self, controller: Controller, name: TopicPartition
    ) -> dict[int, LogEnd] | None:
        broker = self._broker
        topic = controller.image.topics[name.topic]
        partition = topic.partitions[name.partition]
        ends = {}
        for replica in partition.replicas:
            connection = broker.cluster.network.connect(broker.broker_id, broker.life, replica)
            request = AskEnd(name, topic.topic_id, partition.leader_epoch)
            answer: EndAnswer | None = await connection.call(request, _CALL_TIMEOUT_MS)
            if answer is None or answer.end is None:
                return None
            ends[replica] = LogEnd(answer.end.epoch, answer.end.end_offset, answer.broker_epoch)
        return ends


def _ends_known(name: TopicPartition, ends: dict[int, LogEnd], controller: Controller) -> Decision:
    return controller.ends_known({name: ends})


def _nothing(is_done: bool) -> None:
    """Nobody waits for it."""
