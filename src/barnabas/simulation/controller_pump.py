"""The controller's office on a simulated broker: campaigns, reads, decides, commits, tells.

The machine is the real one and so is the loading; this is the smallest shell that they can have. A
commit that fails, or of which nobody knows, ends in reading everything again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster import layout
from barnabas.cluster.control import ControlRequest, IsrAnswer
from barnabas.cluster.image import ClusterImage, TopicImage
from barnabas.cluster.loading import children, load_brokers, load_topic, load_topics
from barnabas.cluster.store import Create, MetadataError, Operation, SessionExpired, Set
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision, split
from barnabas.controller.guard import LogEnd, Settings
from barnabas.errors import KafkaError, NotController
from barnabas.simulation.network import Reply
from barnabas.simulation.wire import (
    AskEnd,
    Control,
    ControlAnswer,
    EndAnswer,
    ProposeToController,
    ShutdownAnswer,
    WishShutdown,
)
from barnabas.simulation.world import Promise
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.sim_broker import SimBroker

_CALL_TIMEOUT_MS = 1000
_RETRY_MS = 70
_ASK_ENDS_EVERY_MS = 150


class _Work(NamedTuple):
    """Something to decide; `done` hears whether it was carried out."""

    decide: Callable[[Controller], Decision]
    done: Callable[[bool], None]


class _Channel:
    """What is still to be said to one broker in one registration."""

    __slots__ = ("epoch", "queue", "wake")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.queue: deque[ControlRequest] = deque()
        self.wake: Promise[None] = Promise()


class ControllerPump:
    """One broker's; in office it has a `controller`."""

    __slots__ = (
        "_asks_ends",
        "_broker",
        "_brokers_due",
        "_channels",
        "_topics_due",
        "_wake",
        "_works",
        "controller",
        "epoch_version",
    )  # fmt: skip

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self.controller: Controller | None = None
        self.epoch_version = -1
        self._brokers_due = self._topics_due = False
        self._works: deque[_Work] = deque()
        self._channels: dict[int, _Channel] = {}
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
        store.watch(layout.BROKER_IDS, self._brokers_changed)
        store.watch(layout.TOPICS, self._topics_changed)
        topics = {
            name: await self._moving(topic) for name, topic in (await load_topics(store)).items()
        }
        brokers = await load_brokers(store)
        names = {topic.topic_id: name for name, topic in topics.items()}
        image = ClusterImage("sim", broker.broker_id, epoch, brokers, topics, names)
        settings = Settings(options.min_insync_replicas, options.is_unclean_allowed)
        self.epoch_version = version
        self._channels = {}
        self._brokers_due = self._topics_due = False
        self.controller = broker.cluster.machines.controller(version, image, settings)
        await self._carry_out(self.controller.elected(()))

    async def _moving(self, topic: TopicImage) -> TopicImage:
        """The topic with what its node says of reassignments."""
        node = await self._broker.session.read(layout.topic_path(topic.name))
        found = layout.decode_topic(topic.name, None if node is None else node.data)
        partitions = {
            number: partition._replace(
                adding=tuple(found.adding.get(number, ())),
                removing=tuple(found.removing.get(number, ())),
            )
            for number, partition in topic.partitions.items()
        }
        return topic._replace(partitions=partitions)

    def _resign(self, reason: str) -> None:
        if self.controller is not None:
            self._broker.cluster.world.tell(
                "broker {} leaves the controller's office: {}", self._broker.broker_id, reason
            )
        self.controller = None
        works, self._works = self._works, deque()
        for work in works:
            work.done(False)
        for channel in self._channels.values():
            channel.queue.clear()
        self._channels = {}

    def _woken(self) -> None:
        self._wake.resolve(None)

    def _brokers_changed(self) -> None:
        self._brokers_due = True
        self._woken()

    def _topics_changed(self) -> None:
        self._topics_due = True
        self._woken()

    async def _round(self) -> bool:
        """Whether there was anything to do."""
        controller, store = self.controller, self._broker.session
        assert controller is not None
        if controller.ends_wanted and self._asks_ends is not controller:
            self._asks_ends = controller
            self._broker.cluster.world.start(self._broker.life, self._ask_ends(controller))
        if self._brokers_due:
            self._brokers_due = False
            store.watch(layout.BROKER_IDS, self._brokers_changed)
            await self._carry_out(controller.brokers_changed(await load_brokers(store)))
        elif self._topics_due:
            self._topics_due = False
            store.watch(layout.TOPICS, self._topics_changed)
            names = await children(store, layout.TOPICS)
            known = controller.image.topics
            loaded = [await load_topic(store, name) for name in names if name not in known]
            added = [topic for topic in loaded if topic is not None]
            if added:
                await self._carry_out(controller.topics_added(added))
        elif self._works:
            await self._do(self._works.popleft(), controller)
        else:
            return False
        return True

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
        for operations in split(decision):
            await self._broker.session.commit(operations)
        if controller is None or controller is not self.controller:
            return  # the session ended meanwhile
        controller.apply(decision)
        for note in decision.notes:
            self._broker.cluster.world.tell("controller: {}", note)
        for broker_id, request in decision.requests:
            self._send(controller, broker_id, request)

    # --- telling the brokers ---------------------------------------------------------------------

    def _send(self, controller: Controller, broker_id: int, request: ControlRequest) -> None:
        broker = self._broker
        if broker_id == broker.broker_id:
            broker.carry_out(request)
            return
        registered = controller.image.brokers.get(broker_id)
        if registered is None:
            return
        channel = self._channels.get(broker_id)
        if channel is None or channel.epoch != registered.epoch:
            if channel is not None:
                channel.queue.clear()
                channel.wake.resolve(None)
            channel = self._channels[broker_id] = _Channel(registered.epoch)
            broker.cluster.world.start(broker.life, self._deliver(broker_id, channel))
        channel.queue.append(request)
        channel.wake.resolve(None)

    async def _deliver(self, broker_id: int, channel: _Channel) -> None:
        """In order, each until it is answered, as long as the registration lasts."""
        broker = self._broker
        connection = broker.cluster.network.connect(
            broker.broker_id,
            broker.life,
            broker_id,
            may_be_late=broker.cluster.machines.has_late_control,
        )
        while True:
            if not channel.queue:
                if self._channels.get(broker_id) is not channel:
                    return
                channel.wake = Promise()
                await channel.wake
                continue
            request = Control(channel.epoch, channel.queue[0])
            answer: ControlAnswer | None = await connection.call(request, _CALL_TIMEOUT_MS)
            controller = self.controller
            live = {} if controller is None else controller.image.brokers
            if broker_id not in live or live[broker_id].epoch != channel.epoch:
                channel.queue.clear()
            elif answer is None:
                await broker.cluster.world.sleep(broker.life, _RETRY_MS)
            elif channel.queue and channel.queue[0] is request.request:
                channel.queue.popleft()

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

    def shutdown_wished(self, request: WishShutdown, reply: Reply) -> None:
        answer = [ShutdownAnswer(NotController.code)]

        def decide(controller: Controller) -> Decision:
            try:
                decision, left = controller.shutdown_wished(request.broker_id, request.broker_epoch)
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
