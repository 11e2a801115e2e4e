"""Checks the files of a partition, and reports each finding on one line (ST-9).

    .log         every batch is complete with the right checksum; offsets and epochs never decrease
    .index       entries ascend; each points to a batch and has the last offset of a batch
    .timeindex   entries ascend; each has the largest timestamp up to the batch with its offset
    .txnindex    entries ascend; for each, the log has an ABORT marker of the same producer
    .snapshot    the checksum

The index files are compared with the `.log` of the same name. It is read once from start to end, so
memory use does not grow with the log. Missing index entries are not reported, because which entries
exist depends on when the log was opened. Any other file that `barnabas dump` reads is valid if it
can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from barnabas.cli.dump.index import (
    ABORTED_ENTRY,
    IndexEntry,
    base_offset,
    read_aborted,
    read_offset_index,
    read_time_index,
)
from barnabas.cli.dump.log import Batch, LogWalk
from barnabas.cli.dump.small_files import read_epochs
from barnabas.errors import CorruptData
from barnabas.records.batch import NO_TIMESTAMP
from barnabas.records.control_records import ABORT, read_marker
from barnabas.storage.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY, TIME_ENTRY

Findings = Iterator[str]

_PIECE_BYTES = 1 << 16


def verify_log(path: Path, *, records: bool = False) -> Findings:
    """Check a log; with `records`, also decode every record."""
    base = base_offset(path)
    last_offset, last_epoch = base - 1, -1
    with path.open("rb") as file:
        walk = LogWalk(file)
        try:
            for batch in walk:
                header = batch.header
                where = f"position {batch.position}: the batch at offset {header.base_offset}"
                if not batch.is_valid:
                    yield f"{where} fails its checksum"
                elif records and (problem := _record_problem(batch)):
                    yield f"{where}: {problem}"
                # A message in an older format stores only its last offset.
                if header.base_offset <= last_offset:
                    yield f"{where} does not come after offset {last_offset}"
                if header.last_offset - base > MAX_RELATIVE_OFFSET:
                    yield f"{where} is too far from the segment's first offset for its indexes"
                # Epochs never decrease within a log, because a leader appends records with its own
                # epoch, and truncation removes the records of an older leader.
                if header.magic == 2 and header.partition_leader_epoch < last_epoch:
                    epoch = header.partition_leader_epoch
                    yield f"{where} has leader epoch {epoch}, after a batch with {last_epoch}"
                last_offset = max(last_offset, header.last_offset)
                last_epoch = max(last_epoch, header.partition_leader_epoch)
        except CorruptData as error:
            yield str(error)
            return
    if walk.trailing_bytes:
        yield f"position {walk.position}: {walk.trailing_bytes} bytes are an incomplete batch"


def verify_offset_index(path: Path) -> Findings:
    base = base_offset(path)
    yield from _length_problem(path, OFFSET_ENTRY)
    with path.open("rb") as file, _log_beside(path).open("rb") as log:
        if _is_zeros(file):
            return
        scan = _Scan(LogWalk(log))
        before = IndexEntry(base - 1, -1)
        for entry in read_offset_index(file, base):
            what = f"the entry offset {entry.offset} position {entry.target}"
            # An entry that is not larger than the one before it would break binary searches and the
            # checks below.
            if entry.offset <= before.offset or entry.target <= before.target:
                yield f"{what} does not come after offset {before.offset} position {before.target}"
                return
            if not scan.begins_at(entry.target):
                yield f"{what}: no batch begins at that position"
            elif not scan.ends_with(entry.offset):
                yield f"{what}: no batch from that position on ends with that offset"
            before = entry


def verify_time_index(path: Path) -> Findings:
    base = base_offset(path)
    yield from _length_problem(path, TIME_ENTRY)
    with path.open("rb") as file, _log_beside(path).open("rb") as log:
        if _is_zeros(file):
            return
        scan = _Scan(LogWalk(log))
        before = IndexEntry(base - 1, NO_TIMESTAMP)
        for entry in read_time_index(file, base):
            what = f"the entry timestamp {entry.target} offset {entry.offset}"
            if entry.offset <= before.offset or entry.target <= before.target:
                yield f"{what} does not come after {before.target} at offset {before.offset}"
                return
            if not scan.ends_with(entry.offset):
                yield f"{what}: no batch ends with that offset"
            # An entry holds the largest timestamp so far, so that a search by time can skip
            # everything before it.
            elif scan.max_timestamp != entry.target:
                yield f"{what}: the largest timestamp up to that offset is {scan.max_timestamp}"
            before = entry


def verify_aborted(path: Path) -> Findings:
    yield from _length_problem(path, ABORTED_ENTRY)
    with path.open("rb") as file, _log_beside(path).open("rb") as log:
        scan = _Scan(LogWalk(log))
        last_offset = -1
        for entry in read_aborted(file):
            what = f"the transaction {entry.first_offset} to {entry.last_offset}"
            if entry.last_offset <= last_offset or entry.first_offset > entry.last_offset:
                yield f"{what} is out of order"
                return
            if not (scan.ends_with(entry.last_offset) and scan.is_abort_of(entry.producer_id)):
                yield f"{what} has no ABORT marker of producer {entry.producer_id}"
            last_offset = entry.last_offset


def verify_epochs(path: Path) -> Findings:
    entries = read_epochs(path)
    for before, entry in pairwise(entries):
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            yield (
                f"epoch {entry.epoch} at offset {entry.start_offset} does not come after epoch "
                f"{before.epoch} at {before.start_offset}"
            )


class _Scan:
    """Scans a log once to answer queries, which must be made in ascending order of position."""

    def __init__(self, walk: LogWalk) -> None:
        self._batches = self._readable(walk)
        self._batch: Batch | None = next(self._batches, None)
        self.max_timestamp = NO_TIMESTAMP
        """The largest timestamp up to the last batch found."""

    @staticmethod
    def _readable(walk: LogWalk) -> Iterator[Batch]:
        """Yield the batches before the first damaged one, which `verify_log` reports."""
        try:
            yield from walk
        except CorruptData:
            return

    def begins_at(self, position: int) -> bool:
        """Advance to this position, and return whether a batch starts there."""
        return self._find(lambda batch: batch.position >= position) == position

    def ends_with(self, offset: int) -> bool:
        """Advance to the batch with this offset, and return whether it is the batch's last
        offset."""
        position = self._find(lambda batch: batch.header.last_offset >= offset)
        if position is None or self._batch is None:
            return False
        self.max_timestamp = max(self.max_timestamp, self._batch.header.max_timestamp)
        return self._batch.header.last_offset == offset

    def is_abort_of(self, producer_id: int) -> bool:
        """Return whether the last batch found aborts a transaction of this producer."""
        batch = self._batch
        if batch is None or batch.data is None or not batch.header.is_control:
            return False
        marker = read_marker(batch.data, 0, batch.header)
        return (
            marker is not None and marker.type == ABORT and batch.header.producer_id == producer_id
        )

    def _find(self, wanted: Callable[[Batch], bool]) -> int | None:
        while self._batch is not None and not wanted(self._batch):
            self.max_timestamp = max(self.max_timestamp, self._batch.header.max_timestamp)
            self._batch = next(self._batches, None)
        return None if self._batch is None else self._batch.position


def _record_problem(batch: Batch) -> str:
    """Return what is wrong with the records of a batch whose checksum is correct, or ""."""
    header = batch.header
    # Old wrapper messages have relative or absolute offsets, so only their order can be checked.
    last_offset = header.base_offset - 1 if header.magic == 2 else -1
    try:
        for record in batch.records():
            if not last_offset < record.offset <= header.last_offset:
                return f"its record at offset {record.offset} is out of order"
            last_offset = record.offset
    except CorruptData as error:
        return str(error)
    return ""


def _length_problem(path: Path, entry: Struct) -> Findings:
    size = path.stat().st_size
    if size % entry.size:
        yield f"{size} bytes are not a whole number of entries of {entry.size} bytes"


def _is_zeros(file: BinaryIO) -> bool:
    """Return whether the file is empty or only preallocated, and rewind it."""
    zeros = True
    while zeros and (piece := file.read(_PIECE_BYTES)):
        zeros = not any(piece)
    file.seek(0)
    return zeros


def _log_beside(path: Path) -> Path:
    """Return the `.log` of an index. Raises CorruptData if it does not exist."""
    log = path.with_suffix(".log")
    if not log.exists():
        raise CorruptData(f"its {log.name} does not exist")
    return log
