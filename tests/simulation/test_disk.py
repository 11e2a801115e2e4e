"""What a machine keeps: by kill -9 everything, without power what was flushed."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.types import TopicPartition
from simulation.disk import Disk, Entry, SimLog

NAME = TopicPartition("t", 0)


def _log(*epochs: int) -> SimLog:
    log = SimLog(NAME, bytes(16), Disk())
    for number, epoch in enumerate(epochs):
        log.append(Entry(-1, -1, 7, number, 100 + number), epoch)
    return log


def test_a_log_counts_its_offsets_and_knows_its_epochs() -> None:
    log = _log(0, 0, 2, 2, 5)
    assert log.log_end_offset == 5
    assert log.latest_epoch == 5
    assert [log.epoch_end_offset(epoch) for epoch in (0, 1, 2, 5, 6)] == [
        (0, 2),
        (0, 2),
        (2, 4),
        (5, 5),
        (-1, -1),
    ]


def test_cutting_forgets_records_epochs_and_producers() -> None:
    log = _log(0, 0, 2, 2, 5)
    log.flushed = 4
    assert [entry.offset for entry in log.truncate(2)] == [2, 3, 4]
    assert (log.log_end_offset, log.latest_epoch, log.flushed) == (2, 0, 2)
    known = log.producers.get(7)
    assert known is not None
    assert [batch.base_sequence for batch in known.batches] == [0, 1]
    log.append_as_follower([Entry(2, 6, -1, 0, 1)])
    assert log.epoch_end_offset(0) == (0, 2)


def test_a_killed_process_has_not_written_what_was_staged() -> None:
    log = _log(0, 0)
    log.write_staged()
    log.append(Entry(-1, -1, 7, 2, 102), 0)
    log.drop_staged()
    assert log.log_end_offset == 2
    log.append(Entry(-1, -1, 7, 2, 102), 0)
    assert log.entries_in(2, 3, 1)[0].value == 102  # a follower has read it from the file
    log.drop_staged()
    assert log.log_end_offset == 3


def test_a_batch_that_is_sent_again_is_in_the_log_once() -> None:
    log = _log(0, 0)
    again = log.append(Entry(-1, -1, 7, 1, 101), 0)
    assert (again.base_offset, again.is_duplicate, log.log_end_offset) == (1, True, 2)


def test_a_full_disk_takes_nothing() -> None:
    disk = Disk()
    log = SimLog(NAME, bytes(16), disk)
    disk.is_full = True
    with pytest.raises(OSError, match="no space"):
        log.append(Entry(-1, -1, 7, 0, 1), 0)
    with pytest.raises(OSError, match="no space"):
        log.append_as_follower([Entry(0, 0, 7, 0, 1)])
    assert log.log_end_offset == 0


def test_power_takes_no_more_than_what_was_not_flushed() -> None:
    kept = set()
    for seed in range(50):
        log = _log(0, 0, 0, 1, 1)
        log.flushed = 3
        gone = log.lose_power(Random(seed))
        assert gone == 5 - log.log_end_offset
        assert log.has_lost == (gone > 0)
        kept.add(log.log_end_offset)
    assert kept == {3, 4, 5}


def test_what_is_deleted_moves_the_start_and_not_the_end() -> None:
    log = _log(0, 0, 2, 2)
    log.raise_log_start(3)
    assert (log.base, log.log_start_offset, log.log_end_offset) == (3, 3, 4)
    assert log.entries_in(3, 4, 10)[0].offset == 3
    log.raise_log_start(4)
    assert (log.log_end_offset, log.latest_epoch) == (4, 2)
    log.start_at(9)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (9, 9, -1)


def test_power_leaves_the_epoch_of_deleted_records() -> None:
    """As recovery does: else a log that missed them would count as the longer one."""
    for seed in range(10):
        log = _log(0, 0, 2, 2, 5)
        log.raise_log_start(5)
        log.flushed = 3
        assert log.lose_power(Random(seed)) == 0
        assert (log.log_end_offset, log.epochs.entries) == (5, ((5, 5),))
    log = _log(0)
    log.lose_power(Random(0))
    assert log.log_end_offset == len(log.epochs.entries), "an empty log knows of no epoch"


def test_a_disk_says_that_it_may_have_lost() -> None:
    disk = Disk()
    disk.logs[NAME] = _log(0, 0)
    assert not disk.may_have_lost
    disk.lose_power(Random(1))
    assert disk.may_have_lost
