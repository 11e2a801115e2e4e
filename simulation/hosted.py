"""One replica on one simulated broker: its log, its machines, and the requests waiting for it.

It does only what the machines decide: it serves producers, consumers and followers while it leads,
and reports every step to the checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
)
from barnabas.replication.follower import EpochEnd, Fetched
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.partition import NO_EPOCH, Advance, Effect, ProposeIsr
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import TopicPartition
from simulation.disk import (
    ABORTS,
    COMMITS,
    IN_TRANSACTION,
    NO_PRODUCER,
    PLAIN,
    Entry,
    SimLog,
    header_of,
)
from simulation.network import Reply
from simulation.wire import (
    AskEpochEnd,
    AskLatest,
    Bounds,
    EpochEndAnswer,
    Fetch,
    FetchedPart,
    Produce,
    Produced,
    Read,
    ReadAnswer,
    Verified,
    Wanted,
    WriteMarker,
)

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

FETCH_LIMIT = 50
_PRODUCE_TIMEOUT_MS = 2500


class Waiting(NamedTuple):
    """A producer's request with acks=all that is waiting."""

    offset: int
    deadline_ms: int
    reply: Reply


class Awaiting(NamedTuple):
    """A callback on this broker for the time when the high watermark has passed an offset."""

    offset: int
    go_on: Callable[[bool], None]
    """Called with True once it has, or with False if this broker no longer leads, or leads in
    another epoch."""


class Hosted:
    """A replica and the work that is under way on it."""

    __slots__ = (
        "awaiting",
        "broker",
        "follower",
        "leader",
        "log",
        "name",
        "parked",
        "partition",
        "retry_at_ms",
        "waiting",
    )

    def __init__(self, broker: SimBroker, name: TopicPartition, log: SimLog, min_isr: int) -> None:
        self.broker = broker
        self.name = name
        self.log = log
        checkpointed = broker.disk.high_watermarks.get(name, 0)
        high_watermark = max(log.log_start_offset, min(checkpointed, log.log_end_offset))
        # Immediately: after the next crash the log may be longer, with uncommitted records.
        broker.disk.high_watermarks[name] = high_watermark
        cluster = broker.cluster
        self.partition = cluster.machines.partition(
            name,
            broker.broker_id,
            min_insync_replicas=min_isr,
            high_watermark=high_watermark,
            lag_time_max_ms=cluster.options.lag_time_max_ms,
            topic_id=log.topic_id,
        )
        self.partition.on_registered(broker.epoch)
        self.partition.brokers_changed(broker.live)
        self.partition.on_log_start_moved(log.log_start_offset)
        self.follower = cluster.machines.follower(self.partition, log, backoff_ms=80)
        self.leader = -1  # from which it fetches
        self.retry_at_ms = 0
        self.waiting: list[Waiting] = []
        self.parked: list[Parked] = []
        self.awaiting: list[Awaiting] = []
        cluster.checks.opened(self)

    # --- roles -----------------------------------------------------------------------------------

    def lead(self, state: PartitionImage) -> None:
        partition, log = self.partition, self.log
        is_new = state.leader_epoch > partition.leader_epoch
        if is_new:
            log.epochs.assign(state.leader_epoch, log.log_end_offset)
        self.leader = -1
        effects = partition.become_leader(state, log.log_end_offset, self.broker.now_ms)
        self.broker.cluster.checks.led(self, state)
        self.handle(effects)
        if is_new:
            self.broker.coordinators.on_leading(self)

    def follow(self, state: PartitionImage) -> None:
        self.partition.become_follower(state)
        self.leader = state.leader
        self.retry_at_ms = 0
        self.stopped()

    def stopped(self) -> None:
        """Answer all waiting clients, which must look for another leader."""
        self.broker.coordinators.on_left(self)
        awaiting, self.awaiting = self.awaiting, []
        for one in awaiting:
            one.go_on(False)
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.reply(Produced(NotLeaderOrFollower.code))
        self.wake()

    # --- what the machine decides ----------------------------------------------------------------

    def handle(self, effects: Sequence[Effect]) -> None:
        checks = self.broker.cluster.checks
        for effect in effects:
            if isinstance(effect, Advance):
                checks.advanced(self)
                if self.waiting:
                    self._complete()
                if self.awaiting:
                    self._go_on()
            elif isinstance(effect, ProposeIsr):
                checks.proposed(self, effect.proposal)
                self.broker.propose(self, effect.proposal)

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer) -> None:
        effects = self.partition.on_isr_answer(proposal, answer, self.broker.now_ms)
        self.handle(effects)

    def _complete(self) -> None:
        high_watermark = self.partition.high_watermark
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if each.offset < high_watermark:
                self._promise(each.offset, each.reply)
            else:
                self.waiting.append(each)

    def await_offset(self, offset: int, go_on: Callable[[bool], None]) -> None:
        """Call back when the high watermark has passed the offset, or when it never will on this
        broker."""
        if offset < self.partition.high_watermark:
            go_on(True)
        else:
            self.awaiting.append(Awaiting(offset, go_on))

    def _go_on(self) -> None:
        high_watermark = self.partition.high_watermark
        awaiting, self.awaiting = self.awaiting, []
        self.awaiting += [each for each in awaiting if each.offset >= high_watermark]
        for each in awaiting:
            if each.offset < high_watermark:
                each.go_on(True)

    def _promise(self, offset: int, reply: Reply) -> None:
        if not self.partition.has_enough_in_sync():
            reply(Produced(NotEnoughReplicasAfterAppend.code))
            return
        self.broker.cluster.checks.promised(self, offset)
        reply(Produced(0, offset))

    def expire(self) -> None:
        """Act on time that has passed: for the ISR, and for waiting requests."""
        if not self.partition.is_leader:
            return
        now_ms = self.broker.now_ms
        if len(self.partition.replicas) > 1:
            self.handle(self.partition.expire(now_ms))
        if self.waiting and self.waiting[0].deadline_ms <= now_ms:
            late = [each for each in self.waiting if each.deadline_ms <= now_ms]
            self.waiting = [each for each in self.waiting if each.deadline_ms > now_ms]
            for each in late:
                each.reply(Produced(RequestTimedOut.code))

    # --- clients ---------------------------------------------------------------------------------

    def produce(self, request: Produce, reply: Reply) -> None:
        partition, log = self.partition, self.log
        try:
            self._check_leads()
            if request.acks == -1:
                partition.check_acks_all()
            kind = PLAIN if request.transactional_id is None else IN_TRANSACTION
            entry = Entry(
                log.log_end_offset,
                partition.leader_epoch,
                request.producer,
                request.sequence,
                request.value,
                request.producer_epoch,
                kind,
            )
            offset = self._duplicate(entry)
            effects = self.append(entry) if offset < 0 else []
        except KafkaError as error:
            reply(Produced(error.code))
            return
        if offset < 0:
            offset = entry.offset
        if request.acks == -1:
            if offset < partition.high_watermark and not any(
                isinstance(effect, Advance) for effect in effects
            ):
                self._promise(offset, reply)
            else:
                deadline_ms = self.broker.now_ms + _PRODUCE_TIMEOUT_MS
                self.waiting.append(Waiting(offset, deadline_ms, reply))
        else:
            reply(Produced(0, offset))
        self.handle(effects)

    def _check_leads(self, leader_epoch: int = NO_EPOCH) -> None:
        """Raise the error for a client or follower that is wrong about the leader."""
        if not self.partition.is_leader:
            raise NotLeaderOrFollower(str(self.name))
        self.partition.check_leader_epoch(leader_epoch)

    def append(self, entry: Entry) -> list[Effect]:
        """Append as the leader; the caller handles the effects. Raises KafkaStorageError."""
        if self.broker.disk.is_full:
            self.broker.fail_disk("there is no space left on it")
            raise KafkaStorageError(str(self.name))
        log = self.log
        log.append(entry)
        self.broker.cluster.checks.appended(self)
        effects = list(self.partition.on_appended(log.log_end_offset, self.broker.now_ms))
        self.wake()
        return effects

    def _duplicate(self, entry: Entry) -> int:
        """Return where this record already is, or -1; raises the producer's error.

        An unknown producer must begin at 0. This is stricter than a broker, so that a gap is never
        mistaken for the result of retention.
        """
        if entry.producer == NO_PRODUCER:
            return -1
        producers = self.log.producers
        same = producers.check(header_of(entry))
        if same is not None:
            return same.base_offset
        known = producers.get(entry.producer)
        if entry.sequence and (known is None or known.epoch != entry.producer_epoch):
            raise OutOfOrderSequenceNumber(f"{entry.sequence} of a producer that is not known")
        return -1

    def write_marker(self, request: WriteMarker, reply: Reply) -> None:
        """Write the end of a transaction, as a coordinator has decided it."""
        partition, owner = self.partition, request.owner
        try:
            self._check_leads()
            partition.check_acks_all()
            epoch = request.coordinator_epoch
            self.log.producers.check_marker(owner.producer_id, owner.producer_epoch, epoch)
            entry = Entry(
                self.log.log_end_offset,
                partition.leader_epoch,
                owner.producer_id,
                epoch,
                0,
                owner.producer_epoch,
                COMMITS if request.is_commit else ABORTS,
            )
            effects = self.append(entry)
        except KafkaError as error:
            reply(Verified(error.code))
            return
        self.broker.coordinators.ended(self.name, owner.producer_id)
        self.handle(effects)
        self.await_offset(
            entry.offset,
            lambda is_done: reply(Verified(0 if is_done else NotLeaderOrFollower.code)),
        )

    def read(self, request: Read) -> ReadAnswer:
        partition, log = self.partition, self.log
        try:
            self._check_leads(request.leader_epoch)
        except KafkaError as error:
            return ReadAnswer(error.code)
        if not log.log_start_offset <= request.offset <= log.log_end_offset:
            return ReadAnswer(
                OffsetOutOfRange.code, (), partition.high_watermark, log.log_start_offset
            )
        entries: tuple[Entry, ...] = ()
        end = high_watermark = partition.high_watermark
        aborted: tuple[AbortedTransaction, ...] = ()
        if request.is_committed:
            end = log.producers.stable_below(high_watermark)
            aborted = log.aborted_in(request.offset, end)
        if request.offset < end:
            entries = tuple(log.read(request.offset, end, FETCH_LIMIT))
        return ReadAnswer(0, entries, high_watermark, log.log_start_offset, aborted)

    def epoch_end(self, request: AskEpochEnd) -> EpochEndAnswer:
        """Return where the newest epoch up to the requested one ends in this log (KIP-320)."""
        try:
            self._check_leads(request.leader_epoch)
        except KafkaError as error:
            return EpochEndAnswer(error.code)
        return EpochEndAnswer(0, self.log.epoch_end_offset(request.wanted_epoch)[1])

    def bounds(self, request: AskLatest) -> Bounds:
        """Return the earliest and latest offsets; a new leader withholds them until its HW is in
        its own epoch."""
        partition, log = self.partition, self.log
        try:
            self._check_leads(request.leader_epoch)
        except KafkaError as error:
            return Bounds(error.code)
        latest = partition.high_watermark
        if request.is_follower:
            latest = log.log_end_offset
        elif self.is_latest_uncertain():
            return Bounds(OffsetNotAvailable.code)
        return Bounds(0, log.log_start_offset, latest, partition.leader_epoch)

    def is_latest_uncertain(self) -> bool:
        """Return whether an older leader may have shown more than this leader knows to be
        committed."""
        return self.partition.high_watermark < self.partition.epoch_start_offset

    def delete_records(self) -> None:
        """Delete all records that consumers may see."""
        self.log.raise_start(self.partition.high_watermark)
        self.partition.on_log_start_moved(self.log.log_start_offset)
        self.broker.cluster.checks.deleted(self)

    # --- followers -------------------------------------------------------------------------------

    def fetched(self, request: Fetch, wanted: Wanted, *, is_first: bool) -> FetchedPart:
        """Take a follower's fetch; it counts for the HW when it arrives, not when it is
        answered."""
        partition, log, sent = self.partition, self.log, wanted.sent
        try:
            if not partition.is_leader or request.replica not in partition.replicas:
                raise NotLeaderOrFollower(str(self.name))
            partition.check_leader_epoch(sent.leader_epoch)
            diverging = self._diverging(sent.last_fetched_epoch, sent.offset)
            if diverging is None:
                if not log.log_start_offset <= sent.offset <= log.log_end_offset:
                    raise OffsetOutOfRange(f"{sent.offset}")
                if is_first:
                    fetch = FollowerFetch(
                        request.replica,
                        sent.offset,
                        sent.leader_epoch,
                        sent.log_start_offset,
                        request.broker_epoch,
                    )
                    self.handle(partition.on_fetch(fetch, self.broker.now_ms))
        except KafkaError as error:
            return FetchedPart(self._fetched(error.code, None, 0))
        if diverging is not None:
            return FetchedPart(self._fetched(0, diverging, 0))
        entries = tuple(log.read(sent.offset, log.log_end_offset, FETCH_LIMIT))
        return FetchedPart(self._fetched(0, None, len(entries)), entries)

    def _fetched(self, code: int, diverging: EpochEnd | None, size: int) -> Fetched:
        high_watermark = self.partition.high_watermark
        return Fetched(code, high_watermark, self.log.log_start_offset, diverging, size)

    def _diverging(self, last_epoch: int, offset: int) -> EpochEnd | None:
        if last_epoch < 0:
            return None
        epoch, end = self.log.epoch_end_offset(last_epoch)
        if epoch < 0 and end < 0:
            raise OffsetOutOfRange(f"epoch {last_epoch} is newer than any here")
        if epoch < last_epoch or end < offset:
            return EpochEnd(epoch, end)
        return None

    def end(self) -> EpochEnd:
        """Return its newest epoch and its LEO; the epoch stays known after records have been
        deleted."""
        return EpochEnd(self.log.latest_epoch, self.log.log_end_offset)

    def wake(self) -> None:
        """Answer parked fetches, which may now return something."""
        parked, self.parked = self.parked, []
        for each in parked:
            each.answer()


class Parked:
    """A follower's fetch that found nothing and waits."""

    __slots__ = ("_broker", "_is_done", "_reply", "_request")

    def __init__(self, broker: SimBroker, request: Fetch, reply: Reply) -> None:
        self._broker = broker
        self._request = request
        self._reply = reply
        self._is_done = False

    def answer(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._reply(self._broker.fetch_answer(self._request, is_first=False))
