"""The log against a list: appends, transactions, reads, retries, truncation, retention, restarts
and power cuts, in any order (ST-6, ST-8, CO-6).

A power cut is modelled harder than `kill -9`: of what was not flushed, any part may be missing at
the end, what comes behind the cut may be noise, and indexes and snapshots above the recovery point
may be anything. What lies below the recovery point has to be there.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from barnabas.config import LogConfig
from barnabas.errors import CorruptData, OffsetOutOfRange, OutOfOrderSequenceNumber
from barnabas.records.batch import iterate_batches, verify_crc
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.storage.gaps import begin_without_gaps
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment
from tests.kit.effort import examples
from tests.kit.storage.disk import NAME, QuickFiles, make_transactional, open_at
from tests.kit.storage.times import max_timestamp_offset, offset_for_timestamp

CONFIGS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([600, 1000, 100_000]),
        "segment_ms": st.sampled_from([50, 10**9]),
        "index_interval_bytes": st.sampled_from([0, 150, 4096]),
        "segment_index_bytes": st.sampled_from([60, 1024]),
    }
).map(lambda fields: LogConfig(**fields))  # type: ignore[arg-type]
PRODUCERS = 3
TRANSACTIONAL = (100, 101, 102)  # ids of producers that write in transactions alone
COORDINATED = 102  # whose offsets the coordinator of a group writes, which counts no sequence


class Batch(NamedTuple):
    """What the model knows of an appended batch."""

    base_offset: int
    values: tuple[bytes, ...]
    times: tuple[int, ...]
    producer_id: int
    sequence: int
    epoch: int
    marker: int | None = None
    """ABORT or COMMIT: it has one record, which consumers do not get."""

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


class LogMachine(RuleBasedStateMachine):
    """`batches` is the log as a list."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-log-"))
        self.batches: list[Batch] = []
        self.gone: list[Batch] = []  # below the log start
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.serial = 0

    @initialize(config=CONFIGS)
    def begin(self, config: LogConfig) -> None:
        self.config = config
        begin_without_gaps(QuickFiles(), self.directory)
        self.log: Log = open_at(self.directory, config)
        self.log.assign_leader_epoch(0)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
        shutil.rmtree(self.directory)

    def sequence_of(self, producer_id: int) -> int:
        for each in reversed([*self.gone, *self.batches]):
            if each.producer_id == producer_id and each.marker is None:
                return each.sequence + len(each.values)
        return 0

    def took(self, new: Batch) -> None:
        self.batches.append(new)
        self.end = new.end_offset

    def is_known(self, each: Batch) -> bool:
        """Whether a producer's batch is sure to be remembered: retention may have taken it."""
        return each.base_offset >= self.start

    # --- what clients do -------------------------------------------------------------------------

    def send(self, each: Batch, codec: int = 0) -> tuple[int, bool]:
        has_producer = each.producer_id >= 0
        is_coordinated = each.producer_id == COORDINATED
        sequence = -1 if is_coordinated else each.sequence
        producer = (each.producer_id, 0, sequence) if has_producer else (-1, -1, -1)
        builder = BatchBuilder(codec, *producer)
        for value, time in zip(each.values, each.times, strict=True):
            builder.append(time, None, value)
        records = bytearray(builder.build())
        if each.producer_id in TRANSACTIONAL:
            make_transactional(records)
        append = self.log.append_own if is_coordinated else self.log.append
        result = append(memoryview(records), self.epoch, 10**6)
        return result.base_offset, result.is_duplicate

    @rule(
        times=st.lists(st.integers(0, 300), min_size=1, max_size=6),
        size=st.integers(0, 60),
        producer_id=st.integers(-1, PRODUCERS - 1),
        codec=st.sampled_from([0, 0, 0, 3]),
    )
    def append(self, times: list[int], size: int, producer_id: int, codec: int) -> None:
        self.serial += 1
        values = tuple(b"%d.%d" % (self.serial, i) + bytes(size) for i in range(len(times)))
        sequence = self.sequence_of(producer_id)
        new = Batch(self.end, values, tuple(times), producer_id, sequence, self.epoch)
        assert self.send(new, codec) == (new.base_offset, False)
        self.took(new)

    @rule(producer_id=st.integers(-1, PRODUCERS - 1), count=st.integers(5, 20))
    def append_several(self, producer_id: int, count: int) -> None:
        """Some segments, of which nothing is flushed."""
        for _ in range(count):
            self.append([self.serial % 300], 60, producer_id, 0)

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), count=st.integers(1, 3))
    def send_in_a_transaction(self, producer_id: int, count: int) -> None:
        self.append([self.serial % 300] * count, 20, producer_id, 0)

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), kind=st.sampled_from([ABORT, COMMIT]))
    def end_transaction(self, producer_id: int, kind: int) -> None:
        new = Batch(self.end, (b"",), (7,), producer_id, -1, self.epoch, kind)
        marker = bytearray(build_marker(Marker(0, 7, kind, 0), producer_id, 0))
        result = self.log.append_control(memoryview(marker), self.epoch, 10**6)
        assert result.base_offset == new.base_offset
        self.took(new)

    @rule(producer_id=st.integers(0, PRODUCERS - 1))
    def retry(self, producer_id: int) -> None:
        """The last batch: the one that is known after a restart, too."""
        mine = [each for each in self.batches if each.producer_id == producer_id]
        if mine and self.is_known(mine[-1]):
            assert self.send(mine[-1]) == (mine[-1].base_offset, True)

    @rule(producer_id=st.integers(0, PRODUCERS - 1), gap=st.integers(1, 5))
    def skip_a_sequence(self, producer_id: int, gap: int) -> None:
        sequence = self.sequence_of(producer_id)
        if any(each.producer_id == producer_id and self.is_known(each) for each in self.batches):
            with pytest.raises(OutOfOrderSequenceNumber):
                self.send(Batch(0, (b"gap",), (0,), producer_id, sequence + gap, 0))

    @rule()
    def change_leader(self) -> None:
        self.epoch += 1
        self.log.assign_leader_epoch(self.epoch)

    # --- what readers do -------------------------------------------------------------------------

    def fetch(self, offset: int, max_bytes: int, end: int) -> bytes:
        slices = self.log.read(offset, max_bytes, end)
        raw = b"".join(each.read() for each in slices)
        for each in slices:
            each.release()
        return raw

    @rule(data=st.data(), max_bytes=st.integers(0, 1500))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        ends = [self.start, *(each.end_offset for each in self.batches)]
        end = data.draw(st.sampled_from(ends))
        offset = data.draw(st.integers(self.start, self.end))
        raw = self.fetch(offset, max_bytes, end)
        found = [header for _, header in iterate_batches(raw)]
        wanted = [each for each in self.batches if offset < each.end_offset <= end]
        if offset >= end:
            assert raw == b""
            return
        assert found[0].base_offset == wanted[0].base_offset
        assert [header.base_offset for header in found] == [
            each.base_offset for each in wanted[: len(found)]
        ]
        assert sum(header.size_bytes for header in found) == len(raw)
        assert len(raw) <= max_bytes or len(found) == 1
        if len(found) < len(wanted):
            # One more would have been too many.
            more = self.fetch(wanted[len(found)].base_offset, 1, end)
            assert len(raw) + len(more) > max_bytes

    @rule(beyond=st.integers(1, 1000))
    def read_outside(self, beyond: int) -> None:
        for offset in (self.start - beyond, self.end + beyond):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, 100, self.end)

    @rule(time=st.integers(0, 310))
    def search(self, time: int) -> None:
        wanted = next(
            (
                (each.base_offset + i, found, each.epoch)
                for each in self.batches
                for i, found in enumerate(each.times)
                if found >= time
            ),
            None,
        )
        assert offset_for_timestamp(self.log, time, self.end) == wanted

    @rule()
    def search_newest(self) -> None:
        newest = max((time for each in self.batches for time in each.times), default=None)
        found = max_timestamp_offset(self.log)
        # Records below the log start may lie in the first segment still.
        if newest is not None:
            assert found is not None and found.timestamp >= newest
            assert found.timestamp == newest or found.offset < self.start

    @rule(data=st.data())
    def read_committed(self, data: st.DataObject) -> None:
        """What is left when the producers that are named are skipped up to their markers."""
        stable, wanted = self.committed()
        if stable < self.start:
            return  # whether such a transaction is remembered depends on the snapshots
        assert self.log.last_stable_offset(self.end) == stable
        offset = data.draw(st.integers(self.start, self.end))
        batches = [each for each in self.batches if offset < each.end_offset <= stable]
        aborted = sorted(self.log.aborted_transactions(offset, stable), key=lambda each: each[1])
        skipped: set[int] = set()
        found = []
        for each in batches:
            while aborted and aborted[0].first_offset < each.end_offset:
                skipped.add(aborted.pop(0).producer_id)
            if each.marker == ABORT:
                skipped.discard(each.producer_id)
            elif each.marker is None and each.producer_id not in skipped:
                found.append(each.base_offset)
        assert found == [each for each in wanted if any(each == b.base_offset for b in batches)]

    def committed(self) -> tuple[int, list[int]]:
        """The last stable offset, and the base offsets of the batches that count below it."""
        opened: dict[int, list[int]] = {}
        counted: list[int] = []
        for each in [*self.gone, *self.batches]:
            if each.marker is not None:
                mine = opened.pop(each.producer_id, [])
                counted += mine if each.marker == COMMIT else []
            elif each.producer_id in TRANSACTIONAL:
                opened.setdefault(each.producer_id, []).append(each.base_offset)
            else:
                counted.append(each.base_offset)
        stable = min((mine[0] for mine in opened.values()), default=self.end)
        return stable, sorted(offset for offset in counted if offset < stable)

    # --- what makes it shorter -------------------------------------------------------------------

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """At the end of a batch, as followers do it; then there is a new leader."""
        ends = [each.end_offset for each in self.batches]
        self.end = data.draw(st.sampled_from([self.start, *ends]))
        self.log.truncate(self.end)
        self.batches = [each for each in self.batches if each.end_offset <= self.end]
        self.change_leader()

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        stable = max(self.start, self.committed()[0])
        bases = [each.base_offset for each in self.batches if each.base_offset <= stable]
        self.log.raise_log_start(data.draw(st.sampled_from([*bases, stable])))
        self.log.enforce_retention(0, stable, 0)
        self.begins_at(self.log.log_start_offset)

    @rule(retention_bytes=st.integers(0, 3000))
    def retain(self, retention_bytes: int) -> None:
        stable = max(self.start, self.committed()[0])
        before = self.log.size_bytes
        is_whole = self.start == self.log.segments[0].base_offset
        self.log.config = self.config._replace(retention_bytes=retention_bytes, retention_ms=-1)
        removed = self.log.enforce_retention(0, stable, 0).segments
        self.log.config = self.config
        assert (removed == 0) == (self.log.size_bytes == before)
        # (What lies below the log start goes in any case.)
        assert self.log.size_bytes >= min(before, retention_bytes) or not is_whole
        self.begins_at(self.log.log_start_offset)
        excess_bytes = self.log.size_bytes - retention_bytes
        if excess_bytes > 0:
            # The first one is more than is too much, or it is still needed.
            first, *others = self.log.segments
            end = others[0].base_offset if others else self.end
            assert excess_bytes < first.size_bytes or end > stable

    def begins_at(self, offset: int) -> None:
        self.start = offset
        self.gone += [each for each in self.batches if each.end_offset <= offset]
        self.batches = [each for each in self.batches if each.end_offset > offset]

    @rule(now_ms=st.integers(0, 10**6))
    def remove_discarded(self, now_ms: int) -> None:
        self.log.remove_discarded(now_ms)

    # --- what happens to machines ----------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def flush_rolled(self) -> None:
        for flush in self.log.take_unflushed():
            flush()
        assert self.log.recovery_point >= self.log.segments[-1].base_offset

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = open_at(self.directory, self.config, Start(True, log_start_offset=self.start))
        self.log.assign_leader_epoch(self.epoch)

    @rule(staged=st.integers(0, 4))
    def kill(self, staged: int) -> None:
        """Nothing that was written is lost, and of what was only staged nothing is there."""
        for i in range(staged):
            self.send(Batch(self.end + i, (b"staged",), (5,), -1, 0, self.epoch))
        # A roll has written what came before it.
        for _ in range(staged - len(self.log.segments[-1].staged)):
            self.took(Batch(self.end, (b"staged",), (5,), -1, 0, self.epoch))
        self.log.release()
        self._recover(self.log.recovery_point)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def cut_power(self, data: st.DataObject) -> None:
        point = self.log.recovery_point
        self.log.release()
        segments = self.log.segments
        ends = [*(each.base_offset for each in segments[1:]), self.end]
        unsafe = [each for each, end in zip(segments, ends, strict=True) if end > point]
        hit = data.draw(st.sampled_from(unsafe or segments[-1:]))
        for each in unsafe:
            for path in each.paths()[1:]:
                path.write_bytes(data.draw(st.binary(max_size=30)))
            if each.base_offset > hit.base_offset:
                each.paths()[0].write_bytes(data.draw(st.binary(max_size=80)))
        for path in self.directory.glob("*.snapshot"):
            if int(path.stem) > point and data.draw(st.booleans()):
                path.write_bytes(data.draw(st.binary(max_size=60)))
        durable = self._durable_bytes(hit, point)
        edges = [found.position for found in hit.headers(0) if found.position >= durable]
        cut = data.draw(
            st.sampled_from([*edges, hit.size_bytes]) | st.integers(durable, hit.size_bytes)
        )
        with hit.paths()[0].open("r+b") as file:
            file.truncate(cut)
            file.seek(cut)
            file.write(data.draw(st.sampled_from([b"", bytes(40), b"\xff" * 70])))
        self.batches = self._whole(hit)
        self.end = self.batches[-1].end_offset if self.batches else self.start
        self._recover(point)

    def _durable_bytes(self, segment: Segment, point: int) -> int:
        """Where in the segment that was hit the durable part ends."""
        for found in segment.headers(0):
            if found.header.last_offset >= point:
                return found.position
        return segment.size_bytes

    def _whole(self, segment: Segment) -> list[Batch]:
        """The batches that are left. (A few zeros may happen to be what was cut off.)"""
        raw = segment.paths()[0].read_bytes()
        end = segment.base_offset
        with suppress(CorruptData):
            for position, header in iterate_batches(raw):
                if header.base_offset != end or not verify_crc(raw, position, header):
                    break
                end = header.last_offset + 1
        return [each for each in self.batches if each.end_offset <= end]

    def _recover(self, recovery_point: int) -> None:
        start = Start(is_clean=False, recovery_point=recovery_point, log_start_offset=self.start)
        self.log = open_at(self.directory, self.config, start)
        # The epoch of a leader that wrote nothing is assigned again, as after any restart.
        self.log.assign_leader_epoch(self.epoch)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        found = [
            (record.offset, record.timestamp, record.value)
            for record in iterate_records(self.fetch(self.start, 1 << 30, self.end))
        ]
        assert found == [
            (each.base_offset + i, time, value)
            for each in self.batches
            if each.marker is None
            for i, (value, time) in enumerate(zip(each.values, each.times, strict=True))
        ]
        bases = [segment.base_offset for segment in self.log.segments]
        assert bases == sorted(set(bases))
        assert self.log.topic_partition == NAME

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for each in self.batches:
            assert self.log.epochs.epoch_at(each.base_offset) == each.epoch


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def test_the_disk_of_these_tests_forgets_nothing(tmp_path: Path) -> None:
    """Readers of the above should know that only `cut_power` loses bytes."""
    files = QuickFiles()
    files.write(tmp_path / "x", b"1", sync=True)
    assert files.read(tmp_path / "x") == b"1"
