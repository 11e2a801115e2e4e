"""No file descriptor left, at each call that needs one: what was asked for is refused, the log is
as it was or one step further, and goes on when there are some again (ST-10)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.records.batch import iterate_batches
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import iterate_records
from barnabas.storage.log import Log
from tests.kit.storage.disk import CRASHED, T0, batch, open_at, read
from tests.kit.storage.scarce import ScarceFiles, at_each_call

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_bytes=500)
TRIES = 3


def again(action: Callable[[], object]) -> None:
    """Until it works, which is the second time at the latest."""
    for _ in range(TRIES):
        try:
            action()
            return
        except OSError as error:
            assert error.errno == errno.EMFILE
    raise AssertionError("refused again and again")


def append(log: Log, size: int, producer: tuple[int, int, int], epoch: int) -> None:
    def once() -> None:
        log.append(memoryview(batch(1, size, producer=producer)), epoch, T0)
        log.write_staged()

    again(once)


def check(log: Log, directory: Path) -> None:
    """Nothing is missing, nothing is there twice, and a crash finds the same."""
    assert not log.health.is_failed
    begin, end = log.log_start_offset, log.log_end_offset
    content, epochs = read(log, begin), log.epochs.entries
    offsets = [
        offset
        for _, header in iterate_batches(content)
        for offset in range(header.base_offset, header.last_offset + 1)
    ]
    assert offsets == list(range(offsets[0], end))
    assert offsets[0] <= begin
    log.release()
    found = open_at(directory, SMALL, CRASHED)
    assert (found.log_start_offset, found.log_end_offset) <= (begin, end)
    assert found.log_end_offset == end
    assert read(found, begin) == content
    assert found.epochs.entries[-1] == epochs[-1]
    found.release()


def live(log: Log) -> None:
    """Idle times, new epochs, rolls, a transaction that is aborted, retention, syncs."""
    for number in range(8):
        append(log, 100 + 30 * (number % 3), (7, 0, number), epoch=number // 3)
        if number % 2:
            log.rest()
            log.rest()  # idle: it gives its descriptors back
    marker = build_marker(Marker(0, T0, ABORT, 0), 9, 0)
    transactional = batch(1, producer=(9, 0, 0), is_transactional=True)
    again(lambda: log.append(memoryview(transactional[:]), 3, T0))
    again(lambda: log.append_control(memoryview(bytearray(marker)), 3, T0))
    again(log.write_staged)
    for flush in log.take_unflushed():
        again(flush)
    again(lambda: log.take_flush()())
    again(lambda: log.raise_log_start(2))
    again(lambda: log.enforce_retention(T0, log.log_end_offset, T0))
    append(log, 300, (7, 0, 8), epoch=4)
    again(log.flush)


@pytest.mark.thorough
def test_st_10_a_leaders_log_goes_on(tmp_path: Path) -> None:
    for number, files in enumerate(at_each_call()):
        directory = tmp_path / str(number)
        directory.mkdir()
        refused_call, files.refused_call = files.refused_call, -1
        log = open_at(directory, SMALL, files=files)
        files.calls, files.refused_call = 0, refused_call
        live(log)
        files.refused_call = -1
        assert log.log_start_offset > 2, "retention has removed something"
        check(log, directory)


@pytest.mark.thorough
def test_st_10_a_followers_log_goes_on(tmp_path: Path) -> None:
    """It asks for what comes behind its end, wherever it was broken off."""
    (tmp_path / "leader").mkdir()
    leader = open_at(tmp_path / "leader", LogConfig())
    for number in range(12):
        leader.append(memoryview(batch(2, 90, producer=(7, 0, 2 * number))), number // 4, T0)
        leader.write_staged()
    content = read(leader, 0)
    for number, files in enumerate(at_each_call()):
        directory = tmp_path / str(number)
        directory.mkdir()
        refused_call, files.refused_call = files.refused_call, -1
        log = open_at(directory, SMALL, files=files)
        files.calls, files.refused_call = 0, refused_call

        def copy(log: Log = log) -> None:
            received = bytearray(read(leader, log.log_end_offset))
            try:
                log.append_as_follower(memoryview(received), T0)
                log.write_staged()
            finally:
                received[:] = bytes(len(received))  # the buffer is used for the next answer

        again(copy)
        files.refused_call = -1
        assert read(log, 0) == content
        check(log, directory)
    leader.release()


@pytest.mark.parametrize("size", [40, 300])
def test_st_10_a_log_that_was_cut_goes_on(tmp_path: Path, size: int) -> None:
    """What a cut leaves for the next write: the disk, and who the producers are by now."""
    for number, files in enumerate(at_each_call()):
        directory = tmp_path / str(number)
        directory.mkdir()
        refused_call, files.refused_call = files.refused_call, -1
        log = open_at(directory, SMALL, files=files)
        for sequence in range(8):
            append(log, size, (7, 0, sequence), epoch=0)
        log.truncate(5, settles=False)
        files.calls, files.refused_call = 0, refused_call
        again(log.settle)
        files.refused_call = -1
        append(log, size, (7, 0, 5), epoch=1)  # out of order, had the producer been forgotten
        assert log.log_end_offset == 6
        check(log, directory)


def test_st_10_what_was_refused_can_be_refused_for_long(tmp_path: Path) -> None:
    files = ScarceFiles()
    log = open_at(tmp_path, SMALL, files=files)
    append(log, 100, (7, 0, 0), epoch=0)
    log.rest()
    log.rest()
    files.has_none = True
    for _ in range(5):
        with pytest.raises(OSError, match="Too many open files"):
            log.append(memoryview(batch(1, producer=(7, 0, 1))), 0, T0)
        with pytest.raises(OSError, match="Too many open files"):
            log.roll()
        with pytest.raises(OSError, match="Too many open files"):
            log.flush()
    files.has_none = False
    append(log, 100, (7, 0, 1), epoch=0)
    assert [each.offset for each in iterate_records(read(log, 0))] == [0, 1]
    check(log, tmp_path)
