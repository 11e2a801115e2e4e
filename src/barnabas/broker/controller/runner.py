"""Provides clients and brokers with this broker's controller, whether or not it is active.

On a broker that is not the controller, requests that need the controller raise NotController.
`election` decides when this broker is the controller, and `event_loop` does the work of a
controller.
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
from barnabas.broker.controller.topic_causes import TopicCauses
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
from barnabas.events import EventLog
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
    """Do nothing. This is the default callback."""


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

    def __init__(  # noqa: PLR0913  (the last seven are options)
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
        events: EventLog | None = None,
    ) -> None:
        """`deliver` applies a request on this broker (see `broker_channels`).

        `latest_epoch_of` returns the latest leader epoch in this broker's log for a partition. It
        is needed if the store has lost that epoch. `peers` connects to other brokers, or is None if
        there are none. `registered` is called with each new broker epoch, immediately after `view`
        has been updated. `strays` are this broker's stray logs, whose topics must not be created
        automatically. `events` is the broker's event log. If it is not given, this controller
        creates its own.
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
            EventLog(clock.wall_ms, metrics) if events is None else events,
            TopicCauses(),
        )
        self._election = ControllerElection(self._context, clock, settings, registered)
        self._topic_admin: TopicAdmin | None = None
        self._hosted: frozenset[TopicPartition] = frozenset()
        self._strays = strays or StrayLogs({})

    @property
    def is_active(self) -> bool:
        """Whether this broker is currently the controller."""
        return self._election.is_active

    @property
    def is_registered(self) -> bool:
        """Return whether this broker still has the session in which it registered itself."""
        return self._election.is_registered

    @property
    def controller_id(self) -> int:
        """The id of the current controller as far as this broker knows, or -1 if there is none."""
        return self._election.controller_id

    @property
    def image(self) -> ClusterImage:
        """The committed state of the cluster. Raises NotController."""
        return self._election.term().image

    @property
    def counts(self) -> Counts:
        """The partition counts used for monitoring. Raises NotController."""
        return self._election.term().counts

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why registered brokers are excluded. Only the controller knows the reasons."""
        return self._election.term().left_out if self.is_active else ()

    @property
    def known_partitions(self) -> frozenset[TopicPartition]:
        """All partitions that have a replica on this broker. Any other log on this broker is stray.

        On a broker that is not the controller, this is the state that was read from the store at
        startup.
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
        """Yield the metrics of the controller. As in Kafka, every broker reports them, with the
        value 0 if it is not the controller.
        """
        try:
            counts, brokers = self.counts, len(self.image.brokers)
        except NotController:  # another broker is the controller, or this broker is still loading
            counts, brokers = _NOT_CONTROLLER, 0
        away = counts.preferred_imbalance
        for name, value, sentence in (
            ("ActiveControllerCount", self.is_active, "1 on the controller, 0 elsewhere"),
            ("ActiveBrokerCount", brokers, "Brokers that are registered"),
            # In Kafka, 0 means that no event is being handled. Barnabas never renders the page
            # while it handles an event.
            ("ControllerState", 0, "Always 0: the controller is idle whenever a page is rendered"),
            ("OfflinePartitionsCount", counts.offline_partitions, "Partitions without a leader"),
            ("PreferredReplicaImbalanceCount", away, "Partitions not led by their first replica"),
            ("GlobalTopicCount", counts.topics, "Topics of the cluster"),
            ("GlobalPartitionCount", counts.partitions, "Partitions of the cluster"),
        ):
            yield gauge(f"{_MBEAN}{name}", sentence, [Sample(value)])

    def configure(self, config: BrokerConfig) -> None:
        """Apply broker settings that have changed."""
        self._election.configure(ControllerSettings.of(config))

    # --- lifecycle -------------------------------------------------------------------------------

    async def start(self, broker: BrokerImage, cluster_id: str | None = None) -> str:
        """Register this broker, become the controller if there is none, and return the cluster id.

        `cluster_id` is the id found in the data directories, if any. When `start` returns, a
        controller has delivered the entire state of the store to this broker. Raises CorruptData,
        or ConfigError if the broker id is in use or the cluster id differs.
        """
        found = await ensure_base(self._store, cluster_id, self._random)
        is_alone = self._context.peers is None
        self._hosted = frozenset() if is_alone else await self.read_hosted()
        await self._election.start(broker, found)
        return found

    async def stop(self) -> None:
        """Resign as controller. All callers that are still waiting get NotController."""
        await self._election.stop()

    async def withdraw_loss_warning(self) -> None:
        """Clear the warning that this broker may have lost records in an unclean shutdown
        (KIP-966).

        No partition depends on those records any longer, so the next controller must not act on the
        warning again.
        """
        await self._election.withdraw_loss_warning()

    async def read_hosted(self) -> frozenset[TopicPartition]:
        """Return all partitions that have a replica on this broker according to the
        metadata store.
        """
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

            self._topic_admin = TopicAdmin(self._context, self._election.term)
        return self._topic_admin

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Create a topic, and return it once the brokers know its leaders.

        With `validate_only`, nothing is created. Raises the KafkaError for the client, which is
        InvalidTopic, TopicAlreadyExists, InvalidConfig, InvalidPartitions, PolicyViolation,
        InvalidReplicationFactor, InvalidReplicaAssignment or NotController.
        """
        (outcome,) = await self._topics.create([topic], validate_only=validate_only)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicImage | KafkaError]:
        """Create topics as `create_topic` does, but in a single commit and round. Failures are
        returned, not raised.
        """
        return await self._topics.create(topics, validate_only=validate_only)

    async def auto_create_topics(self, topics: Sequence[NewTopic]) -> list[TopicImage | KafkaError]:
        """Create topics, and return once this broker knows them. This works on any broker.

        Unlike with `create_topics`, creating a topic fails with KafkaStorageError if there are
        stray logs with its name.
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
        cause: str = "",
    ) -> TopicImage:
        """Increase the number of partitions of a topic to `total`, and return the topic once the
        new partitions have leaders (TP-5).

        `assignment` lists the replicas of each new partition, in partition order. If it is not
        given, the controller places them. No records are moved. If `validate_only`, nothing is
        created, but the result is the same. Raises the same errors as `TopicWriter.grow`.
        """
        return await self._topics.create_partitions(
            topic, total, assignment, "" if validate_only else cause, validate_only=validate_only
        )

    async def delete_topics(self, names: Sequence[str], cause: str = "") -> list[KafkaError | None]:
        """Delete topics and all of their records, in a single commit and round.

        Returns when the topics have been removed from the store. Failures are returned per topic.
        They are UnknownTopicOrPartition, or RequestTimedOut if a replica is on a failed broker or
        in a failed log directory. Such a replica is deleted when the broker or directory is
        available again. Raises NotController.
        """
        return await self._topics.delete(names, cause)

    # --- partitions ------------------------------------------------------------------------------

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal]
    ) -> dict[TopicPartition, IsrAnswer]:
        """Decide on the ISR changes proposed by a leader (KIP-497). Raises NotController."""
        return await self._election.term().events.submit(
            lambda machine: machine.isr_proposed(broker_id, broker_epoch, proposals)
        )

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move partition leaderships away from a broker that is about to stop, and return the
        leaderships that remain (RE-13).

        Raises NotController, StaleBrokerEpoch or BrokerIdNotRegistered.
        """
        return await self._election.term().events.submit(
            lambda machine: machine.shutdown_requested(broker_id, broker_epoch)
        )

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None, unclean: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Run preferred or unclean elections (KIP-460) for these partitions, or for all if None."""
        return await self._election.term().events.submit(
            lambda machine: machine.elect_leaders(partitions, unclean=unclean)
        )

    async def reassign(
        self, replicas: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Start to reassign partitions to other replicas, or cancel a reassignment if its replicas
        are None (KIP-455).
        """
        return await self._election.term().events.submit(lambda machine: machine.reassign(replicas))

    def reassignments(
        self, names: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, PartitionImage]:
        """Return the ongoing reassignments of these partitions, or of all partitions if None.
        Raises NotController.
        """
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
        """Allocate a block of a thousand producer ids, and return the first and the last id.

        This works on any broker. Raises NotController if the metadata store does not respond.
        """
        return await take_block(self._store, self._context.view.broker_id)

    # --- this broker's events --------------------------------------------------------------------

    async def replicas_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """Report that this broker has lost these replicas together with a log directory (KIP-112).

        Returns once the outcome has been sent to all brokers or, if another broker is the
        controller, once the loss has been announced. A controller that misses the announcement
        learns about the loss when it is elected or when this broker registers, because this broker
        then rejects the controller's LeaderAndIsr. Raises NotController if the store does not
        respond for too long.
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
            # The next registration will get LeaderAndIsr for all partitions, and the loss will be
            # reported in this broker's response.
            except SessionExpired:
                return
            except MetadataError as error:
                if attempt == _ATTEMPTS:
                    raise NotController(f"the metadata store does not answer: {error}") from error
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def topic_config_changed(self, topic: str) -> None:
        """Send a topic's changed config to all brokers, and wait until that is done.

        If the controller is on another broker, it is notified by its own watch.
        """
        if self.is_active:
            events = self._election.term().events
            events.config_changed(topic)
            await events.whole_round()
