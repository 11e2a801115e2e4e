"""One life of a simulated broker: from its start to its crash; its disk outlives it.

It hosts the real machines and is their shell, as small as it can be: it registers, follows the
controller's word, serves and fetches, and sends its leaders' ISR proposals to the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    IsrAnswer,
    IsrProposal,
    LeaderAndIsr,
    PartitionState,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint
from barnabas.cluster.store import Create, MetadataError, SessionExpired, SessionState, Set
from barnabas.coordinator.decision import Now
from barnabas.errors import (
    InconsistentTopicId,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnknownTopicOrPartition,
)
from barnabas.replication.follower import Fetched
from barnabas.types import TopicPartition
from simulation.controller_pump import ControllerPump
from simulation.coordinating import Coordinators
from simulation.disk import Disk
from simulation.following import Fetchers
from simulation.hosted import Hosted, Parked
from simulation.metadata import Session
from simulation.network import Reply
from simulation.wire import (
    AskCoordinator,
    AskEnd,
    AskEpochEnd,
    AskLatest,
    AskMetadata,
    Bounds,
    Control,
    ControlAnswer,
    EndAnswer,
    EpochEndAnswer,
    Fetch,
    FetchAnswer,
    FetchedPart,
    Metadata,
    Produce,
    Produced,
    ProposeToController,
    Read,
    ReadAnswer,
    Request,
    Verified,
    Verify,
    WishShutdown,
    WriteMarker,
)
from simulation.world import Life

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_RETRY_MS = 80
_CALENDAR_MS = 1_700_000_000_000  # what the wall clock shows when the world begins
_CALL_TIMEOUT_MS = 1200
_CHECKPOINT_EVERY_TICKS = 3
_SHUTDOWN_TRIES = 3
_ANNOUNCEMENTS = 5


class SimBroker:
    """A broker process."""

    __slots__ = (
        "_early",
        "_served",
        "_ticks",
        "_untold",
        "broker_id",
        "cluster",
        "controller_epoch",
        "coordinators",
        "disk",
        "epoch",
        "fetchers",
        "hosted",
        "image",
        "life",
        "live",
        "made",
        "offline",
        "pump",
        "session",
    )

    def __init__(self, cluster: Cluster, broker_id: int, disk: Disk) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.disk = disk
        self.life = Life()
        self.epoch = -1  # of its registration
        self.controller_epoch = 0
        self.image = ClusterImage.empty()
        self.live: dict[int, int] = {}
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.session = Session(cluster.ensemble, self.life, cluster.options.session_timeout_ms)
        self.session.on_session(self._session_changed)
        self.offline: set[TopicPartition] = set()  # with the disk
        self.made: dict[TopicPartition, int] = {}  # logs of this life, by the epoch of then
        self.pump = ControllerPump(self)
        self.coordinators = Coordinators(self)
        self.fetchers = Fetchers(self)
        self._ticks = 0
        self._early: list[tuple[Control, Reply]] = []  # what came before it knew its own epoch
        # Partitions of which no controller has said since this start who leads them.
        self._untold = dict.fromkeys(disk.logs)
        self._served: dict[type, Callable[[Any, Reply], object]] = {
            Fetch: self._fetch,
            Produce: self._produce,
            Read: self._read,
            AskMetadata: lambda request, reply: reply(Metadata(self.image)),
            Control: self._controlled,
            ProposeToController: self.pump.proposed,
            AskLatest: self._bounds,
            AskEpochEnd: self._epoch_end,
            AskEnd: lambda request, reply: reply(self.end(request)),
            WishShutdown: self.pump.shutdown_requested,
            AskCoordinator: self.coordinators.asked,
            Verify: self.coordinators.verify,
            WriteMarker: self._write_marker,
        }

    def latest_epoch_of(self, name: TopicPartition) -> int:
        """What the log knows of leader epochs that the metadata has lost."""
        log = self.disk.logs.get(name)
        return -1 if log is None else log.latest_epoch

    @property
    def now_ms(self) -> int:
        return self.cluster.world.now_ms

    @property
    def now(self) -> Now:
        return Now(self.now_ms, _CALENDAR_MS + self.now_ms)

    def start(self) -> None:
        self.cluster.world.start(self.life, self._begin())

    async def _begin(self) -> None:
        await self._register()
        self._forget_losses()
        self.pump.start()
        self._tick()

    async def _register(self) -> None:
        """Announce itself; while an older session still has the place, it waits."""
        path = layout.broker_path(self.broker_id)
        endpoint = Endpoint("PLAINTEXT", "sim", 9000 + self.broker_id, "PLAINTEXT")
        image = BrokerImage(
            self.broker_id, (endpoint,), None, -1, may_have_lost=self.disk.may_have_lost
        )
        data = layout.encode_broker(image, self.now_ms)
        while True:
            try:
                node = await self.session.read(path)
                if node is not None and node.owner == self.session.session_id:
                    break
                if node is None:
                    await self.session.commit([Create(path, ephemeral=True), Set(path, data, 0)])
                    continue
            except MetadataError:
                pass  # whatever it was: look again
            await self.cluster.world.sleep(self.life, _RETRY_MS)
        self.epoch = node.czxid
        for hosted in self.hosted.values():
            hosted.partition.registered(self.epoch)
        self.cluster.checks.registered(self)
        early, self._early = self._early, []
        for request, reply in early:
            reply(self._control(request))

    def _session_changed(self, state: SessionState) -> None:
        assert state is SessionState.EXPIRED, state
        self.cluster.world.tell("broker {} learns that its session is over", self.broker_id)
        self.pump.session_expired()
        self.cluster.world.start(self.life, self._register())

    def _tick(self) -> None:
        """Housekeeping: the ISR by time, what producers wait for, checkpoints, write-back."""
        options, world = self.cluster.options, self.cluster.world
        self._ticks += 1
        for hosted in tuple(self.hosted.values()):
            hosted.expire()
        if self._ticks % _CHECKPOINT_EVERY_TICKS == 0:
            self.checkpoint()
        tick_ms = options.lag_time_max_ms // 2
        if world.chance(tick_ms / options.flush_interval_ms):
            self.flush()
        world.at(tick_ms, self.life, self._tick)

    def checkpoint(self) -> None:
        for name, hosted in self.hosted.items():
            self.disk.high_watermarks[name] = hosted.partition.high_watermark

    def flush(self) -> None:
        for log in self.disk.logs.values():
            log.flushed = log.log_end_offset

    # --- what it is asked ------------------------------------------------------------------------

    def receive(self, request: Request, reply: Reply) -> None:
        self._served[type(request)](request, reply)

    def _read(self, request: Read, reply: Reply) -> None:
        hosted = self._hosted(request.topic_partition, request.topic_id)
        missing = ReadAnswer(self._missing(request.topic_partition))
        reply(missing if hosted is None else hosted.read(request))

    def _bounds(self, request: AskLatest, reply: Reply) -> None:
        hosted = self._hosted(request.topic_partition, request.topic_id)
        missing = Bounds(self._missing(request.topic_partition))
        reply(missing if hosted is None else hosted.bounds(request))

    def _epoch_end(self, request: AskEpochEnd, reply: Reply) -> None:
        hosted = self._hosted(request.topic_partition, request.topic_id)
        missing = EpochEndAnswer(self._missing(request.topic_partition))
        reply(missing if hosted is None else hosted.epoch_end(request))

    def _controlled(self, request: Control, reply: Reply) -> None:
        if self.epoch < 0:
            self._early.append((request, reply))  # for this life or for the one before?
        else:
            reply(self._control(request))

    def _missing(self, name: TopicPartition) -> int:
        return KafkaStorageError.code if name in self.offline else UnknownTopicOrPartition.code

    def _hosted(self, name: TopicPartition, topic_id: bytes) -> Hosted | None:
        hosted = self.hosted.get(name)
        return hosted if hosted is not None and hosted.log.topic_id == topic_id else None

    def _produce(self, request: Produce, reply: Reply) -> None:
        hosted = self._hosted(request.topic_partition, request.topic_id)
        if hosted is None:
            reply(Produced(NotLeaderOrFollower.code))
        elif request.transactional_id is None:
            hosted.produce(request, reply)
        else:
            self.coordinators.produce(hosted, request, reply)

    def _write_marker(self, request: WriteMarker, reply: Reply) -> None:
        hosted = self.hosted.get(request.topic_partition)
        if hosted is None:
            reply(Verified(self._missing(request.topic_partition)))
        else:
            hosted.write_marker(request, reply)

    def _fetch(self, request: Fetch, reply: Reply) -> None:
        answer = self.fetch_answer(request, is_first=True)
        if any(part.entries or part.got.error_code or part.got.diverging for part in answer.parts):
            reply(answer)
            return
        if any(wanted.topic_partition not in self.hosted for wanted in request.wanted):
            # What followed from the high watermark that moved has filled the disk.
            reply(self.fetch_answer(request, is_first=False))
            return
        parked = Parked(self, request, reply)
        for wanted in request.wanted:
            self.hosted[wanted.topic_partition].parked.append(parked)
        self.cluster.world.at(request.max_wait_ms, self.life, parked.answer)

    def end(self, request: AskEnd) -> EndAnswer:
        """Only who knows that nobody leads may say it: an older leader's log still grows."""
        hosted = self._hosted(request.topic_partition, request.topic_id)
        if hosted is None:
            return EndAnswer(self._missing(request.topic_partition))
        try:
            hosted.partition.check_leader_epoch(request.leader_epoch)
        except KafkaError as error:
            return EndAnswer(error.code)
        return EndAnswer(0, hosted.end(), self.epoch)

    def fetch_answer(self, request: Fetch, *, is_first: bool) -> FetchAnswer:
        parts = []
        for wanted in request.wanted:
            hosted = self._hosted(wanted.topic_partition, wanted.topic_id)
            if hosted is None:
                got = Fetched(self._missing(wanted.topic_partition), -1, -1, None, 0)
                parts.append(FetchedPart(got))
            else:
                parts.append(hosted.fetched(request, wanted, is_first=is_first))
        return FetchAnswer(tuple(parts))

    # --- the controller's word -------------------------------------------------------------------

    def _control(self, request: Control) -> ControlAnswer:
        if -1 < request.broker_epoch < self.epoch:
            return ControlAnswer(StaleBrokerEpoch.code)
        return self.carry_out(request.request)

    def _brokers_changed(self) -> None:
        live = {each.broker_id: each.epoch for each in self.image.brokers.values()}
        if live != self.live:
            self.live = live
            for hosted in self.hosted.values():
                hosted.handle(hosted.partition.brokers_changed(live, self.now_ms))

    def carry_out(self, request: ControlRequest) -> ControlAnswer:
        if request.controller_epoch < self.controller_epoch:
            return ControlAnswer(StaleControllerEpoch.code)
        self.controller_epoch = request.controller_epoch
        if isinstance(request, UpdateMetadata):
            self.image = self.image.apply(request)
            self._brokers_changed()
        elif isinstance(request, LeaderAndIsr):
            self._set_strays_aside(request)
            return ControlAnswer(
                0,
                {
                    state.topic_partition: self._lead_or_follow(state)
                    for state in request.partitions
                },
            )
        else:
            return ControlAnswer(
                0, {name: self.stop_replica(name, request.delete) for name in request.partitions}
            )
        return ControlAnswer(0)

    def stop_replica(self, name: TopicPartition, delete: bool) -> int:
        """Host it no longer; an error code."""
        is_there = name in self.disk.logs and not self.disk.has_failed
        if name in self.offline and not is_there:
            return KafkaStorageError.code  # it will be there when the disk is back
        hosted = self.hosted.pop(name, None)
        self.offline.discard(name)
        if hosted is not None:
            self._gone(hosted)
        if delete and is_there:
            self.made.pop(name, None)
            del self.disk.logs[name]
            self.disk.high_watermarks.pop(name, None)
        if delete:
            self._told(name)
        return 0

    def _gone(self, hosted: Hosted) -> None:
        hosted.leader = -1
        hosted.stopped()
        self.cluster.checks.closed(hosted)

    # --- the disk --------------------------------------------------------------------------------

    def fail_disk(self, reason: str) -> None:
        """Its log directory is out of reach, and every partition in it, until the next start."""
        if self.disk.has_failed:
            return
        self.disk.has_failed = True
        self.cluster.world.tell("broker {} loses its log directory: {}", self.broker_id, reason)
        names = list(self.disk.logs)
        self.offline.update(names)
        for name in names:
            hosted = self.hosted.pop(name, None)
            if hosted is not None:
                self._gone(hosted)
        if self.pump.controller is not None:
            self.pump.lose(self.broker_id, names)
        else:
            self.cluster.world.start(self.life, self._announce())

    async def _announce(self) -> None:
        """What no controller hears so it hears when it asks, and is refused."""
        for _ in range(_ANNOUNCEMENTS):
            try:
                await log_dir_notifications.announce(self.session, self.broker_id)
            except SessionExpired:
                return
            except MetadataError:
                await self.cluster.world.sleep(self.life, _RETRY_MS)
            else:
                return

    def _told(self, name: TopicPartition) -> None:
        self._untold.pop(name, None)
        self._forget_losses()

    def _forget_losses(self) -> None:
        """Once they are known of every partition, the next start need not tell of them."""
        if not self._untold:
            self.disk.may_have_lost = False

    def _set_strays_aside(self, request: LeaderAndIsr) -> None:
        """Of topics that were deleted, and made again, without this broker's notice."""
        for state in request.partitions:
            name = state.topic_partition
            log = self.disk.logs.get(name)
            if log is None or log.topic_id == state.topic_id or self.disk.has_failed:
                continue
            if name in self.hosted and self.made.get(name) == self.epoch:
                continue  # this was said before: no topic is deleted without its live brokers
            self.cluster.world.tell("broker {} sets another {} aside", self.broker_id, name)
            hosted = self.hosted.pop(name, None)
            if hosted is not None:
                self._gone(hosted)
            del self.disk.logs[name]
            self.disk.high_watermarks.pop(name, None)

    def _lead_or_follow(self, state: PartitionState) -> int:
        """Host it as the controller says; an error code."""
        name, partition = state.topic_partition, state.partition
        hosted = self.hosted.get(name)
        if hosted is None:
            hosted = self._try_to_host(state)
        if hosted is None:
            return KafkaStorageError.code
        if hosted.log.topic_id != state.topic_id:
            return InconsistentTopicId.code
        if partition.leader >= 0:
            # Whoever decided this knew that this broker may have lost records. Before, a start
            # after the next crash must say so again, though that one lost nothing more.
            self._told(name)
        now = hosted.partition
        is_newer = partition.leader_epoch > now.leader_epoch or (
            partition.leader_epoch == now.leader_epoch
            and partition.partition_epoch > now.partition_epoch
        )
        if not is_newer:
            return 0
        if partition.leader == self.broker_id:
            hosted.lead(partition)
        else:
            hosted.follow(partition)
            if partition.leader >= 0:
                self.fetchers.follow(partition.leader)
        if partition.leader >= 0:
            hosted.log.has_lost = False
        return 0

    def _try_to_host(self, state: PartitionState) -> Hosted | None:
        name = state.topic_partition
        log = self.disk.logs.get(name)
        if self.disk.has_failed:
            self.offline.add(name)
        if name in self.offline:
            return None
        if log is None:
            self.made[name] = self.epoch
            log = self.disk.logs[name] = self.cluster.machines.log(state.topic_id)
        min_isr = int(state.topic_config["min.insync.replicas"])
        hosted = self.hosted[name] = Hosted(self, name, log, min_isr)
        return hosted

    # --- what it asks the controller -------------------------------------------------------------

    def propose(self, hosted: Hosted, proposal: IsrProposal) -> None:
        self.cluster.world.start(self.life, self._propose(hosted, proposal))

    async def _propose(self, hosted: Hosted, proposal: IsrProposal) -> None:
        """Until it is answered, or the partition has gone on without it."""
        world, network = self.cluster.world, self.cluster.network
        while True:
            request = ProposeToController(self.broker_id, self.epoch, proposal)
            connection = network.connect(self.broker_id, self.life, self.image.controller_id)
            answer: IsrAnswer | None = await connection.call(request, _CALL_TIMEOUT_MS)
            if answer is not None and not answer.error_code:
                break
            await world.sleep(self.life, _RETRY_MS)
            partition = hosted.partition
            if not (partition.is_leader and partition.is_changing_isr):
                return
            if partition.leader_epoch != proposal.leader_epoch:
                return
            if answer is not None:
                break
        if self.hosted.get(hosted.name) is hosted:
            hosted.isr_answered(proposal, answer)

    async def leave(self) -> None:
        """Controlled shutdown: the leaders move first, if there is a controller to move them."""
        network, world = self.cluster.network, self.cluster.world
        for _ in range(_SHUTDOWN_TRIES):
            connection = network.connect(self.broker_id, self.life, self.image.controller_id)
            answer = await connection.call(
                WishShutdown(self.broker_id, self.epoch), _CALL_TIMEOUT_MS
            )
            if answer is not None and not answer.error_code and not answer.remaining:
                break
            await world.sleep(self.life, _RETRY_MS)
        self.checkpoint()
        self.flush()
        await self.session.close()
        self.cluster.ended(self)
