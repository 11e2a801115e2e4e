"""`Log.truncate`: everything that the log knows goes back with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import OutOfOrderSequenceNumber
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.disk import (
    CLEAN,
    CRASHED,
    T0,
    QuickFiles,
    append,
    batch,
    open_at,
    records,
)
from tests.kit.storage.times import max_timestamp_offset, offset_for_timestamp

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def _filled(directory: Path) -> Log:
    """Thirty batches of two records, an epoch for each five of them."""
    log = open_at(directory, SMALL)
    for i in range(30):
        append(log, batch(2, 50, timestamp=T0 + i, producer=(9, 0, 2 * i)), epoch=i // 5)
    return log


@pytest.mark.parametrize("offset", [0, 1, 2, 7, 20, 21, 40, 58, 59])
def test_a_truncated_log_is_as_if_it_had_never_been_longer(tmp_path: Path, offset: int) -> None:
    (tmp_path / "long").mkdir()
    (tmp_path / "short").mkdir()
    log = _filled(tmp_path / "long")
    short = open_at(tmp_path / "short", SMALL)
    for i in range(offset // 2):
        append(short, batch(2, 50, timestamp=T0 + i, producer=(9, 0, 2 * i)), epoch=i // 5)
    log.truncate(offset)
    offset -= offset % 2  # all of the batch has gone, and has to come again
    assert log.log_end_offset == offset
    for _ in range(2):
        assert records(log) == records(short)
        assert log.epochs.entries == short.epochs.entries
        assert max_timestamp_offset(log) == max_timestamp_offset(short)
        for ms in range(0, 31, 5):
            found = [offset_for_timestamp(each, T0 + ms, offset) for each in (log, short)]
            assert found[0] == found[1]
        known, wanted = log.producers.get(9), short.producers.get(9)
        assert (known and known.last_sequence) == (wanted and wanted.last_sequence)
        log.close()
        log = open_at(tmp_path / "long", SMALL, CLEAN)


def test_a_truncated_log_goes_on(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.truncate(24)
    with pytest.raises(OutOfOrderSequenceNumber):
        append(log, batch(2, 50, producer=(9, 0, 60)), epoch=7)
    assert append(log, batch(2, 50, producer=(9, 0, 22)), epoch=7).is_duplicate
    for i in range(12, 30):
        appended = append(log, batch(2, 60, timestamp=T0, producer=(9, 0, 2 * i)), epoch=7)
        assert appended.base_offset == 2 * i
    assert [record.offset for record in records(log)] == list(range(60))
    assert log.epoch_end_offset(7) == (7, 60)
    assert log.epoch_end_offset(5) == (2, 24)
    assert log.epoch_end_offset(8) == (-1, -1)
    log.release()
    log = open_at(tmp_path, SMALL, CRASHED)
    assert [record.offset for record in records(log)] == list(range(60))


def test_truncating_behind_the_end_forgets_an_epoch_without_records(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.assign_leader_epoch(99)
    log.truncate(60)
    assert log.log_end_offset == 60
    assert log.epochs.latest == 5


def test_truncating_below_the_log_empties_it(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.raise_log_start(30)
    log.enforce_retention(T0, 60, T0)
    first = log.segments[0].base_offset
    assert first > 10
    log.truncate(10)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (10, 10, 0)
    assert append(log, batch(1)).base_offset == 10
    log.close()
    assert open_at(tmp_path).log_end_offset == 11


def test_what_was_staged_is_truncated_too(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for _ in range(3):
        log.append(memoryview(batch(2)), 0, T0)
    log.truncate(2)
    assert len(records(log)) == 2


def test_transactions_go_back(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)

    def send(producer_id: int, sequence: int) -> None:
        records = batch(1, 50, producer=(producer_id, 0, sequence), is_transactional=True)
        append(log, records)

    def end(producer_id: int, kind: int) -> None:
        marker = bytearray(build_marker(Marker(0, T0, kind, 0), producer_id, 0))
        log.append_control(memoryview(marker), 0, T0)
        log.write_staged()

    send(1, 0)  # 0
    end(1, ABORT)  # 1
    send(2, 0)  # 2
    send(1, 1)  # 3
    end(2, COMMIT)  # 4
    end(1, ABORT)  # 5
    assert log.last_stable_offset(6) == 6
    assert log.aborted_transactions(0, 6) == [(1, 0), (1, 3)]
    log.truncate(5)
    assert log.last_stable_offset(5) == 3
    assert log.aborted_transactions(0, 5) == [(1, 0)]
    log.truncate(4)
    assert log.last_stable_offset(4) == 2
    log.truncate(1)
    assert log.last_stable_offset(1) == 0
    assert log.aborted_transactions(0, 1) == []


def test_st_8_a_recovery_point_does_not_outlive_a_truncation(tmp_path: Path) -> None:
    """What is written above it afterwards is new, and has to be scanned after a crash."""
    name = TopicPartition("t", 0)
    store = LogStore.open(QuickFiles(), [tmp_path], config=SMALL, broker_id=0, now_ms=0)
    log = store.create(name, bytes(16), SMALL)
    for _ in range(9):
        append(log, batch(1, 50))
    log.flush()
    store.checkpoint_recovery_points()
    store.truncations.truncate(name, 4)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 4\n"
    store.release()


@pytest.mark.parametrize("offset", [0, 24, 60, 1000])
def test_an_emptied_log_keeps_nothing_of_before(tmp_path: Path, offset: int) -> None:
    """Its leader has deleted all that would come next, or lost what is here."""
    log = _filled(tmp_path)
    log.start_at(offset)
    append(log, batch(1, 50, producer=(9, 0, 77)), epoch=9)
    for _ in range(3):
        assert (log.log_start_offset, log.log_end_offset) == (offset, offset + 1)
        assert [record.offset for record in records(log)] == [offset]
        assert log.epochs.entries == ((9, offset),)
        known = log.producers.get(9)
        assert known is not None and known.last_sequence == 77
        log.close()
        log = open_at(tmp_path, SMALL, CLEAN)
    log.flush()
    log.release()
    log = open_at(tmp_path, SMALL, CRASHED)
    assert [record.offset for record in records(log)] == [offset]


def test_an_emptied_log_has_no_epoch_and_no_producer(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.start_at(60)
    for _ in range(2):
        assert (log.latest_epoch, len(log.producers), log.size_bytes) == (-1, 0, 0)
        log.close()
        log = open_at(tmp_path, SMALL, CLEAN)
    assert not list(tmp_path.glob("*.log"))[1:]
