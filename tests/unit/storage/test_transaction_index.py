"""Transactions in a log: aborted ones, open ones, and how far it is stable (CO-6, KIP-98)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTxnState,
    TransactionCoordinatorFenced,
)
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.storage.append_result import AppendResult
from barnabas.storage.files import OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.transaction_index import Aborted, AbortedIndex, AbortedTransaction
from tests.kit.storage.disk import (
    CLEAN,
    CRASHED,
    T0,
    append,
    batch,
    open_at,
    records,
)

GOLDEN = "00000000000000000fa0000000000000006400000000000000950000000000000096"


def _marker(producer_id: int, kind: int, *, epoch: int = 0, coordinator: int = 0) -> memoryview:
    return memoryview(
        bytearray(build_marker(Marker(0, T0 + 7, kind, coordinator), producer_id, epoch))
    )


class Producers:
    """Transactional producers of one log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.sequences: dict[int, int] = {}

    def send(self, producer_id: int, count: int = 1) -> int:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        sent = batch(count, producer=(producer_id, 0, sequence), is_transactional=True)
        return append(self.log, sent).base_offset

    def end(self, producer_id: int, kind: int) -> AppendResult:
        result = self.log.append_control(_marker(producer_id, kind), 0, T0)
        self.log.write_staged()
        return result


# --- the index ---------------------------------------------------------------------------------


def test_st_1_an_entry_has_kafkas_bytes(tmp_path: Path) -> None:
    index = AbortedIndex(OsFiles(), tmp_path / "x.txnindex", 0)
    index.append(Aborted(4000, 100, 149, 150))
    assert not index.path.exists()
    index.write_out()
    assert index.path.read_bytes().hex() == GOLDEN
    again = AbortedIndex(OsFiles(), index.path, 1)
    assert again.entries(0, 9) == [Aborted(4000, 100, 149, 150)]


@pytest.mark.parametrize("is_stored", [False, True])
def test_those_that_reach_into_a_range_are_collected(tmp_path: Path, is_stored: bool) -> None:
    index = AbortedIndex(OsFiles(), tmp_path / "x.txnindex", 0)
    entries = [Aborted(i, 10 * i, 10 * i + 8, 10 * i + 9) for i in range(300)]
    for entry in entries:
        index.append(entry)
    if is_stored:
        index.write_out()
        index = AbortedIndex(OsFiles(), index.path, 300)
    for start, end in ((0, 1), (8, 9), (9, 10), (9, 11), (1234, 2345), (2998, 3100), (0, 9999)):
        found: list[AbortedTransaction] = []
        index.collect(start, end, found)
        assert found == [
            (each.producer_id, each.first_offset)
            for each in entries
            if each.last_offset >= start and each.first_offset < end
        ]
    index.cut(1508)
    assert index[index.count - 1].last_offset == 1498


def test_an_unknown_version_is_corrupt_data(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\1" + bytes(32))
    with pytest.raises(CorruptData, match="unknown version 1"):
        AbortedIndex(OsFiles(), tmp_path / "x", 1).entries(0, 1)


def test_a_flush_does_not_miss_the_index_that_is_not_written_yet(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1)
    producers.end(1, ABORT)
    log.flush()
    assert log.recovery_point == 2
    log.release()
    start = Start(is_clean=False, recovery_point=2)
    assert open_at(tmp_path, start=start).aborted_transactions(0, 2) == [(1, 0)]


def test_nothing_is_stable_below_the_log_start(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1, 3)
    log.raise_log_start(2)
    assert log.last_stable_offset(3) == 2


# --- the log -----------------------------------------------------------------------------------


def test_co_6_the_log_is_stable_up_to_the_first_open_transaction(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    append(log, batch(2))
    assert log.last_stable_offset(2) == 2
    producers.send(1, 2)  # 2, 3
    producers.send(2)  # 4
    assert [log.last_stable_offset(hw) for hw in (0, 1, 2, 5)] == [0, 1, 2, 2]
    assert producers.end(1, COMMIT).base_offset == 5
    assert log.last_stable_offset(6) == 4
    producers.send(1)  # 6
    producers.end(2, ABORT)  # 7
    assert log.last_stable_offset(8) == 6
    producers.end(1, COMMIT)
    assert log.last_stable_offset(9) == 9
    assert log.aborted_transactions(0, 9) == [(2, 4)]
    assert log.aborted_transactions(8, 9) == []
    assert [record.offset for record in records(log)] == [0, 1, 2, 3, 4, 6]


def test_co_6_a_marker_counts_when_it_is_below_the_high_watermark(tmp_path: Path) -> None:
    """A leader to come may not have it yet."""
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1)  # 0
    producers.send(2)  # 1
    producers.end(1, COMMIT)  # 2
    producers.end(2, COMMIT)  # 3
    assert [log.last_stable_offset(hw) for hw in (1, 2, 3, 4)] == [0, 0, 1, 4]


def test_an_aborted_transaction_around_another_is_found(tmp_path: Path) -> None:
    """CO-6: the one that begins first ends last, behind what is read: the search may not stop at
    the entry of the other."""
    log = open_at(tmp_path)
    producers = Producers(log)
    assert (producers.send(1), producers.send(2)) == (0, 1)
    producers.end(2, ABORT)  # 2
    producers.send(1)
    producers.end(1, ABORT)  # 4
    for end in (2, 3, 4, 5):
        assert log.aborted_transactions(0, end) == [(2, 1), (1, 0)]


def test_a_marker_that_ends_nothing_leaves_no_entry(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.end(1, ABORT)
    assert log.aborted_transactions(0, 10) == []
    assert log.last_stable_offset(1) == 1
    log.close()
    assert not list(tmp_path.glob("*.txnindex"))


def test_markers_of_the_past_are_fenced_and_change_nothing(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    Producers(log).send(1)
    log.append_control(_marker(1, COMMIT, epoch=3, coordinator=5), 0, T0)
    with pytest.raises(InvalidProducerEpoch, match="epoch 3"):
        log.append_control(_marker(1, ABORT, epoch=2, coordinator=5), 0, T0)
    with pytest.raises(TransactionCoordinatorFenced, match="epoch 5"):
        log.append_control(_marker(1, ABORT, epoch=3, coordinator=4), 0, T0)
    assert log.log_end_offset == 2


def test_what_is_no_marker_is_refused(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    with pytest.raises(InvalidRecord):
        log.append_control(memoryview(batch(1)), 0, T0)
    damaged = bytearray(_marker(1, COMMIT))
    damaged[-1] ^= 1
    with pytest.raises(CorruptMessage):
        log.append_control(memoryview(damaged), 0, T0)
    assert log.log_end_offset == 0


def test_a_batch_outside_of_the_open_transaction_is_refused(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1)
    with pytest.raises(InvalidTxnState, match="since offset 0"):
        append(log, batch(1, producer=(1, 0, 1)))
    producers.end(1, COMMIT)
    assert append(log, batch(1, producer=(1, 0, 1))).base_offset == 2


def test_a_marker_may_be_stamped_like_any_record(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    result = log.append_control(_marker(1, COMMIT), 0, 4711)
    assert result.log_append_time_ms == 4711
    producer = log.producers.get(1)
    assert producer is not None and producer.timestamp == 4711


@pytest.mark.parametrize("start", [CLEAN, CRASHED])
def test_st_8_transactions_outlive_a_restart(tmp_path: Path, start: object) -> None:
    config = LogConfig(segment_bytes=700)
    log = open_at(tmp_path, config)
    producers = Producers(log)
    for i in range(40):
        producers.send(1 + i % 3)
        if i % 2:
            producers.end(1 + i % 3, ABORT if i % 4 == 1 else COMMIT)
    assert len(log.segments) > 4
    end = log.log_end_offset
    wanted = [log.aborted_transactions(offset, end) for offset in range(end)]
    stable = log.last_stable_offset(end)
    assert stable < end and len(wanted[0]) == 10
    if start is CLEAN:
        log.close()
    else:
        log.release()
    log = open_at(tmp_path, config, start)  # type: ignore[arg-type]
    assert [log.aborted_transactions(offset, end) for offset in range(end)] == wanted
    assert log.last_stable_offset(end) == stable
    log.close()
    for path in tmp_path.glob("*.txnindex"):
        assert path.stat().st_size % 34 == 0
        path.write_bytes(b"\0\7" + path.read_bytes()[2:] if start is CLEAN else b"torn")
    log = open_at(tmp_path, config)
    assert [log.aborted_transactions(offset, end) for offset in range(end)] == wanted


def test_a_cut_marker_opens_its_transaction_again(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1)
    producers.end(1, ABORT)
    log.release()
    _tear_the_marker(tmp_path)
    log = open_at(tmp_path, start=CRASHED)
    assert (log.log_end_offset, log.last_stable_offset(1)) == (1, 0)
    assert log.aborted_transactions(0, 1) == []


def _tear_the_marker(directory: Path) -> None:
    """It is the last batch of the first segment."""
    path = directory / f"{0:020}.log"
    os.truncate(path, path.stat().st_size - 1)


def _commit_offsets(log: Log, producer_id: int) -> None:
    """As a coordinator of groups may do it in a producer's transaction: without a sequence."""
    builder = BatchBuilder(0, producer_id, 0, is_transactional=True)
    builder.append(T0, b"group", b"offset")
    log.append_own(memoryview(bytearray(builder.build())), 0, T0)
    log.write_staged()


def _outlook(log: Log) -> tuple[int, list[AbortedTransaction]]:
    end = log.log_end_offset
    return log.last_stable_offset(end), log.aborted_transactions(0, end)


@pytest.mark.parametrize("start", [CLEAN, CRASHED])
def test_gc_3_offsets_in_a_transaction_outlive_a_restart(tmp_path: Path, start: Start) -> None:
    """Else the cleaner would take what was aborted for the newest of its key, and what was
    committed before it would be gone."""
    log = open_at(tmp_path)
    _commit_offsets(log, 1)
    Producers(log).end(1, ABORT)
    _commit_offsets(log, 2)
    assert _outlook(log) == (2, [(1, 0)])
    if start is CLEAN:
        log.close()
    else:
        log.release()
    assert _outlook(open_at(tmp_path, start=start)) == (2, [(1, 0)])


def test_offsets_in_a_transaction_are_known_when_the_log_is_cut_behind_them(
    tmp_path: Path,
) -> None:
    log = open_at(tmp_path)
    _commit_offsets(log, 1)
    append(log, batch(1))
    log.truncate(1)
    assert _outlook(log) == (0, [])
    Producers(log).end(1, ABORT)
    assert _outlook(log) == (2, [(1, 0)])


def test_st_8_a_damaged_snapshot_hides_no_open_transaction(tmp_path: Path) -> None:
    """CO-6: after a clean stop, too, the log says what the only snapshot cannot."""
    log = open_at(tmp_path)
    Producers(log).send(1)
    log.close()
    (snapshot,) = tmp_path.glob("*.snapshot")
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    log = open_at(tmp_path)
    assert log.last_stable_offset(1) == 0
    with pytest.raises(InvalidTxnState):
        append(log, batch(1, producer=(1, 0, 1)))


def test_no_index_of_a_lost_past_outlives_its_segment(tmp_path: Path) -> None:
    """ST-8: what a crash took from the index is not to come back with a segment of that name."""
    log = open_at(tmp_path)
    producers = Producers(log)
    producers.send(1)
    producers.end(1, ABORT)
    log.close()
    _tear_the_marker(tmp_path)
    log = open_at(tmp_path, start=CRASHED)
    log.start_at(0)
    producers = Producers(log)
    producers.send(1)
    producers.end(1, COMMIT)
    log.close()
    log = open_at(tmp_path)
    assert log.aborted_transactions(0, 2) == []
