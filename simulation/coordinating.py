"""The transaction coordinators of a simulated broker: the real machine on each partition it leads.

    decide -> append -> apply -> await the high watermark -> reply, write markers

As `broker.coordination.shard` does it, without its loop; loading decodes the replicated log. When
the partition is lost the shard is dropped whole: every request that waits gets NOT_COORDINATOR.
Before the first record of a transaction a partition's leader asks the coordinator (KIP-890, part
1), and a marker that comes meanwhile makes the answer worthless, as in `verifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.coordinator.decision import Decision, Markers, Now, StateRecord
from barnabas.coordinator.records import decode_transaction_record, encode_record
from barnabas.coordinator.settings import TransactionConfig
from barnabas.coordinator.state_partition import partition_of
from barnabas.coordinator.transaction import Owner
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicas,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.storage.producers import NO_OFFSET
from barnabas.types import TopicPartition
from simulation.disk import NO_PRODUCER, STATE, Entry
from simulation.network import Reply
from simulation.wire import (
    AskCoordinator,
    Coordinated,
    Produce,
    Produced,
    Verified,
    Verify,
    WriteMarker,
)

if TYPE_CHECKING:
    from simulation.hosted import Hosted
    from simulation.sim_broker import SimBroker

_VERSION = 4  # of InitProducerId and EndTxn: with PRODUCER_FENCED
_CALL_TIMEOUT_MS = 1000
_FIRST_RETRY_MS, _LAST_RETRY_MS = 100, 1000
_LOAD_MS = 40
_CONFIG = TransactionConfig(max_timeout_ms=60_000, abort_interval_ms=400)


class Shard:
    """One partition of the topic of transactions, loaded."""

    __slots__ = ("_broker", "_next_ticket", "_owed", "_wake_ms", "hosted", "is_dropped", "machine",
                 "visible_from")  # fmt: skip

    def __init__(self, broker: SimBroker, hosted: Hosted, machine: Transactions) -> None:
        self._broker = broker
        self.hosted = hosted
        self.machine = machine
        self.is_dropped = False
        self.visible_from = hosted.log.log_end_offset
        self._next_ticket = 0
        self._owed: dict[int, Reply] = {}
        self._wake_ms = -1

    def ask(self, decide: Callable[[int, Now], Decision], reply: Reply) -> None:
        """Ask the machine, with a ticket and the time."""
        ticket = self._next_ticket
        self._next_ticket += 1
        self._owed[ticket] = reply
        self.carry_out(decide(ticket, self._broker.now))

    def drop(self) -> None:
        """Somebody else coordinates from now on."""
        self.is_dropped = True
        owed, self._owed = self._owed, {}
        for reply in owed.values():
            reply(Coordinated(NotCoordinator.code))

    def carry_out(self, decision: Decision) -> None:
        if self.is_dropped:
            return
        if decision.records:
            try:
                self._append(decision)
            except KafkaError as error:
                self._refuse(decision, error)
                return
        for ticket, message in decision.replies:
            owed = self._owed.pop(ticket, None)
            if owed is not None:
                self.hosted.await_offset(self.visible_from - 1, _Answer(owed, message).go_on)
        if decision.markers:
            self.hosted.await_offset(self.visible_from - 1, _Send(self, decision.markers).go_on)
        self._set_timer()

    def _refuse(self, decision: Decision, error: KafkaError) -> None:
        """Nothing was appended, so nothing has happened."""
        for ticket, _ in decision.replies:
            owed = self._owed.pop(ticket, None)
            if owed is not None:
                code = CoordinatorNotAvailable.code
                owed(Coordinated(code if isinstance(error, NotEnoughReplicas) else error.code))

    def _append(self, decision: Decision) -> None:
        hosted = self.hosted
        hosted.partition.check_acks_all()
        payload = tuple([encode_record(key, value) for key, value in decision.records])
        offset = hosted.log.log_end_offset
        epoch = hosted.partition.leader_epoch
        effects = hosted.append(Entry(offset, epoch, NO_PRODUCER, 0, 0, 0, STATE, payload))
        self.visible_from = offset + 1
        for record in decision.records:
            self.machine.apply(record, offset)
        hosted.handle(effects)

    def write_markers(self, markers: Markers) -> None:
        broker = self._broker
        broker.cluster.world.tell(
            "broker {} has the transaction of {}, epoch {}, {} in {}",
            broker.broker_id,
            markers.transactional_id,
            markers.producer_epoch,
            "committed" if markers.is_commit else "aborted",
            markers.partitions,
        )
        if not markers.partitions:
            self._written(markers, ())
        for name in markers.partitions:
            broker.cluster.world.start(broker.life, self._write(markers, name))

    async def _write(self, markers: Markers, name: TopicPartition) -> None:
        """Retry until it is written, or is left to another coordinator."""
        broker, retry_ms = self._broker, _FIRST_RETRY_MS
        owner = Owner(markers.producer_id, markers.producer_epoch)
        request = WriteMarker(name, owner, markers.is_commit, markers.coordinator_epoch)
        while not self.is_dropped:
            topics = broker.image.topics
            topic = topics.get(name.topic)
            if topic is None and TRANSACTION_TOPIC in topics:
                break  # deleted: the marker counts as written
            leader = -1 if topic is None else topic.partitions[name.partition].leader
            code = -1
            if leader >= 0:
                connection = broker.cluster.network.connect(
                    broker.broker_id,
                    broker.life,
                    leader,
                    may_be_late=broker.cluster.machines.has_late_control,
                )
                answer: Verified | None = await connection.call(request, _CALL_TIMEOUT_MS)
                code = -1 if answer is None else answer.error_code
            if code in (0, InvalidProducerEpoch.code):
                break
            if code == TransactionCoordinatorFenced.code:
                return
            await broker.cluster.world.sleep(broker.life, retry_ms)
            retry_ms = min(2 * retry_ms, _LAST_RETRY_MS)
        self._written(markers, (name,))

    def _written(self, markers: Markers, names: tuple[TopicPartition, ...]) -> None:
        if not self.is_dropped:
            self.carry_out(
                self.machine.markers_written(
                    markers.transactional_id,
                    markers.producer_id,
                    markers.producer_epoch,
                    names,
                    self._broker.now,
                )
            )

    def _set_timer(self) -> None:
        deadline_ms = self.machine.deadline_ms()
        if deadline_ms is None or self.is_dropped or -1 < self._wake_ms <= deadline_ms:
            return
        broker = self._broker
        self._wake_ms = max(deadline_ms, broker.now_ms)
        broker.cluster.world.at(
            self._wake_ms - broker.now_ms, broker.life, self._expire, self._wake_ms
        )

    def _expire(self, wake_ms: int) -> None:
        if self.is_dropped or self._wake_ms != wake_ms:
            return
        self._wake_ms = -1
        for decision in self.machine.expire(self._broker.now):
            self.carry_out(decision)
        self._set_timer()


class _Answer(NamedTuple):
    reply: Reply
    message: Message

    def go_on(self, is_committed: bool) -> None:
        code = 0 if is_committed else NotCoordinator.code
        self.reply(Coordinated(code, self.message if is_committed else None))


class _Send(NamedTuple):
    shard: Shard
    markers: tuple[Markers, ...]

    def go_on(self, is_committed: bool) -> None:
        if is_committed and not self.shard.is_dropped:
            for markers in self.markers:
                self.shard.write_markers(markers)


class _Guard:
    """A verified producer in one partition, until a marker or an append ends that."""

    __slots__ = ()


class Coordinators:
    """All of one broker, and its leaders' questions to others'."""

    __slots__ = ("_broker", "_guards", "_loading", "shards")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self.shards: dict[int, Shard] = {}
        self._loading: dict[int, Hosted] = {}
        self._guards: dict[tuple[TopicPartition, int], _Guard] = {}

    # --- partitions that come and go -------------------------------------------------------------

    def leading(self, hosted: Hosted) -> None:
        """This broker leads a partition in a new epoch."""
        if hosted.name.topic != TRANSACTION_TOPIC:
            return
        self._drop(hosted.name.partition)
        self._loading[hosted.name.partition] = hosted
        world, epoch = self._broker.cluster.world, hosted.partition.leader_epoch
        world.at(world.random.randrange(_LOAD_MS), self._broker.life, self._load, hosted, epoch)

    def left(self, hosted: Hosted) -> None:
        """This broker no longer leads a partition, or cannot reach it."""
        if hosted.name.topic == TRANSACTION_TOPIC:
            self._drop(hosted.name.partition)
        if self._guards:
            for key in [key for key in self._guards if key[0] == hosted.name]:
                del self._guards[key]

    def _drop(self, partition: int) -> None:
        self._loading.pop(partition, None)
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.drop()

    def _load(self, hosted: Hosted, epoch: int) -> None:
        partition = hosted.name.partition
        if self._loading.get(partition) is not hosted or hosted.partition.leader_epoch != epoch:
            return
        del self._loading[partition]
        machine = self._broker.cluster.machines.transactions(partition, epoch, _CONFIG)
        for entry in hosted.log.entries:
            for key, value in entry.payload:
                record = decode_transaction_record(key, value)
                machine.apply(StateRecord(record.key, record.value), entry.offset)
        shard = self.shards[partition] = Shard(self._broker, hosted, machine)
        shard.carry_out(machine.loaded(self._broker.now))

    def _shard_of(self, transactional_id: str) -> Shard:
        partition = partition_of(
            transactional_id, self._broker.cluster.options.transaction_partitions
        )
        shard = self.shards.get(partition)
        if shard is not None:
            return shard
        if partition in self._loading:
            raise CoordinatorLoadInProgress(transactional_id)
        raise NotCoordinator(transactional_id)

    # --- what producers ask ----------------------------------------------------------------------

    def asked(self, asked: AskCoordinator, reply: Reply) -> None:
        try:
            shard = self._shard_of(asked.transactional_id)
        except KafkaError as error:
            reply(Coordinated(error.code))
            return
        machine, request = shard.machine, asked.request
        if isinstance(request, AddPartitionsToTxnTransaction) and any(
            topic.name not in self._broker.image.topics for topic in request.topics
        ):
            reply(Coordinated(UnknownTopicOrPartition.code))
            return

        def decide(ticket: int, now: Now) -> Decision:
            if isinstance(request, InitProducerIdRequest):
                needs_id = machine.needs_producer_id(asked.transactional_id)
                spare_id = self._broker.cluster.new_producer_id() if needs_id else None
                return machine.init_producer_id(ticket, request, _VERSION, spare_id, now)
            if isinstance(request, AddPartitionsToTxnTransaction):
                return machine.add_partitions(ticket, request, _VERSION, now)
            assert isinstance(request, EndTxnRequest), request
            return machine.end(ticket, request, _VERSION, now.wall_ms)

        shard.ask(decide, reply)

    # --- what leaders ask ------------------------------------------------------------------------

    def verify(self, request: Verify, reply: Reply) -> None:
        try:
            machine = self._shard_of(request.transactional_id).machine
        except KafkaError as error:
            reply(Verified(error.code))
            return
        name = request.topic_partition
        codes = machine.verify(request.transactional_id, *request.owner, [name])
        reply(Verified(codes[name]))

    def produce(self, hosted: Hosted, request: Produce, reply: Reply) -> None:
        """A transaction's record: appended if its coordinator expects it."""
        if self.is_open(hosted, request):
            hosted.produce(request, reply)
        else:
            broker = self._broker
            broker.cluster.world.start(broker.life, self._verified(hosted, request, reply))

    async def _verified(self, hosted: Hosted, request: Produce, reply: Reply) -> None:
        broker, name = self._broker, hosted.name
        key = (name, request.producer)
        guard = self._guards[key] = _Guard()
        answer = await self._ask(request)
        if broker.hosted.get(name) is not hosted or self._guards.get(key) is not guard:
            if not self.is_open(hosted, request):
                reply(Produced(NotEnoughReplicas.code))
                return
        else:
            del self._guards[key]
            if answer is None or answer.error_code:
                reply(Produced(NotEnoughReplicas.code if answer is None else answer.error_code))
                return
        if broker.hosted.get(name) is hosted:
            hosted.produce(request, reply)
        else:
            reply(Produced(NotEnoughReplicas.code))

    async def _ask(self, request: Produce) -> Verified | None:
        """The coordinator's answer; None if there is none."""
        broker = self._broker
        assert request.transactional_id is not None
        topic = broker.image.topics.get(TRANSACTION_TOPIC)
        if topic is None:
            return None
        partition = partition_of(request.transactional_id, len(topic.partitions))
        leader = topic.partitions[partition].leader
        if leader < 0:
            return None
        question = Verify(
            request.transactional_id,
            Owner(request.producer, request.producer_epoch),
            request.topic_partition,
        )
        connection = broker.cluster.network.connect(broker.broker_id, broker.life, leader)
        answer: Verified | None = await connection.call(question, _CALL_TIMEOUT_MS)
        return answer

    def is_open(self, hosted: Hosted, request: Produce) -> bool:
        """Whether the log itself is the proof: the producer has a transaction open there."""
        known = hosted.log.producers.get(request.producer)
        return (
            known is not None
            and known.epoch == request.producer_epoch
            and known.transaction_offset != NO_OFFSET
        )

    def ended(self, name: TopicPartition, producer_id: int) -> None:
        """A marker of this producer has its place in the log."""
        self._guards.pop((name, producer_id), None)
