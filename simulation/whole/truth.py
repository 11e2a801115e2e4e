"""The contents of a partition below its high watermark, read from the log's own bytes. Pure.

Which records are committed is determined only by the markers in the log, and not by anything that a
broker keeps in addition to the log.
"""

from __future__ import annotations

from barnabas.records.batch import BatchHeader, iterate_batches, verify_crc
from barnabas.records.control_records import ABORT, read_marker
from barnabas.records.record import records_of
from simulation.whole.history import Read, id_of


class Truth:
    """The contents of one partition. `flaws`: errors that no log may have."""

    __slots__ = ("_hidden", "_open", "end", "flaws", "leader_epoch", "places", "records", "start")

    def __init__(self, data: bytes, start: int, end: int) -> None:
        """`data`: the bytes from offset `start` to the high watermark. Raises CorruptData."""
        self.start = start
        self.end = end
        self.flaws: list[str] = []
        self.leader_epoch = -1  # the newest one in the log
        self.records: list[Read] = []  # all except markers, in order
        self.places: dict[bytes, list[int]] = {}
        """The indexes in `records` at which records with this id are."""
        self._open: dict[int, list[int]] = {}  # by producer, the records of its transaction so far
        self._hidden: dict[int, None] = {}  # offsets of aborted records
        self._read(data)

    @staticmethod
    def next_offset(data: bytes) -> int:
        """Return the offset after the last whole batch."""
        return max(header.last_offset + 1 for _, header in iterate_batches(data))

    def is_committed(self, offset: int) -> bool:
        """Return whether a reader of committed records sees the record there."""
        return offset not in self._hidden

    def visible(self, first: int, end: int, *, is_committed: bool) -> list[Read]:
        """Return what a reader must be given from offset `first` to `end`."""
        return [
            read
            for read in self.records
            if first <= read.offset < end and not (is_committed and read.offset in self._hidden)
        ]

    def _read(self, data: bytes) -> None:
        expected = self.start
        for position, header in iterate_batches(data):
            # A log may begin within a batch: records are deleted up to any offset.
            is_cut = position == 0 and header.base_offset < self.start <= header.last_offset
            if header.base_offset != expected and not is_cut:
                self.flaws.append(f"offset {header.base_offset} stands where {expected} was due")
            if not verify_crc(data, position, header):
                self.flaws.append(f"the batch at {header.base_offset} fails its checksum")
            if header.partition_leader_epoch < self.leader_epoch:
                self.flaws.append(
                    f"at {header.base_offset} epoch {header.partition_leader_epoch} comes after "
                    f"epoch {self.leader_epoch}"
                )
            self.leader_epoch = header.partition_leader_epoch
            expected = header.last_offset + 1
            if header.is_control:
                self._end(data, position, header)
            else:
                self._take(data, position, header)
        if expected != self.end:
            self.flaws.append(f"the bytes end at {expected}, the high watermark is {self.end}")
        for offsets in self._open.values():
            self._hidden.update(dict.fromkeys(offsets))

    def _take(self, data: bytes, position: int, header: BatchHeader) -> None:
        for record in records_of(data, position, header):
            if record.offset < self.start:
                continue
            read = Read(record.offset, record.value or b"")
            self.places.setdefault(id_of(read.value), []).append(len(self.records))
            self.records.append(read)
            if header.is_transactional:
                self._open.setdefault(header.producer_id, []).append(record.offset)

    def _end(self, data: bytes, position: int, header: BatchHeader) -> None:
        marker = read_marker(data, position, header)
        offsets = self._open.pop(header.producer_id, [])
        if marker is not None and marker.type == ABORT:
            self._hidden.update(dict.fromkeys(offsets))
