"""A follower's log against its leader's: whatever happens to either, it ends up with its bytes.

The follower copies by reads of any size, is cut back, starts over, rolls, stops and starts; the
leader's log is compacted before, or loses its beginning. RE-3, RE-12, CO-6.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from barnabas.config import LogConfig
from barnabas.records.batch import iterate_batches
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.storage.gaps import begin_without_gaps
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from tests.kit.effort import examples
from tests.kit.storage.disk import CLEAN, T0, QuickFiles, append, open_at, read
from tests.kit.storage.passes import clean, keyed

CONFIG = LogConfig(
    segment_bytes=500, index_interval_bytes=100, cleanup_policy="compact", segment_index_bytes=1024
)
TRANSACTIONAL = 2  # producers from this id on
KEYS = st.integers(0, 3).map(lambda i: b"key %d" % i)


class Send(NamedTuple):
    producer_id: int
    keys: list[bytes]


class End(NamedTuple):
    producer_id: int
    kind: int


class Roll(NamedTuple):
    pass


class NewEpoch(NamedTuple):
    pass


class Copy(NamedTuple):
    max_bytes: int


class Cut(NamedTuple):
    """Keep no more than a part of what was copied, in hundredths."""

    part: int


class Restart(NamedTuple):
    is_clean: bool


class StartOver(NamedTuple):
    pass


WRITES = st.lists(
    st.one_of(
        st.builds(Send, st.integers(-1, TRANSACTIONAL + 1), st.lists(KEYS, min_size=1, max_size=3)),
        st.builds(End, st.sampled_from([2, 3]), st.sampled_from([ABORT, COMMIT])),
        st.builds(Roll),
        st.builds(NewEpoch),
    ),
    min_size=3,
    max_size=40,
)
COPIES = st.lists(
    st.one_of(
        st.builds(Copy, st.integers(1, 1500)),
        st.builds(Copy, st.integers(1, 1500)),
        st.builds(Cut, st.integers(0, 100)),
        st.builds(Roll),
        st.builds(Restart, st.booleans()),
        st.builds(StartOver),
    ),
    max_size=15,
).map(lambda steps: [Copy(2000), *steps])


def _written(directory: Path, writes: list[Send | End | Roll | NewEpoch]) -> Log:
    """The leader's log."""
    log = open_at(directory, CONFIG)
    sequences: dict[int, int] = {}
    epoch = 0
    for i, each in enumerate(writes):
        match each:
            case Send(producer_id, keys):
                sequence = sequences.get(producer_id, 0)
                sequences[producer_id] = sequence + len(keys)
                sent = keyed(
                    *((key, b"%d" % i + bytes(40)) for key in keys),
                    timestamp=T0 + i,
                    producer=(-1, -1, -1) if producer_id < 0 else (producer_id, 0, sequence),
                    is_transactional=producer_id >= TRANSACTIONAL,
                )
                append(log, sent, epoch=epoch)
            case End(producer_id, kind):
                marker = bytearray(build_marker(Marker(0, T0 + i, kind, 0), producer_id, 0))
                log.append_control(memoryview(marker), epoch, T0 + i)
                log.write_staged()
            case Roll():
                if log.segments[-1].size_bytes:
                    log.roll()
            case NewEpoch():
                epoch += 1
                log.assign_leader_epoch(epoch)
    return log


class Follower:
    """A log that is filled by reads of another."""

    def __init__(self, directory: Path, leader: Log) -> None:
        self.directory = directory
        self.leader = leader
        begin_without_gaps(QuickFiles(), directory)
        self.log = open_at(directory, CONFIG)
        self.log.start_at(leader.log_start_offset)

    def do(self, step: Copy | Cut | Roll | Restart | StartOver) -> None:
        log = self.log
        match step:
            case Copy(max_bytes):
                self.copy(max_bytes)
            case Cut(part):
                start, end = log.log_start_offset, log.log_end_offset
                wanted = start + (end - start) * part // 100
                log.truncate(wanted)
                if log.log_end_offset != wanted:
                    event("cut within a batch")
            case Roll():
                if log.segments[-1].size_bytes:
                    log.roll()
            case Restart(is_clean):
                start, before = log.log_start_offset, self.bytes()
                if is_clean:
                    log.close()
                else:
                    log.release()
                begin = Start(is_clean=is_clean, log_start_offset=start)
                self.log = open_at(self.directory, CONFIG, begin)
                assert self.bytes() == before
            case StartOver():
                log.start_at(self.leader.log_start_offset)

    def copy(self, max_bytes: int) -> int:
        raw = read(self.leader, self.log.log_end_offset, max_bytes)
        count = self.log.append_as_follower(memoryview(raw), T0)
        self.log.write_staged()
        return count

    def bytes(self) -> bytes:
        return read(self.log, self.log.log_start_offset)


def _state(log: Log) -> dict[int, tuple[int, int, int, int]]:
    """Of its producers, what decides about the next batch."""
    return {
        producer_id: (
            each.epoch,
            each.last_sequence,
            each.coordinator_epoch,
            each.transaction_offset,
        )
        for producer_id, each in log.producers
    }


@pytest.mark.thorough
@given(WRITES, COPIES, st.booleans(), st.integers(0, 100))
@settings(max_examples=examples(200), deadline=None)
def test_re_3_a_follower_ends_up_with_the_leaders_bytes(
    writes: list[Send | End | Roll | NewEpoch],
    steps: list[Copy | Cut | Roll | Restart | StartOver],
    is_compacted: bool,
    gone: int,
) -> None:
    root = Path(tempfile.mkdtemp(prefix="barnabas-copies-"))
    (root / "leader").mkdir()
    (root / "follower").mkdir()
    leader = _written(root / "leader", writes)
    if is_compacted:
        before = leader.size_bytes
        clean(leader)
        event(f"compacted: {leader.size_bytes < before}")
    elif gone > 50:
        leader.raise_log_start(leader.log_end_offset * (gone - 50) // 100)
    follower = Follower(root / "follower", leader)
    try:
        for step in steps:
            follower.do(step)
        while follower.copy(700):
            pass
        _compare(leader, follower, is_whole=not is_compacted and gone <= 50)
    finally:
        leader.release()
        follower.log.release()
        shutil.rmtree(root)


def _compare(leader: Log, follower: Follower, *, is_whole: bool) -> None:
    log = follower.log
    start, end_offset = leader.log_start_offset, leader.log_end_offset
    raw = read(leader, start)
    assert follower.bytes() == raw
    last = max((header.last_offset + 1 for _, header in iterate_batches(raw)), default=start)
    assert (log.log_start_offset, log.log_end_offset) == (start, last)
    for _, header in iterate_batches(raw):
        offset = max(start, header.base_offset)
        assert log.epochs.epoch_at(offset) == header.partition_leader_epoch
    if is_whole:
        assert _state(log) == _state(leader)
        assert log.last_stable_offset(end_offset) == leader.last_stable_offset(end_offset)
        assert log.aborted_transactions(start, end_offset) == leader.aborted_transactions(
            start, end_offset
        )
    log.close()
    again = open_at(follower.directory, CONFIG, CLEAN._replace(log_start_offset=start))
    assert read(again, start) == raw
    assert _state(again) == _state(log)
    again.release()
