"""Three brokers, one partition, a controller and a network that loses and delays: the machines'.

The shell of the machines in its smallest form. Records are numbers that no two writes share, so
that two logs can be compared; what a consumer could have seen is noted (`visible`) for good.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidUpdateVersion,
    KafkaError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
)
from barnabas.replication.follower import (
    Append,
    FetchBounds,
    Fetched,
    FetchFrom,
    Follower,
    StartAt,
    Step,
    Truncate,
)
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.partition import Advance, Effect, Partition, ProposeIsr
from barnabas.types import TopicPartition
from tests.kit.replication.epoch_log import EpochLog

NAME = TopicPartition("t", 0)
BROKERS = (0, 1, 2)
LAG_MS = 100
RECORDS_PER_FETCH = 3


class Record(NamedTuple):
    epoch: int
    number: int


class Disk(EpochLog):
    """What survives a kill: the records, and where the epochs begin."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        super().__init__()

    def add(self, records: list[Record]) -> None:
        self.append(*(record.epoch for record in records))
        self.records += records

    def truncate(self, offset: int) -> None:
        super().truncate(offset)
        del self.records[len(self.epochs) :]

    def start_at(self, offset: int) -> None:
        super().start_at(offset)
        self.records.clear()

    def raise_log_start(self, offset: int) -> None:
        super().raise_log_start(offset)
        del self.records[: len(self.records) - len(self.epochs)]

    def at(self, offset: int) -> Record | None:
        index = offset - self.log_start_offset
        return self.records[index] if 0 <= index < len(self.records) else None

    def between(self, start: int, end: int) -> list[Record]:
        """The records from one offset, at which the log has begun, up to another."""
        first = self.log_start_offset
        return self.records[start - first : max(start, end) - first]

    def read(self, offset: int) -> list[Record]:
        index = offset - self.log_start_offset
        return self.records[index : index + RECORDS_PER_FETCH]


class Request(NamedTuple):
    """A fetch on its way."""

    leader: int
    fetch: FollowerFetch
    sent: FetchFrom


class Answer(NamedTuple):
    """And what the leader said to it, on its way back."""

    sent: FetchFrom
    got: Fetched
    records: list[Record]


class Broker:
    """One that lives: what it has in memory goes with it."""

    def __init__(self, broker_id: int, epoch: int, disk: Disk, min_insync: int) -> None:
        self.disk = disk
        self.epoch = epoch
        self.partition = Partition(
            NAME,
            broker_id,
            min_insync_replicas=min_insync,
            high_watermark=disk.log_start_offset,
            lag_time_max_ms=LAG_MS,
        )
        self.partition.on_registered(epoch)
        self.follower = Follower(self.partition, disk)
        self.proposed: list[IsrProposal] = []
        self.answered: list[tuple[IsrProposal, IsrAnswer]] = []
        self.answers: list[Answer] = []


class Stage:
    """The whole of it. The test that drives it chooses what happens next."""

    def __init__(self, min_insync: int) -> None:
        self.min_insync = min_insync
        self.now_ms = 0
        self.live: dict[int, int] = {}
        self.disks = [Disk() for _ in BROKERS]
        self.brokers: dict[int, Broker] = {}
        self.requests: list[Request] = []
        self.visible: dict[int, Record] = {}
        self.is_unclean = False
        self.elections = self.proposals = self.cuts = self.starts = 0
        self._registrations = self._numbers = 0
        self.state = PartitionImage(BROKERS[0], 0, BROKERS, BROKERS, 0, 1)
        for broker in BROKERS:
            self.register(broker)

    # --- the controller --------------------------------------------------------------------------

    def register(self, broker_id: int) -> None:
        """A process starts; what its directory has is all it knows."""
        self._registrations += 1
        self.live[broker_id] = self._registrations
        disk = self.disks[broker_id]
        broker = Broker(broker_id, self._registrations, disk, self.min_insync)
        self.brokers[broker_id] = broker
        self._brokers_changed()

    def kill(self, broker_id: int) -> None:
        """The process is gone, and the controller sees it: it leaves the ISR, or leads no more."""
        del self.brokers[broker_id], self.live[broker_id]
        self._brokers_changed()
        state = self.state
        others = tuple(one for one in state.isr if one != broker_id)
        alive = [one for one in others if one in self.live]
        leader = state.leader
        if leader == broker_id:
            leader = alive[0] if alive else NO_LEADER
        if broker_id in state.isr or leader != state.leader:
            self._write(leader, others or state.isr, state.leader_epoch + 1)

    def _brokers_changed(self) -> None:
        """UpdateMetadata, at once and for all."""
        for broker in self.brokers.values():
            live = dict(self.live)
            self.carry_out(broker, broker.partition.brokers_changed(live, self.now_ms))

    def start(self, broker_id: int) -> None:
        self.register(broker_id)
        if self.state.leader == NO_LEADER and broker_id in self.state.isr:
            self._write(broker_id, self.state.isr, self.state.leader_epoch + 1)

    def elect(self, broker_id: int) -> None:
        """Another leader; of the replicas out of sync only if need be, and it is noted."""
        isr = self.state.isr
        if broker_id not in isr:
            self.is_unclean = True
            isr = (broker_id,)
        self._write(broker_id, isr, self.state.leader_epoch + 1)

    def take_out(self, broker_id: int) -> None:
        """The controller changes the ISR by itself, in the same leader epoch."""
        isr = tuple(one for one in self.state.isr if one != broker_id)
        self._write(self.state.leader, isr, self.state.leader_epoch)

    def _write(self, leader: int, isr: tuple[int, ...], epoch: int) -> None:
        self.elections += epoch > self.state.leader_epoch
        self.state = PartitionImage(leader, epoch, isr, BROKERS, self.state.partition_epoch + 1, 1)

    def judge(self, proposal: IsrProposal) -> IsrAnswer:
        """What Kafka's controller answers to an AlterPartition."""
        state = self.state
        members = tuple(member.broker_id for member in proposal.isr)
        if proposal.leader_epoch != state.leader_epoch:
            return IsrAnswer(FencedLeaderEpoch.code)
        if proposal.partition_epoch != state.partition_epoch:
            if members == state.isr:
                return self._agreed()
            return IsrAnswer(InvalidUpdateVersion.code)
        for member in proposal.isr:
            if self.live.get(member.broker_id) != member.broker_epoch and member.broker_epoch >= 0:
                return IsrAnswer(IneligibleReplica.code)
        if members != state.isr:
            self._write(state.leader, members, state.leader_epoch)
            self.proposals += 1
        return self._agreed()

    def _agreed(self) -> IsrAnswer:
        state = self.state
        return IsrAnswer(0, state.leader, state.leader_epoch, state.isr, state.partition_epoch)

    def tell(self, broker_id: int) -> None:
        """LeaderAndIsr: the newest there is."""
        broker, state = self.brokers[broker_id], self.state
        partition = broker.partition
        if (state.leader_epoch, state.partition_epoch) <= (
            partition.leader_epoch,
            partition.partition_epoch,
        ):
            return
        if state.leader != broker_id:
            partition.become_follower(state)
            return
        if state.leader_epoch > partition.leader_epoch:
            broker.disk.assign(state.leader_epoch)
        end = broker.disk.log_end_offset
        self.carry_out(broker, partition.become_leader(state, end, self.now_ms))

    # --- a leader --------------------------------------------------------------------------------

    def leaders(self) -> list[int]:
        """Those that believe so."""
        return [one for one, broker in self.brokers.items() if broker.partition.is_leader]

    def carry_out(self, broker: Broker, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self._check_proposal(broker, effect.proposal)
                broker.proposed.append(effect.proposal)
            else:
                self._note_visible(broker, effect)

    def _check_proposal(self, broker: Broker, proposal: IsrProposal) -> None:
        partition = broker.partition
        for member in proposal.isr:
            if member.broker_id not in partition.isr:
                end = partition.follower_end_offset(member.broker_id)
                assert end >= partition.epoch_start_offset, "no expansion below the epoch's start"
        assert set(partition.maximal_isr) >= set(partition.isr)

    def _note_visible(self, broker: Broker, advance: Advance) -> None:
        assert advance.high_watermark == broker.partition.high_watermark
        for offset in range(broker.disk.log_start_offset, advance.high_watermark):
            record = broker.disk.at(offset)
            assert record is not None, "the watermark is above the log's end"
            if not self.is_unclean:
                assert self.visible.setdefault(offset, record) == record, "two pasts were seen"

    def produce(self, broker_id: int, count: int) -> None:
        broker = self.brokers[broker_id]
        first = self._numbers
        self._numbers += count
        epoch = broker.partition.leader_epoch
        broker.disk.add([Record(epoch, number) for number in range(first, first + count)])
        end = broker.disk.log_end_offset
        self.carry_out(broker, broker.partition.on_appended(end, self.now_ms))

    def delete_records(self, broker_id: int, count: int) -> None:
        broker = self.brokers[broker_id]
        start = min(broker.disk.log_start_offset + count, broker.partition.high_watermark)
        broker.disk.raise_log_start(start)

    def serve(self, request: Request) -> None:
        """The leader's handler of Fetch, for one partition."""
        leader = self.brokers.get(request.leader)
        asker = self.brokers.get(request.fetch.replica)
        if leader is None or asker is None:
            return
        got, records = self._fetch(leader, request)
        if asker.epoch == request.fetch.broker_epoch:
            asker.answers.append(Answer(request.sent, got, records))

    def _fetch(self, leader: Broker, request: Request) -> tuple[Fetched, list[Record]]:
        partition, disk, fetch = leader.partition, leader.disk, request.fetch
        try:
            diverging = disk.diverging(fetch.offset, request.sent.last_fetched_epoch)
            if diverging is None:
                self.carry_out(leader, partition.on_fetch(fetch, self.now_ms))
            elif not partition.is_leader:
                return Fetched(NotLeaderOrFollower.code, -1, -1, None, 0), []
            else:
                partition.check_leader_epoch(fetch.leader_epoch)
        except KafkaError as error:
            return Fetched(error.code, -1, -1, None, 0), []
        except LookupError:
            return Fetched(OffsetOutOfRange.code, -1, -1, None, 0), []
        records = [] if diverging else disk.read(fetch.offset)
        watermark, start = partition.high_watermark, disk.log_start_offset
        return Fetched(0, watermark, start, diverging, len(records)), records

    # --- a follower ------------------------------------------------------------------------------

    def ask(self, broker_id: int) -> None:
        """Send a fetch to whom this broker takes for the leader."""
        broker = self.brokers[broker_id]
        partition = broker.partition
        if partition.is_leader or partition.leader == NO_LEADER:
            return
        sent = broker.follower.fetch_from()
        epoch, start = partition.leader_epoch, sent.log_start_offset
        fetch = FollowerFetch(broker_id, sent.offset, epoch, start, broker.epoch)
        self.requests.append(Request(partition.leader, fetch, sent))

    def take(self, broker_id: int, answer: Answer) -> Step:
        broker = self.brokers[broker_id]
        step = broker.follower.on_answer(answer.sent, answer.got)
        if isinstance(step, Append):
            broker.disk.add(answer.records)
            advances = broker.follower.on_appended(answer.got)
            start = min(answer.got.log_start_offset, broker.partition.high_watermark)
            if start > broker.disk.log_start_offset:
                # At once: below, the leader cannot tell any more whether the logs are the same.
                broker.disk.raise_log_start(start)
            for advance in advances:
                self._note_visible(broker, advance)
        elif isinstance(step, FetchBounds):
            leader = self.brokers.get(broker.partition.leader)
            if leader is not None and leader.partition.is_leader:
                ends = leader.disk.log_start_offset, leader.disk.log_end_offset
                self._cut(broker, broker.follower.on_bounds(*ends))
        else:
            self._cut(broker, step)
        return step

    def _cut(self, broker: Broker, step: Step) -> None:
        if isinstance(step, Truncate):
            self.cuts += 1
            assert self.is_unclean or not step.lost_committed
            broker.disk.truncate(step.offset)
        elif isinstance(step, StartAt):
            self.starts += 1
            broker.disk.start_at(step.offset)
