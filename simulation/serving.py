"""Answers clients and followers from the replicas of a simulated broker.

The requests are the simulation's own values, but they are carried out by a broker's own code: the
replica, the answer to a producer (`handlers.produce.settle`), the check for a follower that has
diverged, and the marker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from barnabas.broker.coordinator.marker_append import Ending, MarkerAppend
from barnabas.broker.fetching.fetch_reader import diverging_epoch
from barnabas.broker.handlers.produce import settle
from barnabas.errors import (
    NONE,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.fetch import FetchPartition
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.replication.follower import EpochEnd, Fetched
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.partition import NO_EPOCH
from barnabas.storage.transaction_index import AbortedTransaction
from simulation.disk import IN_TRANSACTION, PLAIN, Entry
from simulation.wire import (
    AskEpochEnd,
    AskLatest,
    Bounds,
    EpochEndAnswer,
    Fetch,
    FetchAnswer,
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
    from collections.abc import Coroutine

    from barnabas.types import TopicPartition
    from simulation.network import Reply
    from simulation.sim_broker import SimBroker
    from simulation.sim_replica import SimReplica

FETCH_LIMIT = 50
_PRODUCE_TIMEOUT_MS = 2500
_ALL = -1


class Serving:
    """The requests to the replicas of one broker."""

    __slots__ = ("_broker", "_marker_append")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        world = broker.cluster.world
        self._marker_append = MarkerAppend(world, broker.replicas, None, _no_offsets)

    def _led(self, name: TopicPartition, topic_id: bytes, epoch: int = NO_EPOCH) -> SimReplica:
        """Return the replica if the client or follower is right about topic, leader and epoch;
        otherwise, raise the error to answer."""
        replica = cast("SimReplica", self._broker.replicas.leader_of(name, epoch))
        if self.is_namesake(replica, topic_id):
            raise UnknownTopicOrPartition(f"{name} belongs to another topic")
        return replica

    def is_namesake(self, replica: SimReplica, topic_id: bytes) -> bool:
        """Return whether the request is meant for another topic with the name of this one."""
        return replica.partition.topic_id != topic_id

    # --- producers -------------------------------------------------------------------------------

    def produce(self, request: Produce, reply: Reply) -> None:
        try:
            replica = self._led(request.topic_partition, request.topic_id)
        except KafkaError as error:
            reply(Produced(error.code))
            return
        if request.transactional_id is None:
            self.append(replica, request, reply)
        else:
            self._broker.coordinators.produce(replica, request, reply)

    def append(self, replica: SimReplica, request: Produce, reply: Reply) -> None:
        """Append a record, and answer in the way that its producer asked for."""
        broker, partition = self._broker, replica.partition
        kind = PLAIN if request.transactional_id is None else IN_TRANSACTION
        entry = Entry(
            0, 0, request.producer, request.sequence, request.value, request.producer_epoch, kind
        )
        try:
            if not partition.is_leader:
                raise NotLeaderOrFollower(str(replica.topic_partition))
            if request.acks == _ALL:
                partition.check_acks_all()
            wall_ms = broker.cluster.world.wall_ms()
            result = replica.append(cast(memoryview, entry), wall_ms)
        except OSError as failure:
            replica.fail(failure)
            reply(Produced(KafkaStorageError.code))
            return
        except KafkaError as error:
            reply(Produced(error.code))
            return
        broker.replicas.write_staged()
        offset = result.base_offset
        answer = PartitionProduceResponse(base_offset=offset)
        written = [(replica, offset + 1, answer)]
        outcome = settle(ProduceResponse(), written, request.acks, _PRODUCE_TIMEOUT_MS)  # type: ignore[arg-type]

        def finish(_: object = None) -> None:
            if answer.error_code:
                reply(Produced(answer.error_code))
                return
            if request.acks == _ALL:
                broker.cluster.checks.promised(replica, offset)
            reply(Produced(NONE, offset))

        if isinstance(outcome, ProduceResponse):
            finish()
        else:
            waiting = cast("Coroutine[None, None, object]", outcome)
            broker.loop.create_task(waiting).add_done_callback(finish)

    def write_marker(self, request: WriteMarker, reply: Reply) -> None:
        """Write the end of a transaction, as a coordinator has decided it."""
        owner, name = request.owner, request.topic_partition
        ending = Ending(*owner, request.is_commit, request.coordinator_epoch)
        try:
            placed = self._marker_append.append(name, ending)
        except KafkaError as error:
            reply(Verified(error.code))
            return
        self._broker.coordinators.ended(name, owner.producer_id)
        self._broker.replicas.write_staged()

        def answer(future: asyncio.Future[None]) -> None:
            error = future.exception()
            reply(Verified(error.code if isinstance(error, KafkaError) else NONE))

        if placed.is_committed:
            reply(Verified(NONE))
        else:
            placed.when_committed().add_done_callback(answer)

    # --- consumers -------------------------------------------------------------------------------

    def read(self, request: Read) -> ReadAnswer:
        name, topic_id = request.topic_partition, request.topic_id
        try:
            replica = self._led(name, topic_id, request.leader_epoch)
        except KafkaError as error:
            return ReadAnswer(error.code)
        log, end = replica.log, replica.high_watermark
        high_watermark = end
        if not log.log_start_offset <= request.offset <= log.log_end_offset:
            return ReadAnswer(OffsetOutOfRange.code, (), high_watermark, log.log_start_offset)
        entries: tuple[Entry, ...] = ()
        aborted: tuple[AbortedTransaction, ...] = ()
        if request.is_committed:
            end = replica.last_stable_offset
            aborted = log.aborted_in(request.offset, end)
        if request.offset < end:
            entries = tuple(log.entries_in(request.offset, end, FETCH_LIMIT))
        return ReadAnswer(NONE, entries, high_watermark, log.log_start_offset, aborted)

    def epoch_end(self, request: AskEpochEnd) -> EpochEndAnswer:
        """Return where the newest epoch up to the requested one ends in this log (KIP-320)."""
        name, topic_id = request.topic_partition, request.topic_id
        try:
            replica = self._led(name, topic_id, request.leader_epoch)
        except KafkaError as error:
            return EpochEndAnswer(error.code)
        return EpochEndAnswer(NONE, replica.log.epoch_end_offset(request.wanted_epoch)[1])

    def bounds(self, request: AskLatest) -> Bounds:
        """Return the earliest and latest offsets; a new leader withholds them until its HW is in
        its own epoch."""
        name, topic_id = request.topic_partition, request.topic_id
        try:
            replica = self._led(name, topic_id, request.leader_epoch)
        except KafkaError as error:
            return Bounds(error.code)
        latest = replica.high_watermark
        if request.is_follower:
            latest = replica.log.log_end_offset
        elif self.is_latest_uncertain(replica):
            return Bounds(OffsetNotAvailable.code)
        return Bounds(NONE, replica.log.log_start_offset, latest, replica.partition.leader_epoch)

    def is_latest_uncertain(self, replica: SimReplica) -> bool:
        """Return whether an older leader may have shown more than this leader knows to be
        committed."""
        return replica.high_watermark < replica.partition.epoch_start_offset

    # --- followers -------------------------------------------------------------------------------

    def fetch(self, request: Fetch, reply: Reply) -> None:
        """Answer a follower, or wait for records if there is nothing to tell it."""
        answer = self.fetched(request, is_first=True)
        if any(part.entries or part.got.error_code or part.got.diverging for part in answer.parts):
            reply(answer)
            return
        broker = self._broker
        replicas = [broker.replicas.get(each.topic_partition) for each in request.wanted]
        if None in replicas:
            # A higher watermark had an effect that has filled the disk.
            reply(self.fetched(request, is_first=False))
            return
        parked = Parked(self, request, reply, cast("list[SimReplica]", replicas))
        broker.cluster.world.at(request.max_wait_ms, broker.life, parked.wake)

    def fetched(self, request: Fetch, *, is_first: bool) -> FetchAnswer:
        return FetchAnswer(
            tuple(self._part(request, each, is_first=is_first) for each in request.wanted)
        )

    def _part(self, request: Fetch, wanted: Wanted, *, is_first: bool) -> FetchedPart:
        """Take a follower's fetch; it counts for the HW when it arrives, not when it is
        answered."""
        sent, diverging = wanted.sent, None
        try:
            replica = self._led(wanted.topic_partition, wanted.topic_id, sent.leader_epoch)
        except KafkaError as error:
            return FetchedPart(Fetched(error.code, -1, -1, None, 0))
        log = replica.log
        entries: tuple[Entry, ...] = ()
        code = NONE
        try:
            if sent.last_fetched_epoch >= 0:
                diverging = _diverging(replica, wanted)
            if diverging is None:
                if not log.log_start_offset <= sent.offset <= log.log_end_offset:
                    raise OffsetOutOfRange(f"{sent.offset}")
                if is_first:
                    replica.on_fetch(_follower_fetch(request, wanted), self._broker.now_ms)
                entries = tuple(log.entries_in(sent.offset, log.log_end_offset, FETCH_LIMIT))
        except KafkaError as error:
            code = error.code
        bounds = replica.high_watermark, log.log_start_offset
        return FetchedPart(Fetched(code, *bounds, diverging, len(entries)), entries)

    def log_end(self, name: TopicPartition, leader_epoch: int) -> EpochEnd:
        """Return a log's newest epoch and its end; the epoch stays known after records have been
        deleted.

        A request in an earlier epoch is refused, since an older leader's log still grows.
        """
        log = self._broker.replicas.replica_of(name, leader_epoch).log
        return EpochEnd(log.latest_epoch, log.log_end_offset)


class Parked:
    """A follower's fetch that found nothing and waits."""

    __slots__ = ("_is_done", "_replicas", "_reply", "_request", "_serving")

    def __init__(
        self, serving: Serving, request: Fetch, reply: Reply, replicas: list[SimReplica]
    ) -> None:
        self._serving = serving
        self._request = request
        self._reply = reply
        self._replicas = replicas
        self._is_done = False
        for each in replicas:
            each.followers.park(self)

    def notify(self, appended_bytes: int) -> None:
        """Answer if there is something to read. A higher watermark alone can wait."""
        if appended_bytes:
            self.wake()

    def wake(self) -> None:
        if not self._is_done:
            self._is_done = True
            for each in self._replicas:
                each.followers.unpark(self)
            self._reply(self._serving.fetched(self._request, is_first=False))

    def requested_at_ms(self, replica_id: int) -> int | None:
        """Return None, because each request names all partitions."""
        return None


def _diverging(replica: SimReplica, wanted: Wanted) -> EpochEnd | None:
    sent = wanted.sent
    asked = FetchPartition(fetch_offset=sent.offset, last_fetched_epoch=sent.last_fetched_epoch)
    found = diverging_epoch(replica, asked)
    return None if found is None else EpochEnd(found.epoch, found.end_offset)


def _follower_fetch(request: Fetch, wanted: Wanted) -> FollowerFetch:
    sent = wanted.sent
    return FollowerFetch(
        request.replica,
        sent.offset,
        sent.leader_epoch,
        sent.log_start_offset,
        request.broker_epoch,
    )


def _no_offsets(partition: int, producer_id: int, is_commit: bool) -> None:
    """Do nothing, because no transaction here has offsets."""
