"""ST-1: snapshots of many producers do not block the loop, and are right at their offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage import producer_state
from barnabas.storage.log import Log
from barnabas.storage.producers import Producers
from barnabas.storage.snapshot import decode_snapshot, snapshot_path
from tests.kit.storage.disk import CRASHED, append, batch, open_at
from tests.kit.storage.headers import header


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three producers are many."""
    monkeypatch.setattr(producer_state, "WRITTEN_AT_ONCE", 2)


def rolled(directory: Path) -> Log:
    """With three producers at offset 3, where it has rolled; then the first one goes on."""
    log = open_at(directory, LogConfig(), CRASHED)
    for producer_id in (1, 2, 3):
        append(log, batch(1, producer=(producer_id, 0, 0)))
    log.roll()
    append(log, batch(1, producer=(1, 0, 1)))
    return log


def last_sequences(producers: Producers) -> dict[int, int]:
    return {producer_id: each.last_sequence for producer_id, each in producers}


def test_it_is_written_later_and_as_it_was(tmp_path: Path) -> None:
    log = rolled(tmp_path)
    path = snapshot_path(tmp_path, 3)
    assert not path.exists()
    for flush in log.take_unflushed():
        flush()
    assert last_sequences(decode_snapshot(path.read_bytes())) == {1: 0, 2: 0, 3: 0}
    assert last_sequences(log.producers) == {1: 1, 2: 0, 3: 0}
    assert log.take_unflushed() == []
    assert sorted(each.suffix for each in tmp_path.iterdir() if ".tmp" in each.name) == []


def test_few_producers_are_written_at_once(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(), CRASHED)
    append(log, batch(1, producer=(1, 0, 0)))
    log.roll()
    assert snapshot_path(tmp_path, 1).exists()


def test_a_crash_before_it_is_written_loses_no_producer(tmp_path: Path) -> None:
    log = rolled(tmp_path)
    expected = last_sequences(log.producers)
    log.release()
    assert last_sequences(open_at(tmp_path, LogConfig(), CRASHED).producers) == expected


@pytest.mark.parametrize("is_appended", [True, False])
def test_a_clean_stop_writes_what_is_due(tmp_path: Path, is_appended: bool) -> None:
    log = rolled(tmp_path)
    if not is_appended:
        log.roll()
    expected = last_sequences(log.producers)
    log.close()
    assert snapshot_path(tmp_path, 4).exists()
    assert last_sequences(open_at(tmp_path, LogConfig()).producers) == expected


@pytest.mark.parametrize("is_begun", [True, False])
def test_what_is_cut_off_is_not_written(tmp_path: Path, is_begun: bool) -> None:
    """Its offset will be that of other records."""
    log = rolled(tmp_path)
    flushes = log.take_unflushed() if is_begun else []
    log.truncate(1)
    for flush in flushes or log.take_unflushed():
        flush()
    assert not list(tmp_path.glob("*.snapshot*"))
    assert last_sequences(log.producers) == {1: 0}


def test_a_later_one_replaces_it(tmp_path: Path) -> None:
    log = rolled(tmp_path)
    early = log.take_unflushed()
    log.roll()
    for flush in [*log.take_unflushed(), *early]:
        flush()
    assert [each.name for each in tmp_path.glob("*.snapshot*")] == [snapshot_path(tmp_path, 4).name]


def test_a_log_that_is_deleted_meanwhile_is_no_fault(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = rolled(directory)
    (write, *_) = log.take_unflushed()
    log.abandon()
    directory.rename(tmp_path / "t-0.deleted")
    write()


def test_expiry_goes_in_steps_between_which_producers_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.storage.producers._EXPIRED_AT_ONCE", 10)
    producers = Producers()
    for producer_id in range(35):
        producers.apply(header(0)._replace(producer_id=producer_id), producer_id, timestamp=1)
    steps = producers.expiring(before_ms=1)
    next(steps)
    assert len(producers) == 25
    producers.apply(header(1)._replace(producer_id=20), 40, timestamp=2)
    producers.apply(header(0)._replace(producer_id=100), 41, timestamp=1)
    assert sum(1 for _ in steps) == 3
    assert [each for each, _ in producers] == [20, 100], "the last one came too late for this round"
