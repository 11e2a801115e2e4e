"""Where the dialogues of transactional ids are played: producers by name, one coordinator, a log.

    configure <field>=<number> ...      of `TransactionConfig`
    given <id> <producer id>/<epoch>    a record that was in the log before, of an idle producer
    init <producer> [id=tx] [timeout=<ms>] [as=<producer id>/<epoch>] [v=5]
    add <producer> <topic>-<partition> ... [v=3]
    offsets <producer> <group> [v=3]    of partition 7 of __consumer_offsets
    commit | abort <producer> [v=3]
    verify <producer> <topic>-<partition> ...
    mark [<topic>-<partition> ...]      those partitions, or all, get the markers that wait
    describe <id> | list [<state> ...]
    wait <ms>                           the clock goes on, and what is due happens
    refuse                              the next append fails
    crash                               all is forgotten but the log; markers that wait are lost

A producer remembers the id and the epoch that it received last, and who it is, across `init`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.coordinator.decision import Decision, Markers, Now, StateRecord
from barnabas.coordinator.records import TransactionKey, TransactionValue
from barnabas.coordinator.settings import TransactionConfig
from barnabas.coordinator.transaction import Owner, new_transaction, transaction_of
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import error_for_code
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.types import TopicPartition

Options = dict[str, str]

UNKNOWN = Owner(-1, -1)
OFFSETS = TopicPartition("__consumer_offsets", 7)


class Stage:
    """One transaction coordinator, and its clients."""

    def __init__(self) -> None:
        self.config = TransactionConfig()
        self.log: list[StateRecord] = []
        self.now_ms = 1_000_000
        self.next_id = 4000
        self.refuses = False
        self.ids: dict[str, str] = {}  # the transactional id that each producer uses
        self.owners: dict[str, Owner] = {}
        self.waiting: list[Markers] = []
        self.machine = Transactions(0, 0, self.config)
        self.machine.on_loaded(self.now)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.now_ms)

    # --- producers -------------------------------------------------------------------------------

    def init(self, names: list[str], options: Options) -> Iterator[str]:
        (producer,) = names
        name = self.ids[producer] = options.get("id", self.ids.get(producer, "tx"))
        asker = owner_of(options["as"]) if "as" in options else UNKNOWN
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=int(options.get("timeout", 60_000)),
            producer_id=asker.producer_id,
            producer_epoch=asker.producer_epoch,
        )
        spare_id = None
        if self.machine.needs_producer_id(name):
            spare_id = self.next_id
            self.next_id += 1
        version = int(options.get("v", 5))
        decision = self.machine.init_producer_id(0, request, version, spare_id, self.now)

        def answered(answer: Any) -> str:
            if answer.error_code:
                return error(answer.error_code)
            owner = self.owners[producer] = Owner(answer.producer_id, answer.producer_epoch)
            return shown(owner)

        yield from self.carry_out(decision, lambda a: f"{producer} <- InitProducerId {answered(a)}")

    def add(self, names: list[str], options: Options) -> Iterator[str]:
        producer, *places = names
        request = AddPartitionsToTxnTransaction(
            **self.identity(producer),
            topics=[
                AddPartitionsToTxnTopic(name=one.topic, partitions=[one.partition])
                for one in map(partition_of, places)
            ],
        )
        version = int(options.get("v", 3))

        def answered(answer: Any) -> str:
            codes = {
                one.partition_error_code
                for topic in answer.topic_results
                for one in topic.results_by_partition
            }
            return ", ".join(error(code) for code in sorted(codes))

        decision = self.machine.add_partitions(0, request, version, self.now)
        yield from self.carry_out(decision, lambda a: f"{producer} <- AddPartitions {answered(a)}")

    def offsets(self, names: list[str], options: Options) -> Iterator[str]:
        producer, group = names
        request = AddOffsetsToTxnRequest(**self.identity(producer), group_id=group)
        version = int(options.get("v", 3))
        decision = self.machine.add_offsets(0, request, OFFSETS, version, self.now)
        yield from self.carry_out(
            decision, lambda answer: f"{producer} <- AddOffsets {error(answer.error_code)}"
        )

    def commit(self, names: list[str], options: Options) -> Iterator[str]:
        yield from self.end(names[0], True, int(options.get("v", 3)))

    def abort(self, names: list[str], options: Options) -> Iterator[str]:
        yield from self.end(names[0], False, int(options.get("v", 3)))

    def end(self, producer: str, is_commit: bool, version: int) -> Iterator[str]:
        request = EndTxnRequest(**self.identity(producer), committed=is_commit)
        decision = self.machine.end(0, request, version, self.now_ms)
        yield from self.carry_out(
            decision, lambda answer: f"{producer} <- EndTxn {error(answer.error_code)}"
        )

    def verify(self, names: list[str], options: Options) -> Iterator[str]:
        producer, *places = names
        partitions = [partition_of(place) for place in places]
        name, owner = self.ids.get(producer, "tx"), self.owners.get(producer, Owner(1, 0))
        codes = self.machine.verify(name, *owner, partitions)
        for one in partitions:
            yield f"{one}: {error(codes[one])}"

    def identity(self, producer: str) -> dict[str, Any]:
        owner = self.owners.get(producer, Owner(1, 0))
        return {
            "transactional_id": self.ids.get(producer, "tx"),
            "producer_id": owner.producer_id,
            "producer_epoch": owner.producer_epoch,
        }

    # --- tools -----------------------------------------------------------------------------------

    def describe(self, names: list[str], options: Options) -> Iterator[str]:
        (name,) = names

        def answered(answer: Any) -> str:
            if answer.error_code:
                return error(answer.error_code)
            owner = Owner(answer.producer_id, answer.producer_epoch)
            places = [f"{one.topic}-{number}" for one in answer.topics for number in one.partitions]
            return " ".join([answer.transaction_state, shown(owner), *places])

        yield from self.carry_out(self.machine.describe(0, name), lambda a: f"<- {answered(a)}")

    def list(self, names: list[str], options: Options) -> Iterator[str]:
        request = ListTransactionsRequest(state_filters=names)

        def answered(answer: Any) -> str:
            states = answer.transaction_states
            return ", ".join(f"{one.transactional_id} {one.transaction_state}" for one in states)

        decision = self.machine.list_transactions(0, request, self.now_ms)
        yield from self.carry_out(decision, lambda answer: f"<- {answered(answer) or 'none'}")

    # --- the world -------------------------------------------------------------------------------

    def configure(self, names: list[str], options: Options) -> Iterator[str]:
        changed = {key: int(value) for key, value in options.items()}
        self.config = self.config._replace(**changed)
        self.machine = Transactions(0, 0, self.config)
        self.machine.on_loaded(self.now)
        return iter(())

    def given(self, names: list[str], options: Options) -> Iterator[str]:
        name, owner = names
        record = new_transaction(name, owner_of(owner), 60_000, self.now_ms).record()
        yield from self.carry_out(Decision((record,)))

    def mark(self, names: list[str], options: Options) -> Iterator[str]:
        """One call for each transaction and each partition, as answers come in from brokers."""
        waiting, self.waiting = self.waiting, []
        for markers in waiting:
            done = [one for one in markers.partitions if not names or str(one) in names]
            left = tuple(one for one in markers.partitions if one not in done)
            if left:
                self.waiting.append(markers._replace(partitions=left))
            decision = self.machine.markers_written(*markers[:3], done, self.now)
            yield from self.carry_out(decision)

    def wait(self, names: list[str], options: Options) -> Iterator[str]:
        until_ms = self.now_ms + int(names[0])
        begun_ms = self.now_ms
        for _ in range(1000):
            deadline_ms = self.machine.deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            for decision in self.machine.expire(self.now):
                yield f"after {self.now_ms - begun_ms} ms"
                yield from self.carry_out(decision)
        self.now_ms = until_ms

    def refuse(self, names: list[str], options: Options) -> Iterator[str]:
        self.refuses = True
        return iter(())

    def crash(self, names: list[str], options: Options) -> Iterator[str]:
        self.waiting = []
        self.machine = Transactions(0, self.machine.epoch + 1, self.config)
        for offset, record in enumerate(self.log):
            self.machine.apply(record, offset)
        yield from self.carry_out(self.machine.on_loaded(self.now))

    # --- the shell -------------------------------------------------------------------------------

    def carry_out(self, decision: Decision, answered: Any = None) -> Iterator[str]:
        if decision.records and self.refuses:
            self.refuses = False
            yield "log !! refused"
            if decision.replies:
                yield "the error of the append is answered"
            return
        for record in decision.records:
            self.log.append(record)
            self.machine.apply(record, len(self.log) - 1)
            yield f"log <- {recorded(record)}"
        for reply in decision.replies:
            yield answered(reply.message)
        for markers in decision.markers:
            self.waiting.append(markers)
            kind = "commit" if markers.is_commit else "abort"
            owner = Owner(markers.producer_id, markers.producer_epoch)
            places = " ".join(map(str, markers.partitions))
            yield f"markers: {kind} {shown(owner)} {places} (coordinator {self.machine.epoch})"
        yield from (f"log: {event.text}" for event in decision.events)


def error(code: int) -> str:
    return error_for_code(code).name if code else "ok"


def owner_of(text: str) -> Owner:
    producer_id, _, epoch = text.partition("/")
    return Owner(int(producer_id), int(epoch))


def shown(owner: Owner) -> str:
    return f"{owner.producer_id}/{owner.producer_epoch}"


def partition_of(place: str) -> TopicPartition:
    topic, _, number = place.rpartition("-")
    return TopicPartition(topic, int(number))


def recorded(record: StateRecord) -> str:
    key, value = record
    assert isinstance(key, TransactionKey)
    if value is None:
        return f"{key.transactional_id} forgotten"
    assert isinstance(value, TransactionValue)
    state = transaction_of(key, value)
    places = [str(one) for one in sorted(state.partitions)]
    return " ".join([key.transactional_id, state.status.name, shown(state.owner), *places])
