"""Runs the transaction coordinator's machine as its shell does, on a log that is a list."""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.decision import Decision, Markers, Now, StateRecord
from barnabas.coordinator.records import KeyValue, decode_transaction_record, encode_record
from barnabas.coordinator.settings import TransactionConfig
from barnabas.coordinator.transaction import Transaction
from barnabas.coordinator.transactions import Transactions
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.types import TopicPartition

NEWEST = 5
FIRST_ID = 4000


class Driver:
    """One partition of `__transaction_state`, its machine, and markers that wait to be written."""

    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.config = config or TransactionConfig()
        self.now_ms = 1_700_000_000_000
        self.ahead_ms = 0
        """How far the wall clock has been set forwards since."""
        self.log: list[KeyValue] = []
        self.pending: list[Markers] = []
        self.log_lines: list[str] = []
        self.is_refusing = False
        self.next_id = FIRST_ID
        self.machine = Transactions(0, 0, self.config)
        self.machine.on_loaded(self.now)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.now_ms + self.ahead_ms)

    # --- as a shell ------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> list[Any]:
        """Append, apply, remember the markers; the answers."""
        if self.is_refusing and decision.records:
            return []
        for record in decision.records:
            self.log.append(encode_record(*record))
            self.machine.apply(record, len(self.log) - 1)
        self.pending += decision.markers
        self.log_lines += [event.text for event in decision.events]
        return [reply.message for reply in decision.replies]

    def answer(self, decision: Decision) -> Any:
        """None if the append is refused."""
        (message,) = self.carry_out(decision) or (None,)
        return message

    def pass_time(self, ms: int) -> int:
        """Let time pass; how many decisions came of it."""
        self.now_ms += ms
        deadline_ms = self.machine.deadline_ms()
        decisions = []
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            decisions = self.machine.expire(self.now)
        for decision in decisions:
            self.carry_out(decision)
        return len(decisions)

    def write_markers(self) -> None:
        """Every marker that waits gets written."""
        pending, self.pending = self.pending, []
        for markers in pending:
            self.written(markers, *markers.partitions)

    def written(self, markers: Markers, *partitions: TopicPartition) -> None:
        name, producer_id, epoch, *_ = markers
        self.carry_out(self.machine.markers_written(name, producer_id, epoch, partitions, self.now))

    def replayed(self) -> Transactions:
        """A machine that knows the log and nothing else."""
        machine = Transactions(0, self.machine.epoch + 1, self.config)
        for offset, (key, value) in enumerate(self.log):
            decoded = decode_transaction_record(key, value)
            machine.apply(StateRecord(decoded.key, decoded.value), offset)
        return machine

    def crash(self) -> None:
        """The next coordinator takes over."""
        self.machine = self.replayed()
        self.pending = []
        self.carry_out(self.machine.on_loaded(self.now))

    # --- as clients ------------------------------------------------------------------------------

    def init(
        self,
        name: str = "tx",
        owner: tuple[int, int] = (-1, -1),
        timeout_ms: int = 60_000,
        version: int = NEWEST,
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=owner[0],
            producer_epoch=owner[1],
        )
        spare_id = None
        if self.machine.needs_producer_id(name):
            spare_id = self.next_id
            self.next_id += 1
        return self.answer(self.machine.init_producer_id(0, request, version, spare_id, self.now))

    def owner(self, name: str = "tx", timeout_ms: int = 60_000) -> tuple[int, int]:
        """A producer's id and epoch, as it gets them with patience."""
        answer = self.init(name, timeout_ms=timeout_ms)
        if answer.error_code:
            self.write_markers()
            answer = self.init(name, timeout_ms=timeout_ms)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add(
        self, owner: tuple[int, int], *partitions: int, name: str = "tx", version: int = 3
    ) -> int:
        """The error code of all partitions, of topic `t`."""
        request = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=owner[0],
            producer_epoch=owner[1],
            topics=[AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
        )
        answer = self.answer(self.machine.add_partitions(0, request, version, self.now))
        (topic,) = answer.topic_results
        assert [each.partition_index for each in topic.results_by_partition] == list(partitions)
        (code,) = {each.partition_error_code for each in topic.results_by_partition}
        return int(code)

    def add_offsets(self, owner: tuple[int, int], name: str = "tx", version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], group_id="g"
        )
        partition = TopicPartition("__consumer_offsets", 7)
        answer = self.answer(self.machine.add_offsets(0, request, partition, version, self.now))
        return int(answer.error_code)

    def end(
        self, owner: tuple[int, int], is_commit: bool, name: str = "tx", version: int = 3
    ) -> int:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=owner[0],
            producer_epoch=owner[1],
            committed=is_commit,
        )
        return int(self.answer(self.machine.end(0, request, version, self.now.wall_ms)).error_code)

    def verify(self, owner: tuple[int, int], *partitions: int, name: str = "tx") -> list[int]:
        asked = [TopicPartition("t", partition) for partition in partitions]
        codes = self.machine.verify(name, *owner, asked)
        return [codes[one] for one in asked]

    def state(self, name: str = "tx") -> Transaction:
        transaction = self.machine.get(name)
        assert transaction is not None
        return transaction

    @property
    def status(self) -> str:
        return self.state().status.name


def hard(machine: Transactions) -> list[Transaction]:
    """All that has to survive, in its order."""
    return list(machine)
