"""One life of a simulated broker, from its start to its crash; its disk outlives it.

Its shells and machines are a broker's own, and run on the life's event loop: the controller, the
replicas and their roles, the queue of ISR proposals, the coordinators. Only what touches files and
sockets is simulated: the logs and their store, the fetchers' loop, the requests of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.controller.controller_settings import ControllerSettings
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.broker.partitions.control_plane import ControlPlane
from barnabas.broker.partitions.directory_failure import DirectoryFailures, FailureReports
from barnabas.broker.partitions.replica import ReplicaClasses
from barnabas.broker.partitions.replica_removal import ReplicaRemoval
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.partitions.role_changes import RoleChanges
from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.broker.replication.alter_partition import (
    AlterPartition,
    ControllerApproval,
    IsrApproval,
)
from barnabas.broker.replication.zk_alter_partition import Pace, ZkAlterPartition
from barnabas.cluster.controller_requests import ControlRequest, LeaderAndIsr
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint
from barnabas.cluster.store import MetadataError
from barnabas.config import BrokerConfig
from barnabas.controller.leader_election import Settings
from barnabas.errors import ConfigError, KafkaError, NotController
from barnabas.metrics import Registry
from barnabas.types import TopicPartition
from simulation.control_answers import ControlAnswers
from simulation.coordinating import Coordinators
from simulation.disk import Disk
from simulation.following import Fetchers
from simulation.life_loop import loop_of
from simulation.log_store import DIRECTORY, LogStore
from simulation.metadata import Session
from simulation.network import Reply
from simulation.peers import SimLinks, SimPeers
from simulation.serving import Serving
from simulation.sim_replica import SimReplica
from simulation.topic_configs import ConfigWatch
from simulation.wire import (
    ApiRequest,
    AskCoordinator,
    AskEpochEnd,
    AskGroup,
    AskLatest,
    AskMetadata,
    Fetch,
    Metadata,
    Produce,
    Read,
    Request,
    ShutdownAnswer,
    ShutdownRequest,
    Verify,
    WriteMarker,
)
from simulation.world import Life

if TYPE_CHECKING:
    from barnabas.broker.inter_broker.peer_links import PeerLinks
    from barnabas.storage.store import LogStore as RealLogStore
    from simulation.cluster import Cluster

_RETRY_MS = 80
_CALL_TIMEOUT_MS = 1200
_CHECKPOINT_EVERY_TICKS = 3
_SHUTDOWN_TRIES = 3
_CONTROLLER_TIMEOUT_MS = 1000
_RESTART_MS = 300
_ISR_PACE = Pace(check_every_ms=350, linger_ms=350, max_delay_ms=2000)

CLUSTER_ID = "sim"


class SimBroker:
    """A broker process."""

    __slots__ = (
        "_control_answers",
        "_early",
        "_served",
        "_ticks",
        "_unplaced",
        "alter_partition",
        "broker_id",
        "cluster",
        "config",
        "configs",
        "control",
        "controller",
        "coordinators",
        "disk",
        "failure_reports",
        "failures",
        "fetchers",
        "life",
        "loop",
        "peers",
        "replicas",
        "serving",
        "session",
        "store",
        "view",
    )

    def __init__(self, cluster: Cluster, broker_id: int, disk: Disk) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.disk = disk
        self.life = Life()
        world = cluster.world
        self.loop = loop_of(world, self.life, f"broker {broker_id}")
        self.view = ClusterView(broker_id, has_peers=True)
        self.view.update(self.image._replace(cluster_id=CLUSTER_ID))
        self.config = CurrentConfig(cluster.broker_configs[broker_id])
        self.session = Session(cluster.ensemble, self.life, cluster.options.session_timeout_ms)
        self.store = LogStore(self)
        self.peers = SimPeers(self)
        self._unplaced = UnplacedLogs()
        metrics = Registry()
        logs = cast("RealLogStore", self.store)
        self.replicas = Replicas(self.view, logs, self.config, world, metrics)
        proposals = AlterPartitionQueue(metrics)
        self.coordinators = Coordinators(self)
        self.fetchers = Fetchers(self)
        listeners = (self.coordinators, self.fetchers)
        self.failures = DirectoryFailures(ReplicaRemoval(self.replicas, listeners))
        roles = RoleChanges(
            self.replicas,
            self.failures,
            proposals,
            listeners,
            self._unplaced,
            _keep_nothing,
            ReplicaClasses(cluster.machines.partition, partial(cluster.machines.replica, self)),
        )
        self.control = ControlPlane(self.view, self.replicas, roles, ())
        self.controller = self._new_controller()
        self.failure_reports = FailureReports(
            self.failures.queue, logs, self._report_lost, self.loop.create_future()
        )
        self.alter_partition = AlterPartition(proposals, self._isr_approval(), self.replicas.events)
        self._control_answers = ControlAnswers(self)
        self.configs = ConfigWatch(self)
        self.serving = Serving(self)
        self._ticks = 0
        self._early: list[tuple[ApiRequest, Reply]] = []  # received before it knew its epoch
        self._served = self._handlers()

    def _handlers(self) -> dict[type, Callable[[Any, Reply], object]]:
        serving, coordinators = self.serving, self.coordinators
        return {
            Fetch: serving.fetch,
            Produce: serving.produce,
            Read: lambda request, reply: reply(serving.read(request)),
            AskMetadata: lambda request, reply: reply(Metadata(self.image)),
            ApiRequest: self._asked_by_broker,
            AskLatest: lambda request, reply: reply(serving.bounds(request)),
            AskEpochEnd: lambda request, reply: reply(serving.epoch_end(request)),
            ShutdownRequest: self._shutdown_requested,
            AskCoordinator: coordinators.asked,
            AskGroup: coordinators.group_asked,
            Verify: coordinators.verify,
            WriteMarker: serving.write_marker,
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
            self.carry_out,
            self.replicas.latest_epoch_of,
            self.peers,
            self._registered,
            self.cluster.machines.controller,
        )

    async def carry_out(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Carry out a request from a controller, which is this broker or another one."""
        codes = await self.control.handle(request)
        if isinstance(request, LeaderAndIsr):
            self.configs.reread(dict.fromkeys(name.topic for name in codes))
        return codes

    def _isr_approval(self) -> IsrApproval:
        if self.broker_id in self.cluster.options.isr_writers:
            return ZkAlterPartition(self.view, self.session, self.cluster.world, _ISR_PACE)
        links = cast("PeerLinks", SimLinks(self))
        return ControllerApproval(self.view, self.config, self.controller, links)

    @property
    def image(self) -> ClusterImage:
        return self.view.image

    @property
    def epoch(self) -> int:
        """The broker epoch of its registration; -1 before the first registration."""
        return self.view.broker_epoch

    @property
    def hosted(self) -> Mapping[TopicPartition, SimReplica]:
        """Its replicas, by name."""
        return {each.topic_partition: cast(SimReplica, each) for each in self.replicas}

    def replica(self, name: TopicPartition) -> SimReplica:
        """Return a replica. Raises the error to answer if there is none."""
        return cast(SimReplica, self.replicas.replica_of(name))

    @property
    def now_ms(self) -> int:
        return self.cluster.world.now_ms

    def start(self) -> None:
        self.loop.start(self._begin())

    async def _begin(self) -> None:
        endpoint = Endpoint("PLAINTEXT", "sim", 9000 + self.broker_id, "PLAINTEXT")
        self.failure_reports.start()
        self.alter_partition.start()
        try:
            if self.disk.may_have_lost:
                self._unplaced.on_found(await self.controller.read_hosted())
                self.disk.may_have_lost = bool(self._unplaced)
            if self.disk.may_have_lost:
                self.loop.start(self._until_placed())
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

    async def _until_placed(self) -> None:
        """Withdraw the loss warning once the losses of every partition are known: neither this
        registration nor the next one needs it."""
        await self._unplaced.until_placed()
        self.disk.may_have_lost = False
        await self.controller.withdraw_loss_warning()

    def _registered(self, broker_epoch: int) -> None:
        self.replicas.on_registered(broker_epoch)
        self.cluster.checks.registered(self)
        early, self._early = self._early, []
        for request, reply in early:
            self._control_answers.answer(request, reply)

    def _tick(self) -> None:
        """Do housekeeping: time limits of the ISR, checkpoints, write-back."""
        options, world = self.cluster.options, self.cluster.world
        self._ticks += 1
        self.loop.call(self.replicas.check_isr, world.now_ms)
        if self._ticks % _CHECKPOINT_EVERY_TICKS == 0:
            self.checkpoint()
        tick_ms = options.lag_time_max_ms // 2
        if world.chance(tick_ms / options.flush_interval_ms):
            self.flush()
        world.at(tick_ms, self.life, self._tick)

    def checkpoint(self) -> None:
        self.disk.high_watermarks.update(self.replicas.high_watermarks())

    def flush(self) -> None:
        for log in self.disk.logs.values():
            log.flushed = log.log_end_offset

    # --- what it is asked ------------------------------------------------------------------------

    def receive(self, request: Request, reply: Reply) -> None:
        self.loop.call(self._served[type(request)], request, reply)

    def _asked_by_broker(self, request: ApiRequest, reply: Reply) -> None:
        if self.epoch < 0:
            self._early.append((request, reply))  # for this life or the previous one?
        else:
            self._control_answers.answer(request, reply)

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

    # --- the disk --------------------------------------------------------------------------------

    def fail_disk(self, reason: str) -> None:
        """Make its log directory, with every partition in it, unreachable until the next start."""
        self.loop.call(self.failures.on_error, DIRECTORY, OSError(reason))

    async def _report_lost(self, names: Sequence[TopicPartition]) -> None:
        try:
            await self.controller.replicas_offline(names)
        except NotController as error:
            # A controller learns of it when its LeaderAndIsr is refused.
            self.cluster.world.tell("broker {} has not reported it: {}", self.broker_id, error)

    # ---------------------------------------------------------------------------------------------

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


def _keep_nothing() -> None:
    """Do nothing, because many brokers share the process."""


def broker_config(broker_id: int, min_insync_replicas: int, lag_time_max_ms: int) -> BrokerConfig:
    """Return the configuration of a simulated broker."""
    return BrokerConfig(
        {
            "broker.id": str(broker_id),
            "min.insync.replicas": str(min_insync_replicas),
            "replica.lag.time.max.ms": str(lag_time_max_ms),
            "replica.fetch.backoff.ms": str(_RETRY_MS),
            "controller.socket.timeout.ms": str(_CALL_TIMEOUT_MS),
        }
    )
