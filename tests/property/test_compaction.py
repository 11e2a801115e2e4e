"""Compaction against a model: what is left of a log is the newest record of each key (ST-7).

Batches of all kinds, transactions, several codecs; passes at any time, with a map of any size, that
may die at any change on the disk; restarts after which everything is known from the log alone.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.config import LogConfig
from barnabas.records.control_records import ABORT, COMMIT
from barnabas.records.record import Record, records_of
from barnabas.storage.cleaner import Limits
from barnabas.storage.compaction.key_map import BYTES_PER_KEY
from barnabas.storage.gaps import begin_without_gaps
from barnabas.storage.log import Log
from barnabas.storage.snapshot import SUFFIX
from tests.kit.effort import examples
from tests.kit.storage.disk import CRASHED, append, open_at
from tests.kit.storage.dying_files import DyingFiles, Killed
from tests.kit.storage.passes import clean, end, keyed

KEYS = [b"a", b"b", b"c", b"a key of more than sixteen bytes"]
IDEMPOTENT, TRANSACTIONAL = (1, 2), (11, 12)
RETENTION_MS = 100

Pairs = list[tuple[bytes, bytes | None]]


class Entry(NamedTuple):
    """What the model knows of a record that was appended."""

    record: Record
    producer_id: int


class Batch(NamedTuple):
    """What a client sends."""

    keys: list[tuple[bytes, bool]]
    """Each with whether it has a value."""
    producer_id: int
    codec: int
    step_ms: int


BATCHES = st.builds(
    Batch,
    st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=5),
    st.sampled_from([-1, -1, -1, *IDEMPOTENT, *IDEMPOTENT, TRANSACTIONAL[0]]),
    st.sampled_from([0, 0, 1, 3]),
    st.integers(-1, 1),
)


class CompactionMachine(RuleBasedStateMachine):
    """`entries` is all that was ever appended, by offset."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-compaction-"))
        self.files = DyingFiles(left=10**9)
        self.entries: dict[int, Entry] = {}
        self.fates: dict[int, bool] = {}  # of offsets in transactions that have ended: committed?
        self.open: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}
        self.touched_to = 0  # by passes, be it that they died
        self.met_at: dict[int, int] = {}  # when a pass first met a tombstone
        self.now_ms = 1_000_000
        self.serial = 0

    @initialize(
        segment_bytes=st.sampled_from([400, 1500]), index_interval_bytes=st.sampled_from([0, 200])
    )
    def begin(self, segment_bytes: int, index_interval_bytes: int) -> None:
        self.config = LogConfig(
            cleanup_policy="compact",
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            delete_retention_ms=RETENTION_MS,
        )
        begin_without_gaps(self.files, self.directory)
        self.log: Log = open_at(self.directory, self.config, files=self.files)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
        shutil.rmtree(self.directory)

    # --- what clients do -------------------------------------------------------------------------

    @rule(batches=st.lists(BATCHES, min_size=1, max_size=6))
    def append_several(self, batches: list[Batch]) -> None:
        for each in batches:
            self.append(each)

    @rule(
        batches=st.lists(BATCHES, min_size=1, max_size=4),
        producer_id=st.sampled_from(TRANSACTIONAL),
        kind=st.sampled_from([ABORT, COMMIT]),
    )
    def transact(self, batches: list[Batch], producer_id: int, kind: int) -> None:
        """A whole transaction; every other batch is somebody else's."""
        for i, each in enumerate(batches):
            self.append(each if i % 2 else each._replace(producer_id=producer_id))
        self.end_transaction(producer_id, kind)

    def append(self, batch: Batch) -> None:
        keys, producer_id, codec, step_ms = batch
        self.serial += 1
        pairs: Pairs = [
            (key, b"%d.%d" % (self.serial, i) if has_value else None)
            for i, (key, has_value) in enumerate(keys)
        ]
        sequence = self.sequences.get(producer_id, 0)
        producer = (-1, -1, -1) if producer_id < 0 else (producer_id, 0, sequence)
        raw = keyed(
            *pairs,
            timestamp=self.now_ms,
            step_ms=step_ms,
            codec=codec,
            producer=producer,
            is_transactional=producer_id in TRANSACTIONAL,
        )
        base_offset = append(self.log, raw, now_ms=self.now_ms).base_offset
        for i, (key, value) in enumerate(pairs):
            record = Record(base_offset + i, self.now_ms + i * step_ms, key, value)
            self.entries[record.offset] = Entry(record, producer_id)
        self.sequences[producer_id] = sequence + len(pairs)
        if producer_id in TRANSACTIONAL:
            mine = self.open.setdefault(producer_id, [])
            mine += range(base_offset, base_offset + len(pairs))

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), kind=st.sampled_from([ABORT, COMMIT]))
    def end_transaction(self, producer_id: int, kind: int) -> None:
        end(self.log, kind, producer_id, timestamp=self.now_ms)
        for offset in self.open.pop(producer_id, ()):
            self.fates[offset] = kind == COMMIT

    @rule(ms=st.sampled_from([1, RETENTION_MS, 10 * RETENTION_MS]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def roll(self) -> None:
        if self.log.segments[-1].size_bytes:
            self.log.roll()

    # --- what the cleaner does -------------------------------------------------------------------

    @rule(
        max_keys=st.sampled_from([1, 3, 1000]),
        read_bytes=st.sampled_from([100, 4096]),
        lives_for=st.one_of(st.none(), st.none(), st.integers(0, 120)),
        is_settled=st.booleans(),
    )
    def clean(
        self, max_keys: int, read_bytes: int, lives_for: int | None, is_settled: bool
    ) -> None:
        if is_settled:
            for producer_id in list(self.open):
                self.end_transaction(producer_id, ABORT)
            self.roll()
        first_dirty_offset = self.log.first_dirty_offset
        if lives_for is not None:
            self.files.left = self.files.changes + lives_for
        self.touched_to = max(self.touched_to, self.log.segments[-1].base_offset)
        for offset, entry in self.entries.items():
            if entry.record.value is None and offset < self.touched_to:
                self.met_at.setdefault(offset, self.now_ms)
        try:
            finished = clean(
                self.log,
                now_ms=self.now_ms,
                limits=Limits(max_keys * BYTES_PER_KEY, read_bytes, 1e18),
                files=self.files,
            )
        except Killed:
            self.files.left = 10**9
            self.reopen()
            self.log.first_dirty_offset = first_dirty_offset
            return
        self.files.left = 10**9
        if finished is not None:
            assert finished.first_dirty_offset >= max(first_dirty_offset, 0)
            self.is_clean()

    @rule()
    def die(self) -> None:
        """Nothing is left but the log itself."""
        for path in self.directory.glob(f"*{SUFFIX}"):
            path.unlink()
        first_dirty_offset = self.log.first_dirty_offset
        self.reopen()
        self.log.first_dirty_offset = first_dirty_offset

    def reopen(self) -> None:
        self.log.release()
        self.log = open_at(self.directory, self.config, CRASHED, files=self.files)
        assert not [p for p in self.directory.iterdir() if p.suffix in (".cleaned", ".swap")]

    # --- what is there ---------------------------------------------------------------------------

    def stored(self) -> dict[int, Record]:
        """The data records of the log, through its segments."""
        found: dict[int, Record] = {}
        last = -1
        for segment in self.log.segments:
            for position, header in segment.headers(0):
                raw = segment.read_batch(position, header.size_bytes)
                if not header.is_control:
                    for record in records_of(raw, 0, header):
                        assert record.offset > last
                        found[record.offset] = record
                        last = record.offset
        return found

    def newest(self, end_offset: int) -> dict[bytes, Record]:
        """Of each key, below the offset, and not counting what was aborted."""
        found: dict[bytes, Record] = {}
        for offset, entry in self.entries.items():
            if offset < end_offset and self.fates.get(offset, True):
                assert entry.record.key is not None
                found[entry.record.key] = entry.record
        return found

    def is_clean(self) -> None:
        """Below the end of the pass only the newest are left, and of tombstones those in time."""
        end_offset = self.log.first_dirty_offset
        newest = {record.offset for record in self.newest(end_offset).values()}
        left = {offset for offset in self.stored() if offset < end_offset}
        assert left <= newest
        # A pass that died may have known newer ones than this pass.
        of_all = {record.offset for record in self.newest(self.touched_to).values()}
        for offset in (newest - left) & of_all:
            assert self.entries[offset].record.value is None
            assert self.now_ms >= self.met_at[offset] + RETENTION_MS

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "log"):
            return
        stored = self.stored()
        for offset, record in stored.items():
            assert record == self.entries[offset].record
        newest: dict[bytes, bytes | None] = {}
        for record in stored.values():
            if self.fates.get(record.offset, True):
                assert record.key is not None
                newest[record.key] = record.value
        wanted = {key: record.value for key, record in self.newest(2**62).items()}
        assert {k: v for k, v in newest.items() if v is not None} == {
            k: v for k, v in wanted.items() if v is not None
        }
        for offset in range(self.touched_to, self.log.log_end_offset):
            assert (offset in stored) == (offset in self.entries)

    @invariant()
    def producers_go_on(self) -> None:
        for producer_id, sequence in self.sequences.items():
            if producer_id >= 0:
                producer = self.log.producers.get(producer_id)
                assert producer is not None and producer.last_sequence == sequence - 1

    @invariant()
    def readers_of_committed_records_see_the_same(self) -> None:
        if not hasattr(self, "log"):
            return
        end_offset = self.log.log_end_offset
        stable = min((mine[0] for mine in self.open.values()), default=end_offset)
        assert self.log.last_stable_offset(end_offset) == stable
        aborted = sorted(self.log.aborted_transactions(0, stable), key=lambda each: each[1])
        skipped: set[int] = set()
        for segment in self.log.segments:
            for position, header in segment.headers(0):
                while aborted and aborted[0].first_offset <= header.last_offset:
                    skipped.add(aborted.pop(0).producer_id)
                if header.is_control:
                    raw = segment.read_batch(position, header.size_bytes)
                    for record in records_of(raw, 0, header):
                        if record.key is not None and record.key[3] == ABORT:
                            skipped.discard(header.producer_id)
                elif header.last_offset < stable and header.record_count:
                    is_seen = not (header.is_transactional and header.producer_id in skipped)
                    raw = segment.read_batch(position, header.size_bytes)
                    for record in records_of(raw, 0, header):
                        assert is_seen == self.fates.get(record.offset, True)


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(max_examples=examples(100), stateful_step_count=25)
