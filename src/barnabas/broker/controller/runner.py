"""This broker's controller, active or not: all that clients and brokers ask of a controller.

Requests that need the controller raise NotController if another broker is controller or there is
none. How this broker becomes controller and stops being it is `election`; its work in between is
`event_loop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.controller.broker_channels import Deliver
from barnabas.broker.controller.controller_settings import (
    ControllerContext,
    ControllerSettings,
    NewMachine,
)
from barnabas.broker.controller.election import ControllerElection, Registered
from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.controller.stray_logs import StrayLogs
from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.loading import LatestEpochOf, children, no_log
from barnabas.cluster.producer_id_block import take_block
from barnabas.cluster.store import MetadataError, MetadataStore, SessionExpired
from barnabas.controller.controller import Controller
from barnabas.controller.counts import Counts
from barnabas.errors import KafkaError, NotController
from barnabas.metrics import Family, Registry, Sample, gauge
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.controller.peer_connection import Peers
    from barnabas.broker.controller.topic_admin import TopicAdmin
    from barnabas.config import BrokerConfig
    from barnabas.controller.topics import NewTopic


_MBEAN = "kafka.controller:type=KafkaController,name="
_NOT_CONTROLLER = Counts(0, 0, 0, 0)

_ATTEMPTS = 10
_RETRY_S = 1.0


def _ignore(broker_epoch: int) -> None:
    """Do nothing: this broker does not use the epoch."""


class ControllerRunner:
    """The controller of one broker. Call `start` and `stop` once each."""

    __slots__ = (
        "_context",
        "_election",
        "_hosted",
        "_random",
        "_store",
        "_strays",
        "_topic_admin",
    )

    def __init__(  # noqa: PLR0913  (the last six are options)
        self,
        store: MetadataStore,
        view: ClusterView,
        clock: Clock,
        random: Random,
        settings: ControllerSettings,
        deliver: Deliver,
        latest_epoch_of: LatestEpochOf = no_log,
        peers: Peers | None = None,
        registered: Registered = _ignore,
        new_machine: NewMachine = Controller,
        strays: StrayLogs | None = None,
        metrics: Registry | None = None,
    ) -> None:
        """`deliver` carries out a request on this broker: see `broker_channels`.

        `latest_epoch_of` returns the latest leader epoch in this broker's log of a partition, which
        the store may have lost. `peers` connects to the other brokers; None if there cannot be any.
        `registered` gets each broker epoch, after `view` and before anything else happens. `strays`
        are this broker's logs over which no topic is created automatically.
        """
        metrics = Registry() if metrics is None else metrics
        metrics.declare(self._families)
        unclean_elections = metrics.counter(
            "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
            "Leaders that this controller elected from outside the ISR",
        )
        self._store = store
        self._random = random
        self._context = ControllerContext(
            store,
            view,
            random,
            deliver,
            latest_epoch_of,
            peers,
            new_machine,
            unclean_elections,
        )
        self._election = ControllerElection(self._context, clock, settings, registered)
        self._topic_admin: TopicAdmin | None = None
        self._hosted: frozenset[TopicPartition] = frozenset()
        self._strays = strays or StrayLogs({})

    @property
    def is_active(self) -> bool:
        """True while this broker is the controller."""
        return self._election.is_active

    @property
    def is_registered(self) -> bool:
        """Return whether this broker still has the session in which it registered."""
        return self._election.is_registered

    @property
    def controller_id(self) -> int:
        """The controller, as far as this broker knows; -1 while there is none."""
        return self._election.controller_id

    @property
    def image(self) -> ClusterImage:
        """The cluster's state, as this controller has committed it. Raises NotController."""
        return self._election.term().image

    @property
    def counts(self) -> Counts:
        """Counts of all partitions, as this controller knows them. Raises NotController."""
        return self._election.term().counts

    @property
    def left_out(self) -> tuple[str, ...]:
        """The reasons why registered brokers are left out; only the controller knows them."""
        return self._election.term().left_out if self.is_active else ()

    @property
    def known_partitions(self) -> frozenset[TopicPartition]:
        """Every partition that has a replica on this broker; its other logs are strays.

        If another broker is controller, the answer is the one read from the store at the start.
        """
        try:
            topics = self.image.topics
        except NotController:
            return self._hosted
        return frozenset(
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number, partition in topic.partitions.items()
            if self._context.view.broker_id in partition.replicas
        )

    def _families(self) -> Iterator[Family]:
        """Yield metrics that every broker has; as in Kafka they are 0 unless it is controller."""
        try:
            counts = self.counts
        except NotController:  # another is controller, or this one is still loading
            counts = _NOT_CONTROLLER
        away = counts.preferred_imbalance
        for name, value, sentence in (
            ("ActiveControllerCount", self.is_active, "1 on the controller, 0 elsewhere"),
            ("OfflinePartitionsCount", counts.offline_partitions, "Partitions without a leader"),
            ("PreferredReplicaImbalanceCount", away, "Partitions not led by their first replica"),
            ("GlobalTopicCount", counts.topics, "Topics of the cluster"),
            ("GlobalPartitionCount", counts.partitions, "Partitions of the cluster"),
        ):
            yield gauge(f"{_MBEAN}{name}", sentence, [Sample(value)])

    def configure(self, config: BrokerConfig) -> None:
        """Take over the broker's changed settings."""
        self._election.configure(ControllerSettings.of(config))

    # --- life ------------------------------------------------------------------------------------

    async def start(self, broker: BrokerImage, cluster_id: str | None = None) -> str:
        """Register, and become controller if there is none; returns the cluster's id.

        `cluster_id` is the one in the data directories, if they have any. When it returns, a
        controller has read everything in the store and delivered it here. Raises ConfigError (id
        taken, another cluster) or CorruptData.
        """
        found = await ensure_base(self._store, cluster_id, self._random)
        is_alone = self._context.peers is None
        self._hosted = frozenset() if is_alone else await self.read_hosted()
        await self._election.start(broker, found)
        return found

    async def stop(self) -> None:
        """Stop deciding; every caller gets NotController."""
        await self._election.stop()

    async def withdraw_loss_warning(self) -> None:
        """Withdraw the warning that this broker may have lost records when it ended (KIP-966).

        No partition relies on those records now, so the next controller must not treat its
        registration as a warning again.
        """
        await self._election.withdraw_loss_warning()

    async def read_hosted(self) -> frozenset[TopicPartition]:
        """Return every partition that has a replica on this broker according to the store."""
        hosted = []
        for name in await children(self._store, layout.TOPICS):
            node = await self._store.read(layout.topic_path(name))
            if node is not None:
                replicas = layout.decode_topic(name, node.data).replicas
                hosted += [
                    TopicPartition(name, number)
                    for number, broker_ids in replicas.items()
                    if self._context.view.broker_id in broker_ids
                ]
        return frozenset(hosted)

    # --- topics ----------------------------------------------------------------------------------

    @property
    def _topics(self) -> TopicAdmin:
        if self._topic_admin is None:
            from barnabas.broker.controller.topic_admin import TopicAdmin  # for the first topic

            self._topic_admin = TopicAdmin(
                self._store, self._random, self._context.view, self._election.term
            )
        return self._topic_admin

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Create a topic, and return it once it has been delivered with its leaders.

        With `validate_only` nothing is created. Raises the KafkaError for the client: InvalidTopic,
        TopicAlreadyExists, InvalidConfig, InvalidPartitions, PolicyViolation,
        InvalidReplicationFactor, InvalidReplicaAssignment or NotController.
        """
        (outcome,) = await self._topics.create([topic], validate_only=validate_only)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicImage | KafkaError]:
        """Create topics like `create_topic`, in one commit and one round; returns failures."""
        return await self._topics.create(topics, validate_only=validate_only)

    async def auto_create_topics(self, topics: Sequence[NewTopic]) -> list[TopicImage | KafkaError]:
        """Create topics on any broker; returns once this broker knows them.

        It works as `create_topics` does. A topic that would be created over existing logs of its
        name has KafkaStorageError as its outcome.
        """
        refused = {each.name: self._strays.refusal(each.name) for each in topics}
        free = [each for each in topics if refused[each.name] is None]
        create = self._topics.create if self.is_active else self._topics.auto_create
        created = iter(await create(free))
        return [refused[each.name] or next(created) for each in topics]

    async def create_partitions(
        self,
        topic: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> TopicImage:
        """Enlarge a topic to `total` partitions; returns it once the new ones have leaders (TP-5).

        `assignment` has the replicas of each new partition, in the order of their numbers; without
        it they are placed. No record moves. With `validate_only` nothing is created, and the answer
        is the same. Raises what `TopicWriter.grow` raises.
        """
        return await self._topics.create_partitions(
            topic, total, assignment, validate_only=validate_only
        )

    async def delete_topics(self, names: Sequence[str]) -> list[KafkaError | None]:
        """Delete topics with all of their records, in one commit and one round.

        Returns when nothing of them is left in the store. Failures are returned, topic by topic:
        UnknownTopicOrPartition, or RequestTimedOut if a replica is on a broker or in a log
        directory that has failed (the replica is deleted when that is back). Raises NotController.
        """
        return await self._topics.delete(names)

    # --- partitions ------------------------------------------------------------------------------

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal]
    ) -> dict[TopicPartition, IsrAnswer]:
        """Decide on ISRs that a leader proposes (KIP-497). Raises NotController."""
        return await self._election.term().events.submit(
            lambda machine: machine.isr_proposed(broker_id, broker_epoch, proposals)
        )

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move the leaderships of a broker that is about to stop; returns those it keeps (RE-13).

        Raises NotController, StaleBrokerEpoch or BrokerIdNotRegistered.
        """
        return await self._election.term().events.submit(
            lambda machine: machine.shutdown_requested(broker_id, broker_epoch)
        )

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None, unclean: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect preferred leaders, or (KIP-460) any live replicas; None means all partitions."""
        return await self._election.term().events.submit(
            lambda machine: machine.elect_leaders(partitions, unclean=unclean)
        )

    async def reassign(
        self, replicas: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to other replicas; None cancels a move (KIP-455)."""
        return await self._election.term().events.submit(lambda machine: machine.reassign(replicas))

    def reassignments(
        self, names: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, PartitionImage]:
        """Return which of these partitions (None: all) are being moved. Raises NotController."""
        topics = self.image.topics
        if names is None:
            names = [
                TopicPartition(topic.name, number)
                for topic in topics.values()
                for number in topic.partitions
            ]
        found = {}
        for name in names:
            topic = topics.get(name.topic)
            partition = None if topic is None else topic.partitions.get(name.partition)
            if partition is not None and (partition.adding or partition.removing):
                found[name] = partition
        return found

    async def allocate_producer_id_block(self) -> tuple[int, int]:
        """Return the first and the last of a thousand producer ids that were never given out.

        Any broker takes them by itself. Raises NotController if the store does not answer.
        """
        return await take_block(self._store, self._context.view.broker_id)

    # --- this broker's events --------------------------------------------------------------------

    async def replicas_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """Report that this broker has lost these replicas with a log directory (KIP-112).

        Returns once every broker has been sent the outcome, or once the loss is announced to a
        controller on another broker. A controller that misses the announcement learns of the loss
        when it is elected, or when this broker registers: its LeaderAndIsr is refused. Raises
        NotController if the store does not answer for long.
        """
        broker_id = self._context.view.broker_id
        if self.is_active:
            events = self._election.term().events
            events.replicas_lost(broker_id, partitions)
            with suppress(NotController):
                await events.whole_round()
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await log_dir_notifications.announce(self._store, broker_id)
            # The next registration gets LeaderAndIsr for everything, and its answer reports the
            # loss.
            except SessionExpired:
                return
            except MetadataError as error:
                if attempt == _ATTEMPTS:
                    raise NotController(f"the metadata store does not answer: {error}") from error
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def topic_config_changed(self, topic: str) -> None:
        """Send a written topic config to every broker; returns when that is done.

        A controller on another broker notices the change by its own watch.
        """
        if self.is_active:
            events = self._election.term().events
            events.config_changed(topic)
            await events.whole_round()
