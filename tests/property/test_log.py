"""The log against a list: appends, reads, retries, restarts and power cuts, in any order (ST-8).

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
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.storage.log import Log
from barnabas.storage.recovery import Start
from barnabas.storage.segment import Segment
from tests.unit.storage.disk import NAME, QuickFiles, open_at

CONFIGS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([600, 1000, 100_000]),
        "segment_ms": st.sampled_from([50, 10**9]),
        "index_interval_bytes": st.sampled_from([0, 150, 4096]),
        "segment_index_bytes": st.sampled_from([60, 1024]),
    }
).map(lambda fields: LogConfig(**fields))  # type: ignore[arg-type]
PRODUCERS = 3


class Batch(NamedTuple):
    """What the model knows of an appended batch."""

    base_offset: int
    values: tuple[bytes, ...]
    times: tuple[int, ...]
    producer_id: int
    sequence: int
    epoch: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


class LogMachine(RuleBasedStateMachine):
    """`batches` is the log as a list."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-log-"))
        self.batches: list[Batch] = []
        self.epoch = 0
        self.serial = 0

    @initialize(config=CONFIGS)
    def begin(self, config: LogConfig) -> None:
        self.config = config
        self.log: Log = open_at(self.directory, config)
        self.log.assign_leader_epoch(0)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
        shutil.rmtree(self.directory)

    @property
    def end(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0

    def sequence_of(self, producer_id: int) -> int:
        for each in reversed(self.batches):
            if each.producer_id == producer_id:
                return each.sequence + len(each.values)
        return 0

    # --- what clients do -------------------------------------------------------------------------

    def send(self, each: Batch, codec: int = 0) -> tuple[int, bool]:
        has_producer = each.producer_id >= 0
        producer = (each.producer_id, 0, each.sequence) if has_producer else (-1, -1, -1)
        builder = BatchBuilder(codec, *producer)
        for value, time in zip(each.values, each.times, strict=True):
            builder.append(time, None, value)
        result = self.log.append(memoryview(bytearray(builder.build())), self.epoch, 10**6)
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
        self.batches.append(new)

    @rule(producer_id=st.integers(0, PRODUCERS - 1))
    def retry(self, producer_id: int) -> None:
        """The last batch: the one that is known after a restart, too."""
        mine = [each for each in self.batches if each.producer_id == producer_id]
        if mine:
            assert self.send(mine[-1]) == (mine[-1].base_offset, True)

    @rule(producer_id=st.integers(0, PRODUCERS - 1), gap=st.integers(1, 5))
    def skip_a_sequence(self, producer_id: int, gap: int) -> None:
        sequence = self.sequence_of(producer_id)
        if sequence:
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
        ends = [0, *(each.end_offset for each in self.batches)]
        end = data.draw(st.sampled_from(ends))
        offset = data.draw(st.integers(0, self.end))
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
        for offset in (-beyond, self.end + beyond):
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
        assert self.log.offset_for_timestamp(time, self.end) == wanted

    @rule()
    def search_newest(self) -> None:
        newest = max((time for each in self.batches for time in each.times), default=None)
        found = self.log.max_timestamp_offset()
        assert (found and found.timestamp) == newest

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
        self.log = open_at(self.directory, self.config)

    @rule()
    def kill(self) -> None:
        """Nothing that was written is lost."""
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
        cut = data.draw(st.integers(self._durable_bytes(hit, point), hit.size_bytes))
        with hit.paths()[0].open("r+b") as file:
            file.truncate(cut)
            file.seek(cut)
            file.write(data.draw(st.sampled_from([b"", bytes(40), b"\xff" * 70])))
        self.batches = self._whole(hit)
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
        start = Start(is_clean=False, recovery_point=recovery_point)
        self.log = open_at(self.directory, self.config, start)
        # The epoch of a leader that wrote nothing is assigned anew, as after any restart.
        self.log.assign_leader_epoch(self.epoch)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (0, self.end)
        found = [
            (record.offset, record.timestamp, record.value)
            for record in iterate_records(self.fetch(0, 1 << 30, self.end))
        ]
        assert found == [
            (each.base_offset + i, time, value)
            for each in self.batches
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
TestLog.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_the_disk_of_these_tests_forgets_nothing(tmp_path: Path) -> None:
    """Whoever reads the above should know that only `cut_power` loses bytes."""
    files = QuickFiles()
    files.write(tmp_path / "x", b"1", sync=True)
    assert files.read(tmp_path / "x") == b"1"
