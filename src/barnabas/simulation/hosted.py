"""One replica on one simulated broker: its log, its machines, and who waits for it.

It does what the machines decide and nothing else: serves producers, consumers and followers while
it leads, and tells the checkers of every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.control import IsrAnswer, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    KafkaError,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
)
from barnabas.replication.follower import EpochEnd, Fetched
from barnabas.replication.partition import Advance, Effect, FollowerFetch, ProposeIsr
from barnabas.simulation.disk import NO_PRODUCER, SimLog
from barnabas.simulation.network import Reply
from barnabas.simulation.wire import (
    AskLatest,
    Bounds,
    Fetch,
    FetchedPart,
    Produce,
    Produced,
    Read,
    ReadAnswer,
    Wanted,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.sim_broker import SimBroker

FETCH_LIMIT = 50
_PRODUCE_TIMEOUT_MS = 2500


class Waiting(NamedTuple):
    """A producer that has asked for acks=all."""

    offset: int
    deadline_ms: int
    reply: Reply


class Hosted:
    """A replica and what is going on with it."""

    __slots__ = (
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
        # At once: after the next crash the log may be longer, with records that are not committed.
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
        self.partition.broker_epoch = broker.epoch
        self.partition.live = broker.live
        self.partition.log_start_offset = log.log_start_offset
        self.follower = cluster.machines.follower(self.partition, log, backoff_ms=80)
        self.leader = -1  # whom it fetches from
        self.retry_at_ms = 0
        self.waiting: list[Waiting] = []
        self.parked: list[Parked] = []
        cluster.checks.opened(self)

    # --- roles -----------------------------------------------------------------------------------

    def lead(self, state: PartitionImage) -> None:
        partition, log = self.partition, self.log
        if state.leader_epoch > partition.leader_epoch:
            log.epochs.assign(state.leader_epoch, log.log_end_offset)
        self.leader = -1
        effects = partition.become_leader(state, log.log_end_offset, self.broker.now_ms)
        self.broker.cluster.checks.led(self, state)
        self.handle(effects)

    def follow(self, state: PartitionImage) -> None:
        self.partition.become_follower(state)
        self.leader = state.leader
        self.retry_at_ms = 0
        self.stopped()

    def stopped(self) -> None:
        """Whoever waits must look for another leader."""
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
            elif isinstance(effect, ProposeIsr):
                checks.proposed(self, effect.proposal)
                self.broker.propose(self, effect.proposal)

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer) -> None:
        effects = self.partition.isr_answered(proposal, answer, self.broker.now_ms)
        self.handle(effects)

    def _complete(self) -> None:
        high_watermark = self.partition.high_watermark
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if each.offset < high_watermark:
                self._promise(each.offset, each.reply)
            else:
                self.waiting.append(each)

    def _promise(self, offset: int, reply: Reply) -> None:
        if not self.partition.has_enough_in_sync():
            reply(Produced(NotEnoughReplicasAfterAppend.code))
            return
        self.broker.cluster.checks.promised(self, offset)
        reply(Produced(0, offset))

    def expire(self) -> None:
        """Time has passed: for the ISR, and for those who wait."""
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
            if not partition.is_leader:
                raise NotLeaderOrFollower(str(self.name))
            if request.acks == -1:
                partition.check_acks_all()
            offset = self._duplicate(request)
        except KafkaError as error:
            reply(Produced(error.code))
            return
        effects: list[Effect] = []
        if offset < 0:
            offset = log.append(
                partition.leader_epoch, request.producer, request.sequence, request.value
            )
            self.broker.cluster.checks.appended(self)
            effects = list(partition.appended(log.log_end_offset, self.broker.now_ms))
            self.wake()
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

    def _duplicate(self, request: Produce) -> int:
        """Where this record is already, or -1; raises OutOfOrderSequenceNumber."""
        if request.producer == NO_PRODUCER:
            return -1
        written = self.log.producers.get(request.producer, [])
        for each in written:
            if each.sequence == request.sequence:
                return each.offset
        expected = written[-1].sequence + 1 if written else 0
        if request.sequence != expected:
            raise OutOfOrderSequenceNumber(f"{request.sequence}, not {expected}")
        return -1

    def read(self, request: Read) -> ReadAnswer:
        partition, log = self.partition, self.log
        try:
            if not partition.is_leader:
                raise NotLeaderOrFollower(str(self.name))
            partition.check_leader_epoch(request.leader_epoch)
        except KafkaError as error:
            return ReadAnswer(error.code)
        if not log.log_start_offset <= request.offset <= log.log_end_offset:
            return ReadAnswer(
                OffsetOutOfRange.code, (), partition.high_watermark, log.log_start_offset
            )
        entries: tuple[object, ...] = ()
        high_watermark = partition.high_watermark
        if request.offset < high_watermark:
            entries = tuple(log.read(request.offset, high_watermark, FETCH_LIMIT))
        return ReadAnswer(0, entries, high_watermark, log.log_start_offset)  # type: ignore[arg-type]

    def bounds(self, request: AskLatest) -> Bounds:
        """Earliest and latest; a new leader keeps silent until its HW is in its own epoch."""
        partition, log = self.partition, self.log
        try:
            if not partition.is_leader:
                raise NotLeaderOrFollower(str(self.name))
            partition.check_leader_epoch(request.leader_epoch)
        except KafkaError as error:
            return Bounds(error.code)
        latest = partition.high_watermark
        if request.is_follower:
            latest = log.log_end_offset
        elif self.is_latest_uncertain():
            return Bounds(OffsetNotAvailable.code)
        return Bounds(0, log.log_start_offset, latest, partition.leader_epoch)

    def is_latest_uncertain(self) -> bool:
        """An older leader may have shown more than this one knows to be committed so far."""
        return self.partition.high_watermark < self.partition.epoch_start_offset

    def delete_records(self) -> None:
        """Everything that consumers may see goes."""
        self.log.raise_start(self.partition.high_watermark)
        self.partition.log_start_offset = self.log.log_start_offset
        self.broker.cluster.checks.deleted(self)

    # --- followers -------------------------------------------------------------------------------

    def fetched(self, request: Fetch, wanted: Wanted, *, is_first: bool) -> FetchedPart:
        """A follower's fetch; it counts for the HW when it comes, not when it is answered."""
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
                    self.handle(partition.fetched(fetch, self.broker.now_ms))
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
        """Its newest epoch, and its LEO; where records were deleted the epoch is known still."""
        return EpochEnd(self.log.latest_epoch, self.log.log_end_offset)

    def wake(self) -> None:
        """Parked fetches may have something to bring home."""
        parked, self.parked = self.parked, []
        for each in parked:
            each.answer()


class Parked:
    """A follower's fetch that found nothing."""

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
