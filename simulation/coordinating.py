"""The coordinators of a simulated broker: the real shards on the partitions that it leads.

The shards, the loading, the machine and the replicas are those of a real broker. Before the first
record of a transaction, a partition's leader asks the coordinator (KIP-890, part 1); a marker that
arrives meanwhile invalidates the answer, as in `verifier`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinator.pending_reply import ShardOutcome
from barnabas.broker.coordinator.shard import Shard, ShardContext
from barnabas.broker.coordinator.shards import Shards
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.coordinator.decision import Decision, Markers, Now
from barnabas.coordinator.groups import Caller, Groups
from barnabas.coordinator.records import decode_group_record, decode_transaction_record
from barnabas.coordinator.settings import GroupConfig, TransactionConfig
from barnabas.coordinator.state_partition import partition_of
from barnabas.coordinator.transaction import Owner
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import (
    InvalidProducerEpoch,
    KafkaError,
    NotEnoughReplicas,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.records.compression import NONE
from barnabas.storage.producers import NO_OFFSET
from barnabas.types import TopicPartition
from simulation.network import Reply
from simulation.wire import (
    AskCoordinator,
    AskGroup,
    Coordinated,
    Produce,
    Produced,
    Verified,
    Verify,
    WriteMarker,
)

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from simulation.sim_broker import SimBroker
    from simulation.sim_replica import SimReplica

_VERSION = 4  # of InitProducerId and EndTxn: with PRODUCER_FENCED
_CALL_TIMEOUT_MS = 1000
_FIRST_RETRY_MS, _LAST_RETRY_MS = 100, 1000
_ANSWER_TIMEOUT_MS = 5000
_LOAD_BYTES = 1 << 20
_JOIN_VERSION = 5
_GROUP_CONFIG = GroupConfig(min_session_timeout_ms=500, initial_rebalance_delay_ms=200)
_CONFIG = TransactionConfig(max_timeout_ms=60_000, abort_interval_ms=400)


class MarkerWriting:
    """Writes the ends of transactions to the partitions' leaders, retrying each until it is
    written."""

    __slots__ = ("_broker",)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def send(self, shard: Shard[Transactions], markers: Markers) -> None:
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
            self._written(shard, markers, ())
        for name in markers.partitions:
            broker.cluster.world.start(broker.life, self._write(shard, markers, name))

    async def _write(
        self, shard: Shard[Transactions], markers: Markers, name: TopicPartition
    ) -> None:
        """Retry until the marker is written or is left to another coordinator."""
        broker, retry_ms = self._broker, _FIRST_RETRY_MS
        owner = Owner(markers.producer_id, markers.producer_epoch)
        request = WriteMarker(name, owner, markers.is_commit, markers.coordinator_epoch)
        while not shard.is_dropped:
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
        self._written(shard, markers, (name,))

    def _written(
        self, shard: Shard[Transactions], markers: Markers, names: tuple[TopicPartition, ...]
    ) -> None:
        if not shard.is_dropped:
            decision = shard.machine.markers_written(
                markers.transactional_id,
                markers.producer_id,
                markers.producer_epoch,
                names,
                shard.now(),
            )
            self._broker.loop.call(shard.carry_out, decision)


class Refusal:
    """Says why a shard has not asked its machine, or could not keep the machine's decision."""

    __slots__ = ("code",)

    def __init__(self) -> None:
        self.code = 0

    def of(self, error: KafkaError) -> Message:
        self.code = error.code
        return EndTxnResponse(error_code=error.code)


class _Guard:
    """A verified producer in one partition, valid until a marker or an append ends it."""

    __slots__ = ()


class Coordinators(ReplicaListener):
    """All coordinators of one broker, and its leaders' requests to other brokers' coordinators."""

    __slots__ = ("_broker", "_groups", "_guards", "_transactions")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._guards: dict[tuple[TopicPartition, int], _Guard] = {}
        world, options = broker.cluster.world, broker.cluster.options
        context = ShardContext(
            world,
            broker.replicas.write_soon,
            None,
            NONE,
            _ANSWER_TIMEOUT_MS,
            _LOAD_BYTES,
            MarkerWriting(broker).send,
            broker.replicas.events,
        )
        self._transactions: Shards[Transactions] = Shards(
            TRANSACTION_TOPIC,
            self._new_machine,
            decode_transaction_record,
            context,
            lambda: options.transaction_partitions,
        )
        self._groups: Shards[Groups] = Shards(
            GROUP_TOPIC, self._new_groups, decode_group_record, context, lambda: 1
        )

    def _new_machine(self, partition: int, epoch: int) -> Transactions:
        return self._broker.cluster.machines.transactions(partition, epoch, _CONFIG)

    def _new_groups(self, partition: int, epoch: int) -> Groups:
        return self._broker.cluster.machines.groups(partition, epoch, _GROUP_CONFIG)

    # --- partitions that come and go -------------------------------------------------------------

    def on_leading(self, replica: Replica) -> None:
        """Start coordinating: this broker leads a partition in a new epoch."""
        shards = self._shards_of(replica)
        if shards is not None:
            shards.take(replica)

    def on_left(self, replica: Replica) -> None:
        """Stop coordinating: this broker no longer leads a partition, or cannot reach it."""
        name, shards = replica.topic_partition, self._shards_of(replica)
        if shards is not None:
            shards.drop(name.partition)
        if self._guards:
            for key in [key for key in self._guards if key[0] == name]:
                del self._guards[key]

    def _shards_of(self, replica: Replica) -> Shards[Groups] | Shards[Transactions] | None:
        topic = replica.topic_partition.topic
        if topic == GROUP_TOPIC:
            return self._groups
        return self._transactions if topic == TRANSACTION_TOPIC else None

    # --- what members ask ------------------------------------------------------------------------

    def group_asked(self, asked: AskGroup, reply: Reply) -> None:
        request, new_id = asked.request, self._broker.cluster.world.uuid().hex()

        def decide(machine: Groups, ticket: int, now: Now) -> Decision:
            if isinstance(request, JoinGroupRequest):
                caller = Caller("client", "/sim", new_id, _JOIN_VERSION)
                return machine.join(ticket, request, caller, now)
            if isinstance(request, SyncGroupRequest):
                return machine.sync(ticket, request, now)
            if isinstance(request, HeartbeatRequest):
                return machine.heartbeat(ticket, request, now.monotonic_ms)
            if isinstance(request, OffsetCommitRequest):
                return machine.commit(ticket, request, now)
            assert isinstance(request, OffsetFetchGroup), request
            shard = self._groups.shard_of(asked.group_id)
            return machine.fetch(ticket, request, False, shard.replica.high_watermark)

        refusal = Refusal()
        self._answer(self._groups.ask(asked.group_id, decide, refusal.of), refusal, reply)

    def _answer(self, outcome: ShardOutcome, refusal: Refusal, reply: Reply) -> None:
        async def answer() -> None:
            message = outcome if isinstance(outcome, Message) else await outcome.until_answered()
            code = refusal.code
            reply(Coordinated(code) if code else Coordinated(0, message))

        self._broker.loop.start(answer())

    # --- what producers ask ----------------------------------------------------------------------

    def asked(self, asked: AskCoordinator, reply: Reply) -> None:
        request = asked.request
        if isinstance(request, AddPartitionsToTxnTransaction) and any(
            topic.name not in self._broker.image.topics for topic in request.topics
        ):
            reply(Coordinated(UnknownTopicOrPartition.code))
            return

        def decide(machine: Transactions, ticket: int, now: Now) -> Decision:
            if isinstance(request, InitProducerIdRequest):
                needs_id = machine.needs_producer_id(asked.transactional_id)
                spare_id = self._broker.cluster.new_producer_id() if needs_id else None
                return machine.init_producer_id(ticket, request, _VERSION, spare_id, now)
            if isinstance(request, AddPartitionsToTxnTransaction):
                return machine.add_partitions(ticket, request, _VERSION, now)
            assert isinstance(request, EndTxnRequest), request
            return machine.end(ticket, request, _VERSION, now.wall_ms)

        refusal = Refusal()
        outcome = self._transactions.ask(asked.transactional_id, decide, refusal.of)
        self._answer(outcome, refusal, reply)

    # --- what leaders ask ------------------------------------------------------------------------

    def verify(self, request: Verify, reply: Reply) -> None:
        try:
            machine = self._transactions.shard_of(request.transactional_id).machine
        except KafkaError as error:
            reply(Verified(error.code))
            return
        name = request.topic_partition
        codes = machine.verify(request.transactional_id, *request.owner, [name])
        reply(Verified(codes[name]))

    def produce(self, replica: SimReplica, request: Produce, reply: Reply) -> None:
        """Handle a record of a transaction: append it if its coordinator expects it."""
        if self.is_open(replica, request):
            self._broker.serving.append(replica, request, reply)
        else:
            self._broker.loop.start(self._verified(replica, request, reply))

    async def _verified(self, replica: SimReplica, request: Produce, reply: Reply) -> None:
        broker, name = self._broker, replica.topic_partition
        key = (name, request.producer)
        guard = self._guards[key] = _Guard()
        answer = await self._ask(request)
        if not broker.replicas.hosts(replica) or self._guards.get(key) is not guard:
            if not self.is_open(replica, request):
                reply(Produced(NotEnoughReplicas.code))
                return
        else:
            del self._guards[key]
            if answer is None or answer.error_code:
                reply(Produced(NotEnoughReplicas.code if answer is None else answer.error_code))
                return
        if broker.replicas.hosts(replica):
            broker.serving.append(replica, request, reply)
        else:
            reply(Produced(NotEnoughReplicas.code))

    async def _ask(self, request: Produce) -> Verified | None:
        """Return the coordinator's answer, or None if there is none."""
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

    def is_open(self, replica: SimReplica, request: Produce) -> bool:
        """Return whether the log itself is the proof, because the producer has an open
        transaction in it."""
        known = replica.log.producers.get(request.producer)
        return (
            known is not None
            and known.epoch == request.producer_epoch
            and known.transaction_offset != NO_OFFSET
        )

    def ended(self, name: TopicPartition, producer_id: int) -> None:
        """Forget the verified producer, because a marker for it now has a place in the log."""
        self._guards.pop((name, producer_id), None)
