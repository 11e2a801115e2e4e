"""One tenure of a controller: what it reads, decides and says, from its election to its end.

    watch fires, somebody asks -> read what is new -> decide -> commit -> apply -> deliver

One round at a time; a watch only says that another round is due. What somebody asks for (another
ISR, another leader) is decided in a round, too, and answered when it is committed and delivered.

Where leaders have written their ISRs themselves in the meantime (RE-9), these are read, and what
follows is decided anew. When a commit fails for another reason, somebody else is in charge or
nobody knows what the store holds: `serve` ends with that error, and whoever waits is told to look
for the controller. Nothing is decided after it; whoever is elected next, be it the same broker,
begins with reading everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.controller.broker_channels import Codes, Deliveries
from barnabas.broker.controller.event_queue import Agenda, Question
from barnabas.broker.controller.log_ends import EndsInquiry
from barnabas.broker.controller.registration import Elected, office_of
from barnabas.broker.controller.state_change_log import (
    tell_of_brokers,
    tell_of_moves,
    tell_of_office,
)
from barnabas.broker.controller.topic_deletion import Deletions
from barnabas.broker.controller.topic_nodes import TopicNodes
from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.clock import Random
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.loading import (
    LatestEpochOf,
    children,
    load_brokers,
)
from barnabas.cluster.store import BadVersion, MetadataStore
from barnabas.controller.controller import Controller, Decision, Settings
from barnabas.controller.counts import Counts
from barnabas.controller.decision import Send, split
from barnabas.errors import KafkaError, KafkaStorageError, NotController
from barnabas.metrics import Counter
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.config import BrokerConfig

_log = logging.getLogger(__name__)

_WATCHED = (
    layout.CONTROLLER,
    layout.BROKER_IDS,
    layout.TOPICS,
    layout.DELETE_TOPICS,
    layout.ISR_CHANGES,
    log_dir_notifications.PATH,
)

_DECIDED_ANEW = 5
"""So often in a row; then whoever writes there is no leader that has changed its ISR."""

_Outcome = tuple[object, KafkaError | None]


class OfficeSettings(NamedTuple):
    """What of the broker's configuration a controller obeys."""

    session_timeout_ms: int = 18_000
    timeout_ms: int = 30_000
    rebalance_every_s: int = 0  # 0: never
    max_imbalance_percent: int = 10
    machine: Settings = Settings()

    @classmethod
    def of(cls, config: BrokerConfig) -> OfficeSettings:
        rebalances = config.bool("auto.leader.rebalance.enable")
        every_s = config.int("leader.imbalance.check.interval.seconds")
        return cls(
            config.int("zookeeper.session.timeout.ms"),
            config.int("controller.socket.timeout.ms"),
            every_s if rebalances else 0,
            config.int("leader.imbalance.per.broker.percentage"),
            Settings(
                config.int("min.insync.replicas"), config.bool("unclean.leader.election.enable")
            ),
        )


class Seat(NamedTuple):
    """What a controller on this broker works with, in whichever tenure."""

    store: MetadataStore
    broker_id: int
    random: Random
    latest_epoch_of: LatestEpochOf
    peers: Peers | None
    unclean_elections: Counter
    seen: Callable[[], ClusterImage]
    """The cluster as this broker knows it from its controller, whoever that was."""


class Office:
    """The tenure of this broker. `begin` and `serve` are called once each, in this order."""

    __slots__ = (
        "_controller",
        "_deletions",
        "_deliveries",
        "_inquiry",
        "_on_change",
        "_seat",
        "_settings",
        "_timer",
        "_topics",
        "agenda",
        "elected",
    )

    def __init__(self, seat: Seat, elected: Elected, deliveries: Deliveries) -> None:
        self.elected = elected
        self.agenda = Agenda()
        """Where whoever wants something from this controller leaves it."""
        self._seat = seat
        self._deliveries = deliveries
        deliveries.on_answer = self._answered
        deliveries.on_deposed = self.agenda.end
        self._settings = OfficeSettings()
        self._timer: asyncio.TimerHandle | None = None
        self._controller: Controller | None = None
        self._inquiry: EndsInquiry | None = None
        self._deletions = Deletions()
        self._topics = TopicNodes(
            seat.store, seat.random, seat.latest_epoch_of, elected.version, self.agenda.touch
        )
        self._on_change = {path: partial(self.agenda.look, path) for path in _WATCHED}

    @property
    def image(self) -> ClusterImage:
        """What has been committed."""
        return self._machine.image

    @property
    def counts(self) -> Counts:
        """Of all partitions, for whoever watches over them."""
        return self._machine.counts

    @property
    def _machine(self) -> Controller:
        if self._controller is None:
            raise NotController("this broker has been elected, and is reading what there is")
        return self._controller

    def configure(self, settings: OfficeSettings) -> None:
        """The broker's settings are others now."""
        if settings.machine != self._settings.machine and self._controller is not None:
            self.agenda.is_set_anew = True
            self.agenda.wake()
        self._settings = settings
        self._deliveries.timeout_ms = settings.timeout_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if settings.rebalance_every_s and self.agenda.ended is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(settings.rebalance_every_s, self._time_to_rebalance)

    # --- life ------------------------------------------------------------------------------------

    async def begin(self, cluster_id: str) -> None:
        """Take up everything that the store holds; all is delivered here when it returns."""
        store = self._seat.store
        # Watch first, read then: what changes in between makes another round.
        for path, callback in self._on_change.items():
            store.watch(path, callback)
        topics = await self._topics.unknown(())
        image = ClusterImage(
            cluster_id,
            self._seat.broker_id,
            self.elected.epoch,
            await load_brokers(store),
            topics,
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._controller = self._new_machine(image)
        deleting = await children(store, layout.DELETE_TOPICS)
        await self._carry_out(lambda machine: machine.elected(deleting))
        tell_of_office(image, self.image)
        await self._deliveries.send(self._what_is_gone(), self.image)
        self._ask_for_ends()
        self.agenda.look(layout.DELETE_TOPICS)
        self.agenda.look(log_dir_notifications.PATH)
        self.agenda.look(layout.ISR_CHANGES)
        await self._round()

    def _what_is_gone(self) -> list[Send]:
        """This broker may know topics that are gone: the others look for themselves."""
        gone = self._seat.seen().topics.keys() - self.image.topics.keys()
        if not gone:
            return []
        image = self.image
        assert image.cluster_id is not None
        removal = UpdateMetadata(
            image.controller_id,
            image.controller_epoch,
            image.cluster_id,
            tuple(image.brokers.values()),
            removed_topics=tuple(sorted(gone)),
        )
        return [Send(self._seat.broker_id, removal)]

    def _new_machine(self, image: ClusterImage) -> Controller:
        machine = Controller(self.elected.version, image, self._settings.machine)
        machine.topic_versions = self._topics.versions
        return machine

    async def serve(self) -> None:
        """Do what there is to do, until an error ends the tenure: it is raised."""
        while True:
            await self.agenda.round_due()
            await self._round()

    def close(self, error: Exception) -> None:
        """The tenure is over: whoever waits is told to look for the controller."""
        self.agenda.end(error)
        if self._timer is not None:
            self._timer.cancel()
        if self._inquiry is not None:
            self._inquiry.close()
        resigned = NotController(f"the controller resigned: {error}")
        self.agenda.close(resigned)
        self._deletions.close(resigned)

    # --- what comes from outside -----------------------------------------------------------------

    def _time_to_rebalance(self) -> None:
        self.agenda.is_imbalanced = True
        self.agenda.wake()
        self.configure(self._settings)  # the next time, too

    def is_held_up(self, topic: str) -> bool:
        """Whether the deletion of a topic waits for what is not there at the moment."""
        return self._deletions.is_held_up(topic, self.image)

    async def gone(self, topic: str) -> None:
        """Wait until no trace is left of a topic that is being deleted; raises NotController."""
        await self._deletions.gone(topic)

    def _answered(self, broker_id: int, request: ControlRequest, codes: Codes) -> None:
        if self._controller is None:
            # It was asked before the store was lost; all is asked again once that has been read.
            return
        if isinstance(request, LeaderAndIsr):
            lost = [
                name
                for name, code in codes.items()
                if code == KafkaStorageError.code and not self._knows_lost(broker_id, name)
            ]
            broker = self.image.brokers.get(broker_id)
            if lost and broker is not None:
                # The channel is that of the registration in the image; in the round that takes it
                # up the broker may be gone, or back with its disk.
                self.agenda.lose(broker_id, lost, broker.epoch)
        elif isinstance(request, StopReplica) and request.delete:
            self._deletions.answered(broker_id, request, codes)
            if self._deletions.without_replicas():
                self.agenda.wake()

    def _knows_lost(self, broker_id: int, name: TopicPartition) -> bool:
        topic = self.image.topics.get(name.topic)
        partition = None if topic is None else topic.partitions.get(name.partition)
        return partition is None or broker_id in partition.offline_replicas

    # --- rounds ----------------------------------------------------------------------------------

    async def _round(self) -> None:
        """Take up whatever has changed since the last round."""
        agenda = self.agenda
        agenda.begin_round()
        changed, agenda.changed = agenda.changed, {}
        for path in changed:
            self._seat.store.watch(path, self._on_change[path])
        if layout.CONTROLLER in changed:
            await self._look_whose_office_it_is()
        if agenda.is_set_anew:
            await self._start_over()
        if layout.BROKER_IDS in changed:
            await self._take_up_brokers()
        if layout.TOPICS in changed:
            await self._take_up_new_topics()
        await self._take_up_touched_topics()
        await self._take_up_configs()
        if log_dir_notifications.PATH in changed:
            await self._take_up_log_dir_events()
        if layout.ISR_CHANGES in changed:
            await self._take_up_isr_changes()
        await self._take_up_troubles()
        await self._answer_questions()
        if agenda.is_imbalanced:
            agenda.is_imbalanced = False
            percent = self._settings.max_imbalance_percent
            await self._carry_out(lambda machine: machine.rebalance_leaders(percent))
        if layout.DELETE_TOPICS in changed:
            await self._take_up_deletions()
        await self._finish_deletions()
        agenda.end_round()

    async def _look_whose_office_it_is(self) -> None:
        if await office_of(self._seat.store, self._seat.broker_id) != self.elected:
            raise NotController("another broker has been elected")

    async def _start_over(self) -> None:
        """Other defaults for all topics: who may lead by them leads, as after an election."""
        self.agenda.is_set_anew = False
        self._machine.configure(self._settings.machine)
        await self._carry_out(lambda machine: machine.elected(self._deletions))
        await self._carry_out(lambda machine: machine.deletions_requested(self._deletions))
        self._ask_for_ends()

    async def _take_up_brokers(self) -> None:
        before = self.image
        live = await load_brokers(self._seat.store)
        await self._carry_out(lambda machine: machine.brokers_changed(live))
        tell_of_brokers(before, self.image)
        self._ask_for_ends()

    def _ask_for_ends(self) -> None:
        """See that somebody asks where logs end, if nobody can lead before that is known."""
        peers = self._seat.peers
        if peers is None or not self._machine.ends_wanted:
            return
        if self._inquiry is None or self._inquiry.is_over:
            timeout_ms = self._settings.timeout_ms
            self._inquiry = EndsInquiry(
                peers,
                timeout_ms,
                wanted=lambda: (self.image, self._machine.ends_wanted),
                heard=self.agenda.hear_of_ends,
            )

    async def _take_up_new_topics(self) -> None:
        added = await self._topics.unknown(self.image.topics)
        if added:
            await self._carry_out(lambda machine: machine.topics_added(list(added.values())))

    async def _take_up_touched_topics(self) -> None:
        """A topic that was touched may have grown."""
        touched, self.agenda.touched = self.agenda.touched, {}
        topics = [
            self.image.topics[name]
            for name in sorted(touched)
            if name in self.image.topics and name not in self._deletions
        ]
        grown = await self._topics.grown(topics)
        if grown:
            await self._carry_out(lambda machine: machine.partitions_added(grown))

    async def _take_up_configs(self) -> None:
        names, self.agenda.reconfigured = self.agenda.reconfigured, {}
        known = [name for name in sorted(names) if name in self.image.topics]
        if known:
            configs = await self._topics.configs(known)
            await self._carry_out(lambda machine: machine.configs_changed(configs))

    async def _take_up_log_dir_events(self) -> None:
        """A broker that is asked to host what it has lost says so in its answer."""
        for broker_id in await log_dir_notifications.take(self._seat.store, self.elected.version):
            if broker_id in self.image.brokers:
                asked = log_dir_notifications.everything_hosted(
                    self.image, broker_id, {*self._deletions}
                )
                await self._deliveries.send([asked], self.image)

    async def _take_up_isr_changes(self) -> None:
        """What leaders have written by themselves, everybody is to hear of."""
        store = self._seat.store
        said = await isr_notifications.announced(store)
        self._machine.states_read(await isr_notifications.read_states(store, said.partitions))
        await self._carry_out(lambda machine: machine.isrs_announced(said.partitions))
        await isr_notifications.remove(store, said.paths, self.elected.version)

    async def _take_up_troubles(self) -> None:
        """Replicas that are lost, and ends of logs that had to be asked for."""
        lost, self.agenda.lost = self.agenda.lost, {}
        for (broker_id, broker_epoch), names in lost.items():
            await self._carry_out(
                partial(
                    Controller.replicas_offline,
                    broker_id=broker_id,
                    names=names,
                    broker_epoch=broker_epoch,
                )
            )
        ends, self.agenda.ends = self.agenda.ends, []
        for said in ends:
            await self._carry_out(partial(Controller.ends_known, ends=said))

    async def _answer_questions(self) -> None:
        agenda = self.agenda
        # Those that come meanwhile wait for the next round: else who asks again and again would
        # keep everything else from it, such as the death of a broker.
        for _ in range(len(agenda.questions)):
            # It stays there until it is answered, if need be by `close`.
            outcomes: list[_Outcome] = []
            await self._carry_out(partial(_ask, agenda.questions[0], outcomes))
            agenda.answered(*outcomes[-1])

    async def _take_up_deletions(self) -> None:
        wished = [
            name
            for name in await children(self._seat.store, layout.DELETE_TOPICS)
            if name not in self._deletions
        ]
        if wished:
            for name in wished:
                self._deletions.begin(name, self.image.topics.get(name))
            await self._carry_out(lambda machine: machine.deletions_requested(wished))

    async def _finish_deletions(self) -> None:
        """Where every replica is gone the nodes can go."""
        names = self._deletions.without_replicas()
        if not names:
            return
        paths = await self._topics.paths_of(names)
        if paths:
            await self._carry_out(lambda machine: machine.replicas_deleted(names, paths))
        self._deletions.removed(names)

    async def _carry_out(self, decide: Callable[[Controller], Decision]) -> None:
        """Decide, commit, apply, send; in this order, or nothing."""
        for attempt in range(1, _DECIDED_ANEW + 1):
            decision = decide(self._machine)
            overtaken = await self._commit(decision)
            if overtaken is None:
                break
            if attempt == _DECIDED_ANEW or not await self._caught_up(decision):
                raise overtaken
        before = self.image
        self._machine.apply(decision)
        tell_of_moves(isr_notifications.states_written(decision.operations), before, self.image)
        self._seat.unclean_elections.increment(decision.unclean_elections)
        for note in decision.notes:
            _log.warning("%s", note)
        await self._deliveries.send(decision.requests, self.image)

    async def _commit(self, decision: Decision) -> BadVersion | None:
        """An error where a leader may have been faster, and nothing of it has been committed."""
        for number, operations in enumerate(split(decision.operations)):
            if self.agenda.ended is not None:
                raise self.agenda.ended
            try:
                await self._seat.store.commit(operations)
            except BadVersion as error:
                if number == 0 and layout.partition_of_state(error.path) is not None:
                    return error
                raise
        return None

    async def _caught_up(self, decision: Decision) -> bool:
        """Read the state nodes that it would have written; whether they were others than known."""
        names = isr_notifications.states_written(decision.operations)
        return self._machine.states_read(
            await isr_notifications.read_states(self._seat.store, names)
        )


def _ask(question: Question, outcomes: list[_Outcome], machine: Controller) -> Decision:
    """What is decided on it; the outcome, or why nothing is decided, goes to the list."""
    try:
        decision, answer = question.decide(machine)
    except KafkaError as error:
        outcomes.append((None, error))
        return Decision((), machine.image, ())
    outcomes.append((answer, None))
    return decision
