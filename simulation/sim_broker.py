"""One life of a simulated broker, from its start to its crash; its disk outlives it.

Its controller is the real one, shell and machine, on the life's event loop. It hosts the real
machines of partitions and is their shell, kept minimal: it carries out a controller's decisions,
serves and fetches, and sends its leaders' ISR proposals to the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.controller.controller_settings import ControllerSettings
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.cluster.controller_requests import (
    ControlRequest,
    IsrAnswer,
    IsrProposal,
    LeaderAndIsr,
    PartitionState,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint
from barnabas.cluster.store import MetadataError
from barnabas.controller.leader_election import Settings
from barnabas.coordinator.decision import Now
from barnabas.errors import (
    ConfigError,
    InconsistentTopicId,
    KafkaError,
    KafkaStorageError,
    NotController,
    NotLeaderOrFollower,
    StaleControllerEpoch,
    UnknownTopicOrPartition,
)
from barnabas.replication.follower import EpochEnd, Fetched
from barnabas.types import TopicPartition
from simulation.control_plane import ControlPlane
from simulation.coordinating import Coordinators
from simulation.disk import Disk
from simulation.following import Fetchers
from simulation.hosted import Hosted, Parked
from simulation.isr_writer import IsrWriter
from simulation.life_loop import loop_of
from simulation.metadata import Session
from simulation.network import Reply
from simulation.peers import SimPeers
from simulation.topic_configs import ConfigWatch
from simulation.wire import (
    ApiRequest,
    AskCoordinator,
    AskEpochEnd,
    AskGroup,
    AskLatest,
    AskMetadata,
    Bounds,
    ControlAnswer,
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
    ShutdownAnswer,
    ShutdownRequest,
    Verified,
    Verify,
    WriteMarker,
)
from simulation.world import Life

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_RETRY_MS = 80
_CALL_TIMEOUT_MS = 1200
_CHECKPOINT_EVERY_TICKS = 3
_SHUTDOWN_TRIES = 3
_CONTROLLER_TIMEOUT_MS = 1000
_RESTART_MS = 300

CLUSTER_ID = "sim"


class SimBroker:
    """A broker process."""

    __slots__ = (
        "_control_plane",
        "_early",
        "_isr_writer",
        "_served",
        "_ticks",
        "_unplaced",
        "broker_id",
        "cluster",
        "configs",
        "controller",
        "controller_epoch",
        "coordinators",
        "disk",
        "fetchers",
        "hosted",
        "life",
        "live",
        "loop",
        "made",
        "offline",
        "session",
        "view",
    )

    def __init__(self, cluster: Cluster, broker_id: int, disk: Disk) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.disk = disk
        self.life = Life()
        self.loop = loop_of(cluster.world, self.life, f"broker {broker_id}")
        self.view = ClusterView(broker_id, has_peers=True)
        self.view.update(self.image._replace(cluster_id=CLUSTER_ID))
        self.controller_epoch = 0
        self.live: dict[int, int] = {}
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.session = Session(cluster.ensemble, self.life, cluster.options.session_timeout_ms)
        self.offline: set[TopicPartition] = set()  # with the disk
        self.made: dict[TopicPartition, int] = {}  # logs of this life, by the epoch at creation
        self.controller = self._new_controller()
        self._control_plane = ControlPlane(self)
        self._isr_writer = IsrWriter(self)
        self.configs = ConfigWatch(self)
        self.coordinators = Coordinators(self)
        self.fetchers = Fetchers(self)
        self._ticks = 0
        self._early: list[tuple[ApiRequest, Reply]] = []  # received before it knew its epoch
        # Partitions of which this disk may have lost records, and for which no LeaderAndIsr has
        # named a leader since this start.
        self._unplaced: dict[TopicPartition, None] = {}
        self._served: dict[type, Callable[[Any, Reply], object]] = {
            Fetch: self._fetch,
            Produce: self._produce,
            Read: self._read,
            AskMetadata: lambda request, reply: reply(Metadata(self.image)),
            ApiRequest: self._asked_by_controller,
            ProposeToController: self._proposed,
            AskLatest: self._bounds,
            AskEpochEnd: self._epoch_end,
            ShutdownRequest: self._shutdown_requested,
            AskCoordinator: self.coordinators.asked,
            AskGroup: self.coordinators.group_asked,
            Verify: self.coordinators.verify,
            WriteMarker: self._write_marker,
        }

    def _new_controller(self) -> ControllerRunner:
        options, world = self.cluster.options, self.cluster.world
        settings = ControllerSettings(
            session_timeout_ms=options.session_timeout_ms,
            timeout_ms=_CONTROLLER_TIMEOUT_MS,
            machine=Settings(options.min_insync_replicas, options.is_unclean_allowed),
        )
        return ControllerRunner(
            self.session,
            self.view,
            world,
            world,
            settings,
            self._deliver,
            self.latest_epoch_of,
            SimPeers(self),
            self._registered,
            self.cluster.machines.controller,
        )

    @property
    def image(self) -> ClusterImage:
        return self.view.image

    @property
    def epoch(self) -> int:
        """The broker epoch of its registration; -1 before the first registration."""
        return self.view.broker_epoch

    def latest_epoch_of(self, name: TopicPartition) -> int:
        """Return the latest leader epoch in the log of a partition, which the metadata may have
        lost."""
        log = self.disk.logs.get(name)
        return -1 if log is None else log.latest_epoch

    @property
    def now_ms(self) -> int:
        return self.cluster.world.now_ms

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.cluster.world.wall_ms())

    def start(self) -> None:
        self.loop.start(self._begin())

    async def _begin(self) -> None:
        endpoint = Endpoint("PLAINTEXT", "sim", 9000 + self.broker_id, "PLAINTEXT")
        try:
            if self.disk.may_have_lost:
                self._unplaced = dict.fromkeys(sorted(await self.controller.read_hosted()))
                self.disk.may_have_lost = bool(self._unplaced)
            image = BrokerImage(
                self.broker_id, (endpoint,), None, -1, may_have_lost=self.disk.may_have_lost
            )
            self.configs.skip_past_changes()
            await self.controller.start(image, CLUSTER_ID)
        except (MetadataError, ConfigError) as error:
            # The process ends, and its supervisor restarts it.
            self.cluster.world.tell("broker {} cannot start: {}", self.broker_id, error)
            self.cluster.ended(self)
            self.cluster.world.at(_RESTART_MS, None, self.cluster.start, self.broker_id)
            return
        self.configs.start()
        self._tick()

    def _registered(self, broker_epoch: int) -> None:
        for hosted in self.hosted.values():
            hosted.partition.on_registered(broker_epoch)
        self.cluster.checks.registered(self)
        early, self._early = self._early, []
        for request, reply in early:
            reply(self._control_plane.answer(request))

    def _tick(self) -> None:
        """Do housekeeping: time limits of the ISR and of waiting producers, checkpoints,
        write-back."""
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

    def _asked_by_controller(self, request: ApiRequest, reply: Reply) -> None:
        if self.epoch < 0:
            self._early.append((request, reply))  # for this life or the previous one?
        else:
            reply(self._control_plane.answer(request))

    def _proposed(self, request: ProposeToController, reply: Reply) -> None:
        self.loop.start(self._answer_proposal(request, reply))

    async def _answer_proposal(self, request: ProposeToController, reply: Reply) -> None:
        proposal = request.proposal
        try:
            answers = await self.controller.alter_partitions(
                request.broker_id, request.broker_epoch, [proposal]
            )
        except KafkaError as error:
            reply(IsrAnswer(error.code))
        else:
            reply(answers[proposal.topic_partition])

    def _shutdown_requested(self, request: ShutdownRequest, reply: Reply) -> None:
        self.loop.start(self._answer_shutdown(request, reply))

    async def _answer_shutdown(self, request: ShutdownRequest, reply: Reply) -> None:
        try:
            left = await self.controller.controlled_shutdown(
                request.broker_id, request.broker_epoch
            )
        except KafkaError as error:
            reply(ShutdownAnswer(error.code))
        else:
            reply(ShutdownAnswer(0, len(left)))

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
            # An effect of the moved high watermark has filled the disk.
            reply(self.fetch_answer(request, is_first=False))
            return
        parked = Parked(self, request, reply)
        for wanted in request.wanted:
            self.hosted[wanted.topic_partition].parked.append(parked)
        self.cluster.world.at(request.max_wait_ms, self.life, parked.answer)

    def log_end(self, name: TopicPartition, leader_epoch: int) -> tuple[int, EpochEnd | None]:
        """Return an error, or the end of its log.

        A request in an earlier epoch is refused, since an older leader's log still grows.
        """
        hosted = self.hosted.get(name)
        if hosted is None:
            return self._missing(name), None
        try:
            hosted.partition.check_leader_epoch(leader_epoch)
        except KafkaError as error:
            return error.code, None
        return 0, hosted.end()

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

    async def _deliver(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Deliver a request from this broker's own controller, which another may have deposed by
        then."""
        answer = self.carry_out(request)
        if answer.error_code:
            raise StaleControllerEpoch(f"the current epoch is {self.controller_epoch}")
        return answer.codes

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
            self.view.update(self.image.apply(request))
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
        """Stop hosting a partition; returns an error code."""
        is_there = name in self.disk.logs and not self.disk.has_failed
        if name in self.offline and not is_there:
            return KafkaStorageError.code  # it will exist when the disk is back
        hosted = self.hosted.pop(name, None)
        self.offline.discard(name)
        if hosted is not None:
            self._gone(hosted)
        if delete and is_there:
            self.made.pop(name, None)
            del self.disk.logs[name]
            self.disk.high_watermarks.pop(name, None)
        if delete:
            self._placed(name)
        return 0

    def _gone(self, hosted: Hosted) -> None:
        hosted.leader = -1
        hosted.stopped()
        self.cluster.checks.closed(hosted)

    # --- the disk --------------------------------------------------------------------------------

    def fail_disk(self, reason: str) -> None:
        """Make its log directory, with every partition in it, unreachable until the next start."""
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
        self.loop.start(self._report_lost(names))

    async def _report_lost(self, names: Sequence[TopicPartition]) -> None:
        try:
            await self.controller.replicas_offline(names)
        except NotController as error:
            # A controller learns of it when its LeaderAndIsr is refused.
            self.cluster.world.tell("broker {} has not reported it: {}", self.broker_id, error)

    def _placed(self, name: TopicPartition) -> None:
        """Withdraw the loss warning once the losses of every partition are known: neither this
        registration nor the next one needs it."""
        self._unplaced.pop(name, None)
        if not self._unplaced and self.disk.may_have_lost:
            self.disk.may_have_lost = False
            self.loop.start(self.controller.withdraw_loss_warning())

    def _set_strays_aside(self, request: LeaderAndIsr) -> None:
        """Set aside the logs of topics that were deleted and recreated without this broker's
        notice."""
        for state in request.partitions:
            name = state.topic_partition
            log = self.disk.logs.get(name)
            if log is None or log.topic_id == state.topic_id or self.disk.has_failed:
                continue
            if name in self.hosted and self.made.get(name) == self.epoch:
                continue  # it is an older request: no topic is deleted without its live brokers
            self.cluster.world.tell("broker {} sets another {} aside", self.broker_id, name)
            hosted = self.hosted.pop(name, None)
            if hosted is not None:
                self._gone(hosted)
            del self.disk.logs[name]
            self.disk.high_watermarks.pop(name, None)

    def _lead_or_follow(self, state: PartitionState) -> int:
        """Host a partition as the controller has decided; returns an error code."""
        name, partition = state.topic_partition, state.partition
        hosted = self.hosted.get(name)
        if hosted is None:
            hosted = self._try_to_host(state)
        if hosted is None:
            return KafkaStorageError.code
        if hosted.log.topic_id != state.topic_id:
            return InconsistentTopicId.code
        if partition.leader >= 0:
            # The controller that decided this knew that this broker may have lost records. Until
            # then, a start after the next crash must repeat the warning, even if that crash loses
            # nothing more.
            self._placed(name)
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
        hosted = self.hosted[name] = Hosted(self, name, log, self.configs.min_isr(name.topic))
        return hosted

    # --- what it asks the controller -------------------------------------------------------------

    def propose(self, hosted: Hosted, proposal: IsrProposal) -> None:
        self.cluster.world.start(self.life, self._propose(hosted, proposal))

    async def _propose(self, hosted: Hosted, proposal: IsrProposal) -> None:
        """Retry until the proposal is answered, or the partition has gone on without it."""
        world = self.cluster.world
        while True:
            answer = await self._ask_for_isr(hosted, proposal)
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

    async def _ask_for_isr(self, hosted: Hosted, proposal: IsrProposal) -> IsrAnswer | None:
        if self.broker_id in self.cluster.options.isr_writers:
            return await self._isr_writer.write(hosted, proposal)
        request = ProposeToController(self.broker_id, self.epoch, proposal)
        connection = self.cluster.network.connect(
            self.broker_id, self.life, self.image.controller_id
        )
        answer: IsrAnswer | None = await connection.call(request, _CALL_TIMEOUT_MS)
        return answer

    async def leave(self) -> None:
        """Shut down in a controlled way: leadership moves first, if there is a controller to
        move it."""
        network, world = self.cluster.network, self.cluster.world
        for _ in range(_SHUTDOWN_TRIES):
            connection = network.connect(self.broker_id, self.life, self.image.controller_id)
            answer = await connection.call(
                ShutdownRequest(self.broker_id, self.epoch), _CALL_TIMEOUT_MS
            )
            if answer is not None and not answer.error_code and not answer.remaining:
                break
            await world.sleep(self.life, _RETRY_MS)
        self.checkpoint()
        self.flush()
        await self.session.close()
        self.cluster.ended(self)
