"""The transaction coordinator under any order of events, with a crash possible after each.

What holds at every step: replay gives the state that was there; an outcome never changes; a decided
transaction leaves its Prepare state only when each of its partitions has a marker; the epoch of a
producer id never falls, and no two producers ever own an id with the same epoch.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.coordinator.decision import Now, StateRecord
from barnabas.coordinator.records import (
    TransactionKey,
    TransactionStatus,
    decode_transaction_record,
)
from barnabas.coordinator.settings import TransactionConfig
from barnabas.coordinator.transaction import MAX_EPOCH, Transaction
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import ConcurrentTransactions, InvalidProducerIdMapping, ProducerFenced
from barnabas.records.batch import iterate_batches
from barnabas.records.record import records_of
from barnabas.types import TopicPartition
from tests.kit.effort import examples
from tests.kit.transaction_driver import Driver, hard

NAMES = st.sampled_from(["a", "b"])
PARTITIONS = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
CONFIG = TransactionConfig(
    max_timeout_ms=100, abort_interval_ms=50, expiration_ms=5_000, expiration_interval_ms=100
)

PREPARED = (TransactionStatus.PrepareCommit, TransactionStatus.PrepareAbort)

BEFORE: dict[str | None, set[str | None]] = {
    "Empty": {None, "Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Empty", "Ongoing", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
    None: {"Empty", "CompleteCommit", "CompleteAbort"},
}
"""What Kafka allows before each state; None: not known, or forgotten."""


class Coordinator(RuleBasedStateMachine):
    """Producers that come, go, crash and come back as zombies, on two transactional ids."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(CONFIG)
        self.seen: dict[str, Transaction] = {}  # the state before the step
        self.owners: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}  # ever answered
        self.marked: dict[str, set[TopicPartition]] = {}  # of the decided transaction of each id
        self.outcomes: dict[int, bool] = {}  # by their offset in the log
        self.epochs: dict[int, int] = {}

    # --- producers -------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        """Owners are there from the start, or most of the steps would find none."""
        for name, owners in self.owners.items():
            owners.append(self.driver.owner(name, CONFIG.max_timeout_ms))

    @rule(name=NAMES, timeout_ms=st.sampled_from([100, 100, 1]), data=st.data())
    def init(self, name: str, timeout_ms: int, data: st.DataObject) -> None:
        known = self.owners[name]
        asker = data.draw(st.sampled_from([(-1, -1), *known[-3:]]))
        answer = self.driver.init(name, asker, timeout_ms)
        if answer.error_code == 0:
            owner = (answer.producer_id, answer.producer_epoch)
            # The same again is for the one alone whose answer may have been lost.
            assert owner not in known or (owner == known[-1] and asker != (-1, -1))
            known.append(owner)

    def pick(self, name: str, data: st.DataObject) -> tuple[int, int]:
        """The owner mostly, now and then one that it has fenced."""
        *fenced, owner = self.owners[name][-3:]
        return data.draw(st.sampled_from([owner] * 4 + fenced))

    @rule(name=NAMES, partitions=PARTITIONS, data=st.data())
    def add(self, name: str, partitions: list[int], data: st.DataObject) -> None:
        owner = self.pick(name, data)
        code = self.driver.add(owner, *partitions, name=name)
        self.only_the_owner_may(name, owner, code)
        if code == 0:
            assert self.driver.verify(owner, *partitions, name=name) == [0] * len(partitions)

    @rule(name=NAMES, partitions=PARTITIONS, is_commit=st.booleans(), data=st.data())
    def transact(
        self, name: str, partitions: list[int], is_commit: bool, data: st.DataObject
    ) -> None:
        self.add(name, partitions, data)
        self.end(name, is_commit, data)

    @rule(name=NAMES, is_commit=st.booleans(), data=st.data())
    def end(self, name: str, is_commit: bool, data: st.DataObject) -> None:
        owner = self.pick(name, data)
        code = self.driver.end(owner, is_commit, name=name)
        self.only_the_owner_may(name, owner, code)
        if code == 0:
            assert self.driver.state(name).is_commit == is_commit
            outcome = self.outcomes.setdefault(self.last_decision(name), is_commit)
            assert outcome == is_commit, "no transaction has two outcomes"

    def last_decision(self, name: str) -> int:
        """Where in the log the newest outcome of this id is."""
        decided = 0
        for offset, (key, value) in enumerate(self.driver.log):
            record = decode_transaction_record(key, value)
            status = getattr(record.value, "transaction_status", None)
            if record.key == TransactionKey(transactional_id=name) and status in PREPARED:
                decided = offset
        return decided

    def only_the_owner_may(self, name: str, owner: tuple[int, int], code: int) -> None:
        state = self.driver.machine.get(name)
        if state is None or state.producer_id != owner[0]:
            assert code == InvalidProducerIdMapping.code
        elif code == 0:
            assert state.owner == owner
        elif code != ConcurrentTransactions.code and state.owner != owner:
            assert code == ProducerFenced.code

    # --- the world -------------------------------------------------------------------------------

    @rule(data=st.data())
    def write_some_markers(self, data: st.DataObject) -> None:
        if not self.driver.pending:
            return
        index = data.draw(st.integers(0, len(self.driver.pending) - 1))
        markers = self.driver.pending.pop(index)
        done = data.draw(st.lists(st.sampled_from(markers.partitions), unique=True))
        left = tuple(one for one in markers.partitions if one not in done)
        if left:
            self.driver.pending.append(markers._replace(partitions=left))
        self.marked.setdefault(markers.transactional_id, set()).update(done)
        self.driver.written(markers, *done)

    @rule(ms=st.sampled_from([1, 1, 20, 101, 5_000]))
    def pass_time(self, ms: int) -> None:
        self.driver.pass_time(ms)

    @rule(ahead_ms=st.sampled_from([0, 60, 10**9, -(10**6)]))
    def the_wall_clock_is_set(self, ahead_ms: int) -> None:
        """ST-6: which moves no timeout."""
        self.driver.ahead_ms = ahead_ms

    @rule(is_refusing=st.booleans())
    def refuse_appends(self, is_refusing: bool) -> None:
        """A client whose append is refused gets an error, so its calls wait until it is over."""
        self.driver.is_refusing = is_refusing
        self.driver.pass_time(60)
        if self.driver.pending:
            markers = self.driver.pending.pop()
            self.marked.setdefault(markers.transactional_id, set()).update(markers.partitions)
            self.driver.written(markers, *markers.partitions)
        self.driver.is_refusing = False

    @rule()
    def crash(self) -> None:
        self.driver.crash()

    @rule()
    def everything_ends_when_nothing_fails(self) -> None:
        """Liveness: once markers can be written, every decided transaction is completed."""
        for markers in self.driver.pending:
            self.marked.setdefault(markers.transactional_id, set()).update(markers.partitions)
        self.driver.write_markers()
        self.driver.pass_time(1_001)
        assert not [
            one for one in self.driver.machine if one.is_decided and not self.driver.pending
        ]

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def replay_gives_the_same(self) -> None:
        assert hard(self.driver.replayed()) == hard(self.driver.machine)

    @invariant()
    def the_next_coordinator_sends_every_marker(self) -> None:
        decided = {one.transactional_id: one for one in self.driver.machine if one.is_decided}
        sent = {
            markers.transactional_id: markers
            for markers in self.driver.replayed().on_loaded(self.driver.now).markers
        }
        assert sent.keys() == decided.keys()
        for name, markers in sent.items():
            assert set(markers.partitions) == decided[name].partitions
            assert (markers.producer_id, markers.producer_epoch) == decided[name].owner
            assert markers.is_commit == decided[name].is_commit

    @invariant()
    def steps_are_those_that_kafka_allows(self) -> None:
        """Of the log's records, each after the one before of the same id."""
        before: dict[str, str | None] = {}
        epochs: dict[int, int] = {}
        for key, value in self.driver.log:
            record = decode_transaction_record(key, value)
            name = record.key.transactional_id  # type: ignore[attr-defined]
            status = None
            if record.value is not None:
                one = Transactions(0, 0, CONFIG)
                one.apply(StateRecord(record.key, record.value), 0)
                (state,) = one
                status = state.status.name
                assert epochs.get(state.producer_id, 0) <= state.producer_epoch <= MAX_EPOCH
                epochs[state.producer_id] = state.producer_epoch
            was = before.get(name)
            assert was in BEFORE[status], (was, status)
            before[name] = status

    @invariant()
    def a_transaction_is_complete_when_all_its_markers_are(self) -> None:
        now = {one.transactional_id: one for one in self.driver.machine}
        for name, was in self.seen.items():
            state = now.get(name)
            if was.is_decided and (state is None or not state.is_decided):
                assert state is not None
                assert self.marked[name] >= was.partitions
                assert state.is_commit == was.is_commit
        for name, state in now.items():
            if not state.is_decided:
                self.marked.pop(name, None)
        self.seen = now


Coordinator.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None
)
TestCoordinator = Coordinator.TestCase


# --- what a real Kafka has written ---------------------------------------------------------------


def logs_of(archive: Path) -> dict[str, list[tuple[int, StateRecord]]]:
    """Each partition of `__transaction_state` in the archive: offsets and records, decoded."""
    found: dict[str, list[tuple[int, StateRecord]]] = {}
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            path = Path(member.name)
            if not path.parent.name.startswith("__transaction_state-") or path.suffix != ".log":
                continue
            file = tar.extractfile(member)
            assert file is not None
            data = file.read()
            records = found.setdefault(path.parent.name, [])
            for position, header in iterate_batches(data):
                if header.is_control:
                    continue
                for record in records_of(data, position, header):
                    decoded = decode_transaction_record(record.key, record.value)
                    records.append((record.offset, StateRecord(decoded.key, decoded.value)))
    return found


def machine_of(records: list[tuple[int, StateRecord]]) -> Transactions:
    machine = Transactions(0, 0, TransactionConfig())
    for offset, record in records:
        machine.apply(record, offset)
    return machine


@pytest.fixture(scope="module")
def fixtures(shared: Path) -> Path:
    return shared / "fixtures" / "kafka-3.9"


def test_what_kafka_wrote_gives_the_state_that_kafka_had(fixtures: Path) -> None:
    """Each transactional id's last record, as it was read by other means, is its state."""
    expected = json.loads((fixtures / "expected" / "single-transaction-state.json").read_text())
    found = logs_of(fixtures / "single" / "logs.tar.gz")
    replayed = 0
    for partition, lines in expected.items():
        last = {line["id"]: line["value"] for line in lines}
        machine = machine_of(found[partition])
        states = {state.transactional_id: state for state in machine}
        assert states.keys() == {name for name, value in last.items() if value is not None}
        for name, state in states.items():
            assert facts(state) == normal(last[name]), name
        replayed += len(last)
    assert sum(len(records) for records in found.values()) == sum(map(len, expected.values()))
    print(f"{replayed} transactional ids replayed")


def facts(state: Transaction) -> dict[str, object]:
    return {
        "pid": state.producer_id,
        "epoch": state.producer_epoch,
        "timeout": state.timeout_ms,
        "status": state.status.name,
        "partitions": sorted(state.partitions),
        "update_ts": state.updated_ms,
        "start_ts": state.begun_ms,
    }


def normal(value: dict[str, object]) -> dict[str, object]:
    topics: list[tuple[str, list[int]]] = value["partitions"] or []  # type: ignore[assignment]
    return {**value, "partitions": sorted((name, one) for name, ones in topics for one in ones)}


@pytest.mark.parametrize(
    "archive", ["crash/base", "cluster/broker1", "cluster/broker2", "cluster/broker3"]
)
def test_every_record_that_kafka_wrote_can_be_written_again(fixtures: Path, archive: str) -> None:
    """Also after a crash and with other replicas: state and records are each other's image."""
    ids = 0
    for records in logs_of(fixtures / f"{archive}.tar.gz").values():
        machine = Transactions(0, 0, TransactionConfig())
        for offset, record in records:
            machine.apply(record, offset)
            if record.value is not None:
                *_, state = machine
                assert sorted_record(state.record()) == sorted_record(record)
        ids += len(list(machine))
        decided = [state for state in machine if state.is_decided]
        assert len(machine.on_loaded(Now(0, 0)).markers) == len(decided)
    print(f"{ids} transactional ids replayed")


def sorted_record(record: StateRecord) -> StateRecord:
    """Kafka writes partitions in any order."""
    value = record.value
    assert value is not None
    topics = value.transaction_partitions  # type: ignore[attr-defined]
    for topic in topics or ():
        topic.partition_ids.sort()
    if topics:
        topics.sort(key=lambda topic: topic.topic)
    return record
