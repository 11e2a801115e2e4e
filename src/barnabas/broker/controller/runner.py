"""The controller's desk on this broker: everything that others ask of a controller, held or not.

What needs a controller raises NotController where another broker is it, or nobody. How this broker
comes to the office and loses it is `candidacy`, what it does there `office`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.broker.controller.broker_channels import Deliver, Deliveries
from barnabas.broker.controller.election import Candidacy
from barnabas.broker.controller.event_loop import OfficeSettings, Seat
from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.controller.topic_admin import TopicChanges
from barnabas.broker.coordination.producer_ids import take_block
from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.loading import LatestEpochOf, children, no_log
from barnabas.cluster.store import MetadataError, MetadataStore, SessionExpired
from barnabas.controller.counts import Counts
from barnabas.controller.topics import NewTopic
from barnabas.errors import KafkaError, NotController
from barnabas.metrics import Counter
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.config import BrokerConfig


_ATTEMPTS = 10
_RETRY_S = 1.0


def _nobody(broker: BrokerImage) -> None:
    """Nobody asked to be told."""


class ControllerRunner:
    """The controller's office on this broker, held or not. `start` and `stop` once each."""

    __slots__ = (
        "_candidacy",
        "_hosted",
        "_is_alone",
        "_random",
        "_seat",
        "_store",
        "_topics",
        "cluster_id",
        "on_registered",
        "seen",
    )

    def __init__(  # noqa: PLR0913  (the last two are options)
        self,
        store: MetadataStore,
        broker_id: int,
        clock: Clock,
        random: Random,
        deliver: Deliver,
        latest_epoch_of: LatestEpochOf = no_log,
        peers: Peers | None = None,
    ) -> None:
        """`deliver` hands a request to this broker: see `Deliveries`.

        `latest_epoch_of`: what this broker's logs know of leader epochs that the store has lost.
        `peers`: how to reach the other brokers; None where there can be none.
        """
        self._store = store
        self._random = random
        self._is_alone = peers is None
        self._seat = Seat(
            store, broker_id, random, latest_epoch_of, peers, Counter(), lambda: self.seen()
        )
        self._candidacy = Candidacy(
            self._seat,
            clock,
            deliveries=lambda: Deliveries(broker_id, deliver, peers),
            registered=lambda broker: self.on_registered(broker),
        )
        self._topics = TopicChanges(
            store, random, office=lambda: self._candidacy.office, seen=lambda: self.seen()
        )
        self._hosted: frozenset[TopicPartition] = frozenset()
        self.cluster_id = ""
        """Known before this broker registers, and so before any controller speaks to it."""
        self.on_registered: Callable[[BrokerImage], None] = _nobody
        """Told of each registration of this broker, with its broker epoch, before all else."""
        self.seen: Callable[[], ClusterImage] = lambda: self.image
        """The cluster as this broker knows it from its controller, whoever that is."""

    @property
    def is_in_office(self) -> bool:
        return self._candidacy.is_in_office

    @property
    def controller_id(self) -> int:
        """Who is controller, as far as this broker knows; -1 while nobody is."""
        return self._candidacy.controller_id

    @property
    def image(self) -> ClusterImage:
        """What has been committed, as the controller knows it; raises NotController."""
        return self._candidacy.office.image

    @property
    def counts(self) -> Counts:
        """Of all partitions, as the controller knows them; raises NotController."""
        return self._candidacy.office.counts

    @property
    def unclean_elections(self) -> Counter:
        """Leaders from outside the ISR, elected by this broker in all of its tenures (RE-11)."""
        return self._seat.unclean_elections

    @property
    def known_partitions(self) -> frozenset[TopicPartition]:
        """Every partition that has a replica on this broker; what else it hosts is a stray.

        Where another broker is controller: as the store had it at the start.
        """
        try:
            topics = self.image.topics
        except NotController:
            return self._hosted
        return frozenset(
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number, partition in topic.partitions.items()
            if self._seat.broker_id in partition.replicas
        )

    def configure(self, config: BrokerConfig) -> None:
        """The broker's settings, before the start and whenever they change."""
        self._candidacy.configure(OfficeSettings.of(config))

    # --- life ------------------------------------------------------------------------------------

    async def start(self, broker: BrokerImage, cluster_id: str | None = None) -> str:
        """Register, and be elected if nobody else is; returns the cluster's id.

        `cluster_id`: the one in the data directories, if they have any. A controller has taken up
        everything that the store holds, and delivered it here, when it returns. Raises ConfigError
        (id taken, another cluster) and CorruptData.
        """
        found = self.cluster_id = await ensure_base(self._store, cluster_id, self._random)
        self._hosted = frozenset() if self._is_alone else await self.hosted()
        await self._candidacy.start(broker, found, is_alone=self._is_alone)
        return found

    async def stop(self) -> None:
        """Decide nothing any more; whoever waits gets NotController."""
        await self._candidacy.stop()

    async def is_whole(self) -> None:
        """Whatever this broker may have lost when it ended, nobody counts on it any more.

        So that the next controller does not take its registration for a warning again.
        """
        await self._candidacy.is_whole()

    async def hosted(self) -> frozenset[TopicPartition]:
        """Every partition that the store says has a replica on this broker."""
        hosted = []
        for name in await children(self._store, layout.TOPICS):
            node = await self._store.read(layout.topic_path(name))
            if node is not None:
                replicas = layout.decode_topic(name, node.data).replicas
                hosted += [
                    TopicPartition(name, number)
                    for number, broker_ids in replicas.items()
                    if self._seat.broker_id in broker_ids
                ]
        return frozenset(hosted)

    # --- what clients want of topics -------------------------------------------------------------

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make a topic, and return it when it has been delivered with its leaders.

        With `validate_only` nothing is made. Raises the KafkaError that a client must get:
        InvalidTopic, TopicAlreadyExists, InvalidConfig, InvalidPartitions, PolicyViolation,
        InvalidReplicationFactor, InvalidReplicaAssignment, NotController.
        """
        (outcome,) = await self._topics.create([topic], validate_only=validate_only)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicImage | KafkaError]:
        """As `create_topic` for each, all in one commit and one round; what fails is returned."""
        return await self._topics.create(topics, validate_only=validate_only)

    async def wish_topics(self, topics: Sequence[NewTopic]) -> list[TopicImage | KafkaError]:
        """As `create_topics`, on any broker: each is returned when this broker has heard of it."""
        if self.is_in_office:
            return await self._topics.create(topics)
        return await self._topics.wish(topics)

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
        return await self._topics.grow(topic, total, assignment, validate_only=validate_only)

    async def delete_topics(self, names: Sequence[str]) -> list[KafkaError | None]:
        """Delete topics with all of their records, in one commit and one round.

        Returns when no trace of them is left in the store; what fails is returned, topic by topic:
        UnknownTopicOrPartition, and RequestTimedOut if a part of it is on a broker that is dead or
        in a log directory that has failed (it goes when that is back). Raises NotController.
        """
        return await self._topics.delete(names)

    # --- what brokers and administrators want of partitions --------------------------------------

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal]
    ) -> dict[TopicPartition, IsrAnswer]:
        """A leader proposes ISRs; raises NotController."""
        return await self._candidacy.office.agenda.ask(
            lambda machine: machine.isr_proposed(broker_id, broker_epoch, proposals)
        )

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """A broker is about to stop: what it still leads after its leaderships were moved.

        Raises NotController, StaleBrokerEpoch, BrokerIdNotRegistered.
        """
        return await self._candidacy.office.agenda.ask(
            lambda machine: machine.shutdown_requested(broker_id, broker_epoch)
        )

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None, unclean: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect the preferred leaders, or (KIP-460) any live replica; None: of all partitions."""
        return await self._candidacy.office.agenda.ask(
            lambda machine: machine.elect_leaders(partitions, unclean=unclean)
        )

    async def reassign(
        self, replicas: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to other replicas; None cancels that (KIP-455)."""
        return await self._candidacy.office.agenda.ask(lambda machine: machine.reassign(replicas))

    def reassignments(
        self, names: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, PartitionImage]:
        """Those of these partitions (None: of all) that are being moved; raises NotController."""
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
        """The first and the last of a thousand producer ids that nobody has had before.

        Any broker takes them by itself. Raises NotController if the store does not answer.
        """
        return await take_block(self._store, self._seat.broker_id)

    # --- what this broker tells ------------------------------------------------------------------

    async def replicas_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """This broker has lost these with a log directory.

        Returns when everybody knows; or when it has been announced to a controller elsewhere. What
        a controller does not hear so it hears when it is elected, or when this broker registers:
        it asks, and is refused. Raises NotController if the store does not answer for long.
        """
        if self.is_in_office:
            agenda = self._candidacy.office.agenda
            agenda.lose(self._seat.broker_id, partitions)
            with suppress(NotController):
                await agenda.whole_round()
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await log_dir_notifications.announce(self._store, self._seat.broker_id)
            except SessionExpired:
                return
            except MetadataError as error:
                if attempt == _ATTEMPTS:
                    raise NotController(f"the metadata store does not answer: {error}") from error
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def topic_config_changed(self, topic: str) -> None:
        """A topic's config node has been written; returns when every broker has what it says.

        Where another broker is controller, that one hears of it by its own watch.
        """
        if self.is_in_office:
            agenda = self._candidacy.office.agenda
            agenda.reconfigure(topic)
            await agenda.whole_round()
