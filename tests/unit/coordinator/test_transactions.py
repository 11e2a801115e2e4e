"""The transaction coordinator's rules, one by one (PR-7)."""

from __future__ import annotations

import pytest

from barnabas.coordinator.decision import StateRecord
from barnabas.coordinator.records import TransactionKey, TransactionStatus, TransactionValue
from barnabas.coordinator.settings import TransactionConfig
from barnabas.errors import (
    ConcurrentTransactions,
    CorruptData,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.types import TopicPartition
from tests.kit.transaction_driver import FIRST_ID, Driver, hard


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def owner(driver: Driver) -> tuple[int, int]:
    return driver.owner()


# --- InitProducerId ------------------------------------------------------------------------------


def test_a_new_id_gets_a_producer_id_and_epoch_0(driver: Driver) -> None:
    assert driver.owner() == (FIRST_ID, 0)
    assert driver.status == "Empty"
    assert driver.owner("another") == (FIRST_ID + 1, 0)


def test_a_restarted_producer_gets_the_next_epoch_and_fences_the_old_one(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """PR-7"""
    assert driver.owner() == (FIRST_ID, 1)
    assert driver.add(owner, 0) == ProducerFenced.code
    assert driver.end(owner, True) == ProducerFenced.code
    assert driver.add_offsets(owner) == ProducerFenced.code


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_cannot_be(driver: Driver, timeout_ms: int) -> None:
    assert driver.init(timeout_ms=timeout_ms).error_code == InvalidTransactionTimeout.code
    assert driver.log == []


@pytest.mark.parametrize("half", [(5, -1), (-1, 5)])
def test_half_an_identity_is_refused(driver: Driver, half: tuple[int, int]) -> None:
    assert driver.init(owner=half).error_code == InvalidRequest.code


def test_an_ongoing_transaction_is_aborted_before_its_id_is_given_away(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """PR-7: the second of two epochs is the new producer's, no producer gets the first."""
    driver.add(owner, 0, 1)
    assert driver.init().error_code == ConcurrentTransactions.code
    assert driver.status == "PrepareAbort"
    assert driver.state().owner == (FIRST_ID, 1)
    (markers,) = driver.pending
    assert (markers.producer_epoch, markers.is_commit) == (1, False)
    assert markers.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert driver.init().error_code == ConcurrentTransactions.code
    driver.write_markers()
    assert driver.status == "CompleteAbort"
    assert driver.owner() == (FIRST_ID, 2)
    assert "a new producer" in driver.log_lines[0]


def test_a_producer_may_ask_for_its_own_next_epoch(driver: Driver, owner: tuple[int, int]) -> None:
    """KIP-360; the answer may be lost, so it may ask twice."""
    for _ in range(2):
        answer = driver.init(owner=owner)
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
    assert driver.init(owner=(FIRST_ID, 1)).producer_epoch == 2
    assert driver.init(owner=owner).error_code == ProducerFenced.code


def test_a_late_repetition_does_not_touch_the_transaction_begun_since(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.init(owner=owner)
    driver.add((FIRST_ID, 1), 0)
    assert driver.init(owner=owner).error_code == ProducerFenced.code
    assert driver.status == "Ongoing"


def test_a_late_repetition_does_not_take_away_what_came_of_a_transaction(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """PR-7: else a producer that has not received the commit would find none."""
    driver.init(owner=owner)
    driver.add((FIRST_ID, 1), 0)
    driver.end((FIRST_ID, 1), True)
    driver.write_markers()
    assert driver.init(owner=owner).error_code == ProducerFenced.code
    assert driver.end((FIRST_ID, 1), True) == 0


def test_another_producer_ends_what_may_be_asked_again(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.init(owner=owner)
    driver.init()
    assert driver.init(owner=owner).error_code == ProducerFenced.code


def test_an_epoch_that_was_refused_to_one_belongs_to_the_next_alone(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """PR-7: two producers with one epoch would end each other's transactions."""
    driver.is_refusing = True
    assert driver.init(owner=owner) is None
    driver.is_refusing = False
    assert driver.owner() == (FIRST_ID, 1)
    assert driver.init(owner=owner).error_code == ProducerFenced.code


def test_a_refusal_to_another_takes_no_answer_away(driver: Driver, owner: tuple[int, int]) -> None:
    driver.init(owner=owner)
    driver.is_refusing = True
    assert driver.init() is None
    driver.is_refusing = False
    assert driver.init(owner=owner).producer_epoch == 1


def test_a_fenced_producer_cannot_abort_its_successor(
    driver: Driver, owner: tuple[int, int]
) -> None:
    successor = driver.owner()
    driver.add(successor, 0)
    assert driver.init(owner=owner).error_code == ProducerFenced.code
    assert driver.status == "Ongoing"


def test_an_unknown_identity_counts_for_a_forgotten_id(driver: Driver) -> None:
    """The producer was there before the transactional id expired."""
    answer = driver.init(owner=(17, 3))
    assert (answer.producer_id, answer.producer_epoch) == (FIRST_ID, 0)
    assert driver.init("tx", owner=(17, 3)).error_code == ProducerFenced.code


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90)])
def test_fenced_by_an_older_name(driver: Driver, version: int, code: int) -> None:
    owner = driver.owner()
    driver.owner()
    assert driver.init(owner=owner, version=version).error_code == code


def exhausted(driver: Driver, status: TransactionStatus, epoch: int) -> None:
    """An id that has used up its epochs."""
    value = TransactionValue(
        producer_id=9,
        producer_epoch=epoch,
        transaction_timeout_ms=1000,
        transaction_status=status,
        transaction_partitions=None if status is TransactionStatus.Empty else [],
        last_update_timestamp_ms=driver.now_ms,
        start_timestamp_ms=driver.now_ms,
    )
    driver.machine.apply(StateRecord(TransactionKey(transactional_id="tx"), value), 0)


def test_the_last_epoch_is_32766_and_then_comes_a_new_id(driver: Driver) -> None:
    exhausted(driver, TransactionStatus.Empty, 32765)
    assert driver.owner() == (9, 32766)
    assert driver.owner() == (FIRST_ID, 0)


def test_a_new_id_may_be_asked_for_again_too(driver: Driver) -> None:
    exhausted(driver, TransactionStatus.CompleteCommit, 32766)
    for _ in range(2):
        answer = driver.init(owner=(9, 32766))
        assert (answer.producer_id, answer.producer_epoch) == (FIRST_ID, 0)


def test_fencing_the_last_epoch_takes_the_one_that_no_producer_gets(driver: Driver) -> None:
    exhausted(driver, TransactionStatus.CompleteCommit, 32766)
    driver.add((9, 32766), 0)
    driver.init()
    assert driver.state().owner == (9, 32767)
    driver.write_markers()
    assert driver.init(owner=(9, 32766)).error_code == ProducerFenced.code
    assert driver.owner() == (driver.next_id - 1, 0)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_strange_id_is_fenced_while_a_transaction_ends(
    driver: Driver, owner: tuple[int, int], is_commit: bool
) -> None:
    """As Kafka: only the owner of the id has to retry."""
    driver.add(owner, 0)
    driver.end(owner, is_commit)
    assert driver.init(owner=(FIRST_ID + 7, 0)).error_code == ProducerFenced.code
    assert driver.init(owner=owner).error_code == ConcurrentTransactions.code
    assert driver.init(owner=(FIRST_ID, 5)).error_code == ConcurrentTransactions.code
    assert driver.init().error_code == ConcurrentTransactions.code


# --- partitions ----------------------------------------------------------------------------------


def test_partitions_begin_a_transaction_and_join_it(driver: Driver, owner: tuple[int, int]) -> None:
    assert driver.add(owner, 0) == 0
    begun_ms = driver.now_ms
    driver.now_ms += 5
    assert driver.add(owner, 1, 2) == 0
    assert driver.add_offsets(owner) == 0
    state = driver.state()
    assert state.status is TransactionStatus.Ongoing
    assert {one.topic for one in state.partitions} == {"t", "__consumer_offsets"}
    assert (state.begun_ms, state.updated_ms) == (begun_ms, begun_ms + 5)


def test_a_partition_that_is_in_it_writes_nothing(driver: Driver, owner: tuple[int, int]) -> None:
    driver.add(owner, 0, 1)
    written = len(driver.log)
    assert driver.add(owner, 1) == 0
    assert len(driver.log) == written


def test_who_is_not_known_or_has_another_id(driver: Driver, owner: tuple[int, int]) -> None:
    for code in (
        driver.add(owner, 0, name="unknown"),
        driver.add((owner[0] + 1, 0), 0),
        driver.end((owner[0] + 1, 0), True),
        driver.add_offsets((owner[0] + 1, 0)),
        driver.end(owner, True, name="unknown"),
    ):
        assert code == InvalidProducerIdMapping.code


@pytest.mark.parametrize(("version", "code"), [(1, 47), (2, 90)])
def test_a_fenced_producer_gets_the_error_of_its_version(
    driver: Driver, owner: tuple[int, int], version: int, code: int
) -> None:
    driver.owner()
    assert driver.add(owner, 0, version=version) == code
    assert driver.add_offsets(owner, version=version) == code
    assert driver.end(owner, True, version=version) == code
    assert {InvalidProducerEpoch.code, ProducerFenced.code} == {47, 90}


def test_nothing_joins_a_decided_transaction(driver: Driver, owner: tuple[int, int]) -> None:
    driver.add(owner, 0)
    driver.end(owner, True)
    assert driver.add(owner, 1) == ConcurrentTransactions.code
    assert driver.add_offsets(owner) == ConcurrentTransactions.code


def test_verification(driver: Driver, owner: tuple[int, int]) -> None:
    """KIP-890, part 1"""
    assert driver.verify(owner, 0) == [TransactionAbortable.code]
    driver.add(owner, 0, 1)
    assert driver.verify(owner, 1, 2) == [0, TransactionAbortable.code]
    assert driver.verify((owner[0], 5), 1) == [ProducerFenced.code]
    assert driver.verify((5, 0), 1) == [InvalidProducerIdMapping.code]
    assert driver.verify(owner, 1, name="unknown") == [InvalidProducerIdMapping.code]
    driver.end(owner, False)
    assert driver.verify(owner, 1) == [ConcurrentTransactions.code]
    driver.write_markers()
    assert driver.verify(owner, 1) == [TransactionAbortable.code]


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_commit", "name"), [(True, "Commit"), (False, "Abort")])
def test_from_the_decision_to_the_last_marker(
    driver: Driver, owner: tuple[int, int], is_commit: bool, name: str
) -> None:
    """PR-7"""
    driver.add(owner, 0, 1)
    assert driver.end(owner, is_commit) == 0
    assert driver.status == f"Prepare{name}"
    (markers,) = driver.pending
    assert (markers.transactional_id, markers.producer_id, markers.is_commit) == (
        "tx",
        FIRST_ID,
        is_commit,
    )
    driver.written(markers, markers.partitions[1])
    assert driver.status == f"Prepare{name}"
    driver.written(markers, markers.partitions[1])
    driver.written(markers, markers.partitions[0])
    assert driver.status == f"Complete{name}"
    assert driver.state().partitions == frozenset()
    assert driver.add(owner, 3) == 0
    assert driver.state().partitions == {TopicPartition("t", 3)}


def test_an_end_may_be_asked_for_again_but_not_another(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.end(owner, True)
    assert driver.end(owner, True) == ConcurrentTransactions.code
    assert driver.end(owner, False) == InvalidTxnState.code
    driver.write_markers()
    written = len(driver.log)
    assert driver.end(owner, True) == 0
    assert driver.end(owner, False) == InvalidTxnState.code
    assert len(driver.log) == written


def test_what_was_not_begun_cannot_end(driver: Driver, owner: tuple[int, int]) -> None:
    assert driver.end(owner, True) == InvalidTxnState.code


def test_markers_of_another_transaction_count_for_nothing(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.end(owner, True)
    (markers,) = driver.pending
    driver.written(markers._replace(producer_epoch=1), *markers.partitions)
    driver.written(markers._replace(transactional_id="unknown"), *markers.partitions)
    assert driver.status == "PrepareCommit"


def test_a_completion_that_is_refused_is_tried_again(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.end(owner, True)
    driver.is_refusing = True
    driver.write_markers()
    assert driver.pass_time(999) == 0
    assert driver.pass_time(1) == 1
    assert driver.status == "PrepareCommit"
    driver.is_refusing = False
    driver.pass_time(1000)
    assert driver.status == "CompleteCommit"


# --- time ----------------------------------------------------------------------------------------


def test_a_transaction_that_lasts_too_long_is_aborted(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """With an epoch that fences its producer."""
    driver.add(owner, 0)
    driver.pass_time(59_000)
    driver.add(owner, 1)
    driver.pass_time(1_000)
    assert driver.status == "Ongoing", "it may last for exactly its timeout, from the beginning"
    assert driver.pass_time(1) == 1
    assert driver.status == "PrepareAbort"
    assert driver.pending[0].producer_epoch == 1
    assert driver.end(owner, True) == ProducerFenced.code
    driver.write_markers()
    assert driver.owner() == (FIRST_ID, 2)
    assert "its timeout is 60000 ms" in driver.log_lines[0]


def test_each_transaction_has_its_own_time(driver: Driver, owner: tuple[int, int]) -> None:
    for _ in range(3):
        driver.add(owner, 0)
        driver.pass_time(40_000)
        assert driver.end(owner, True) == 0
        driver.write_markers()
    assert driver.pass_time(100_000) == 0


def test_the_next_transaction_of_an_id_is_watched_too(
    driver: Driver, owner: tuple[int, int]
) -> None:
    """Though the one before has left its time behind."""
    driver.add(owner, 0)
    driver.pass_time(30_000)
    driver.end(owner, True)
    driver.write_markers()
    driver.add(owner, 0)
    driver.pass_time(30_001)
    assert driver.status == "Ongoing"
    driver.pass_time(30_000)
    assert driver.status == "PrepareAbort"


def test_a_shorter_timeout_counts_from_its_own_transaction_on(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.end(owner, True)
    driver.write_markers()
    driver.pass_time(driver.machine.config.abort_interval_ms)  # the first look after a load
    answer = driver.init(timeout_ms=100)
    driver.add((answer.producer_id, answer.producer_epoch), 0)
    driver.pass_time(101)
    assert driver.status == "PrepareAbort"


def test_looks_for_late_transactions_keep_their_distance() -> None:
    driver = Driver(TransactionConfig(abort_interval_ms=5_000))
    driver.pass_time(5_000)  # the first look is as far from the load
    for name in ("a", "b"):
        answer = driver.init(name, timeout_ms=100 if name == "a" else 200)
        driver.add((answer.producer_id, 0), 0, name=name)
    driver.pass_time(101)
    assert (driver.state("a").status.name, driver.state("b").status.name) == (
        "PrepareAbort",
        "Ongoing",
    )
    looked_ms = driver.now_ms
    driver.now_ms += 4_999
    assert driver.machine.expire(driver.now) == []
    assert driver.machine.deadline_ms() == looked_ms + 5_000
    driver.pass_time(1)
    assert driver.state("b").status.name == "PrepareAbort"


def test_an_abort_that_is_refused_is_tried_again(driver: Driver, owner: tuple[int, int]) -> None:
    driver.add(owner, 0)
    driver.is_refusing = True
    driver.pass_time(60_001)
    assert driver.status == "Ongoing"
    driver.is_refusing = False
    driver.pass_time(10_001)
    assert driver.status == "PrepareAbort"


def test_unused_ids_are_removed() -> None:
    driver = Driver(TransactionConfig(expiration_ms=2_000, expiration_interval_ms=1_000))
    driver.owner("idle")
    owner = driver.owner("open")
    driver.add(owner, 0, name="open")
    driver.pass_time(1_500)
    driver.owner("young")
    driver.pass_time(500)
    assert [each.transactional_id for each in driver.machine] == ["idle", "open", "young"]
    driver.pass_time(500)
    assert [each.transactional_id for each in driver.machine] == ["open", "young"]
    assert driver.log[-1].value is None
    assert driver.init("idle").producer_id > owner[0], "nothing is known of it any more"


def test_many_ids_are_forgotten_in_slices() -> None:
    driver = Driver(TransactionConfig(expiration_ms=1, expiration_interval_ms=3_600_000))
    for i in range(1_500):
        driver.owner(str(i))
    assert driver.pass_time(3_600_000) == 1
    assert len(list(driver.machine)) == 500
    driver.pass_time(1_000)
    assert list(driver.machine) == []
    assert driver.machine.deadline_ms() is None


# --- crash and replay ----------------------------------------------------------------------------


def test_a_decided_transaction_gets_its_markers_from_the_next_coordinator(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0, 1)
    driver.end(owner, True)
    (markers,) = driver.pending
    driver.written(markers, markers.partitions[0])
    driver.crash()
    assert driver.pending == [markers._replace(coordinator_epoch=1)]
    assert driver.end(owner, False) == InvalidTxnState.code
    driver.write_markers()
    assert driver.status == "CompleteCommit"


def test_an_ongoing_transaction_goes_on_after_a_crash(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.crash()
    assert driver.pending == []
    assert driver.end(owner, True) == 0


def test_an_ongoing_transaction_times_out_after_a_crash_too(
    driver: Driver, owner: tuple[int, int]
) -> None:
    driver.add(owner, 0)
    driver.crash()
    driver.pass_time(60_001)
    assert driver.status == "PrepareAbort"


def test_replay_gives_the_same_state(driver: Driver, owner: tuple[int, int]) -> None:
    driver.add(owner, 0, 1)
    driver.owner("b")
    driver.end(owner, True)
    assert hard(driver.replayed()) == hard(driver.machine)


@pytest.mark.parametrize("status", [6, 7, 8, -1])
def test_a_status_that_is_never_written_is_corrupt(driver: Driver, status: int) -> None:
    record = StateRecord(
        TransactionKey(transactional_id="tx"), TransactionValue(transaction_status=status)
    )
    with pytest.raises(CorruptData, match="invalid status"):
        driver.machine.apply(record, 0)


# --- for admin clients ---------------------------------------------------------------------------


def test_describing(driver: Driver, owner: tuple[int, int]) -> None:
    driver.add(owner, 1, 0)
    driver.add_offsets(owner)
    found = driver.answer(driver.machine.describe(0, "tx"))
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == (
        "Ongoing",
        FIRST_ID,
        0,
    )
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (
        60_000,
        driver.now_ms,
    )
    assert [(each.topic, each.partitions) for each in found.topics] == [
        ("__consumer_offsets", [7]),
        ("t", [0, 1]),
    ]
    unknown = driver.answer(driver.machine.describe(0, "unknown"))
    assert unknown.error_code == TransactionalIdNotFound.code


def test_listing_with_filters(driver: Driver, owner: tuple[int, int]) -> None:
    driver.owner("b")
    driver.add(owner, 0)
    driver.now_ms += 100

    def listed(**filters: object) -> list[str]:
        request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
        answer = driver.answer(driver.machine.list_transactions(0, request, driver.now_ms))
        return [state.transactional_id for state in answer.transaction_states]

    assert listed() == ["b", "tx"]
    assert listed(state_filters=["Ongoing", "NoSuchState"]) == ["tx"]
    assert listed(producer_id_filters=[FIRST_ID + 1]) == ["b"]
    assert listed(duration_filter=100, state_filters=["Ongoing"]) == []
    assert listed(duration_filter=99, state_filters=["Ongoing"]) == ["tx"]
