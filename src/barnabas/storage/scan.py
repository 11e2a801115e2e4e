"""Scans segments after a crash in order to find the end of the valid data and rebuild the indexes.

Every batch is read and its checksum is verified. A segment ends before the first batch that is
damaged or does not continue the log. The same pass also finds the index entries, epochs, producers
and aborted transactions. The headers suffice for this; records are read only in transaction
markers.

If batches are small, most of the time is spent on the fixed cost of each batch. The header of a
batch is therefore unpacked in one call, and more is done only if necessary, such as for an index
entry, a new epoch or a marker. Only the last data batches of a producer matter, so the others are
not applied.

    window   a block of the file; it is scanned for whole batches in the current format
    slowly   for all other batches: larger than a window, in an old format, or damaged
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.records.batch import (
    CHECKED_FROM,
    CONTROL,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL,
    read_header,
    verify_crc,
)
from barnabas.records.crc32c import crc32c
from barnabas.storage.epochs import EpochEntry, LeaderEpochs
from barnabas.storage.index import MAX_RELATIVE_OFFSET
from barnabas.storage.loading import Loading
from barnabas.storage.producers import KEPT_BATCHES, Producers
from barnabas.storage.replay import apply_batch
from barnabas.storage.segment import Located, Segment

_LOOK = Struct(">qiibIhi8xqq").unpack_from
"""Unpacks the header fields that are needed for a scan.

The fields are base offset, length, leader epoch, magic, checksum, attributes, last offset delta,
max timestamp and producer id.
"""
_MAGIC = 2
_MIN_LENGTH = HEADER_BYTES - LOG_OVERHEAD_BYTES
_WINDOW_BYTES = 256 * 1024
_MARKED = TRANSACTIONAL | CONTROL
_MOST_RECENT = 10_000
_NO_BOUND = 2**63 - 1
_BASE_OFFSET = Struct(">q").unpack_from
_NEXT_BYTES = 8


class Scan:
    """Scans the segments of a log one after another."""

    __slots__ = (
        "_claimed",
        "_epochs",
        "_interval_bytes",
        "_loading",
        "_scanned_to",
        "_window_bytes",
    )

    def __init__(
        self,
        epochs: LeaderEpochs,
        claimed: tuple[EpochEntry, ...],
        begin_offset: int,
        interval_bytes: int,
        loading: Loading | None,
        window_bytes: int = _WINDOW_BYTES,
    ) -> None:
        """`epochs` does not contain the epochs that begin in the part to be scanned. `claimed`
        contains these epochs as they are stored in the file.

        `interval_bytes` is the distance between index entries. As in Kafka, a scan does not measure
        it in the same way as an append.
        """
        self._epochs = epochs
        self._claimed = claimed
        self._scanned_to = begin_offset
        self._interval_bytes = interval_bytes
        self._loading = loading
        self._window_bytes = window_bytes

    def rebuild(
        self, segment: Segment, producers: Producers, bound: int = _NO_BOUND
    ) -> tuple[int, int]:
        """Rebuild the indexes of the segment, and return the position and the offset at which its
        valid part ends.

        `producers` must be the producers at the start of the segment; they are updated to its end.
        `bound` is above all offsets in the segment.
        """
        segment.forget_indexes()
        found = _Found(self, segment, producers, bound)
        file = segment.open_file()
        while found.position < segment.size_bytes:
            begin = found.position
            window = file.pread(min(self._window_bytes, segment.size_bytes - begin), begin)
            found.take(window)
            # Either the next batch is larger than the window, or it is in an old format, or the log
            # has ended.
            if found.position == begin and not found.take_slowly():
                break
            if self._loading is not None:
                self._loading.read(found.position - begin)
        found.complete()
        return found.position, found.next_offset

    def learn_epoch(self, epoch: int, base_offset: int) -> int:
        """Process the first batch of an epoch that is left in the log, and return the latest epoch.

        If compaction has removed earlier batches of the epoch, only the file shows where the epoch
        starts. Otherwise, the file is not used, because it may describe records that have been
        truncated since.
        """
        epochs = self._epochs
        # Epochs never decrease in a log, so this epoch is already known.
        if epoch <= epochs.latest:
            return epochs.latest
        # The file may contain epochs between these two. Compaction has removed all batches of such
        # epochs.
        for claimed in self._claimed:
            if (
                epochs.latest < claimed.epoch <= epoch
                and self._scanned_to <= claimed.start_offset <= base_offset
            ):
                epochs.assign(*claimed)
        if epoch > epochs.latest:
            epochs.assign(epoch, base_offset)
        return epochs.latest

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    @property
    def interval_bytes(self) -> int:
        return self._interval_bytes

    def advance_to(self, offset: int) -> None:
        """Record that the log has been scanned up to this offset."""
        self._scanned_to = offset


class _Found:
    """The results of scanning a segment up to a position."""

    __slots__ = (
        "_highest",
        "_last_indexed",
        "_newest",
        "_newest_at",
        "_producers",
        "_recent",
        "_scan",
        "_segment",
        "next_offset",
        "position",
    )

    def __init__(self, scan: Scan, segment: Segment, producers: Producers, bound: int) -> None:
        self._scan = scan
        self._highest = min(segment.base_offset + MAX_RELATIVE_OFFSET, bound - 1)
        self._segment = segment
        self._producers = producers
        self._recent: dict[int, deque[bytes]] = {}  # unapplied headers of data batches
        self._last_indexed = 0
        self._newest = segment.max_timestamp
        self._newest_at = segment.base_offset
        self.position = 0
        self.next_offset = segment.base_offset

    def take(self, window: bytes) -> None:
        """Process the batches in these bytes, which begin at `position`.

        Processing stops before the first batch that is incomplete or invalid.
        """
        # This runs for every batch, so use local variables, which are faster than attributes.
        begin, next_offset = self.position, self.next_offset
        newest, latest = self._newest, self._scan.latest_epoch
        highest = self._highest
        index_at = self._last_indexed + self._scan.interval_bytes - begin
        recent_of = self._recent.get
        end, at = len(window), 0
        last_header = end - HEADER_BYTES
        while at <= last_header:
            offset, length, epoch, magic, crc, attributes, delta, timestamp, producer_id = _LOOK(
                window, at
            )
            stop = at + LOG_OVERHEAD_BYTES + length
            last_offset = offset + delta
            if (
                magic != _MAGIC
                or stop > end
                or length < _MIN_LENGTH
                or offset < next_offset
                or delta < 0
                or last_offset > highest
                or crc32c(window[at + CHECKED_FROM : stop]) != crc
            ):
                break
            if offset > next_offset and (
                stop > end - _NEXT_BYTES or _BASE_OFFSET(window, stop)[0] <= last_offset
            ):
                break  # after a gap, only the next batch shows whether the offset is plausible
            if timestamp > newest:
                newest = self._newest = timestamp
                self._newest_at = last_offset
            # When Kafka rebuilds an index, it measures the distance from one entry to the next.
            if at > index_at:
                self._index(last_offset, begin + at)
                index_at = at + self._scan.interval_bytes
            if epoch > latest:
                self._advance_scan(next_offset)
                latest = self._scan.learn_epoch(epoch, offset)
            if producer_id >= 0:
                recent = recent_of(producer_id)
                # All data of a transaction must be applied before its marker. The queue is created
                # for the first batch.
                if recent is None or attributes & _MARKED:
                    self._take_producers(producer_id, attributes, window, at)
                else:
                    recent.append(window[at : at + HEADER_BYTES])
            next_offset = last_offset + 1
            at = stop
        self.position, self.next_offset = begin + at, next_offset

    def take_slowly(self) -> bool:
        """Process a batch of any size at `position`, and any old messages before the next batch.

        Returns whether anything was processed.
        """
        begin = self.position
        for batch in _whole_batches(self._segment, begin):
            position, header = batch
            last_offset = header.last_offset
            # If a batch does not continue the log, do not trust anything after it.
            if header.base_offset < self.next_offset or last_offset < header.base_offset:
                break
            if last_offset > self._highest or not self._is_followed(batch):
                break
            if header.max_timestamp > self._newest:
                self._newest, self._newest_at = header.max_timestamp, last_offset
            if position - self._last_indexed > self._scan.interval_bytes:
                self._index(last_offset, position)
            self._advance_scan(self.next_offset)
            self._scan.learn_epoch(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._apply(header.producer_id, batch)
            self.position, self.next_offset = position + header.size_bytes, last_offset + 1
            if header.magic == _MAGIC:
                break  # the next batch may fit into the window
        return self.position > begin

    def _is_followed(self, batch: Located) -> bool:
        """Return whether there is a next batch and it begins above the end of this batch.

        The base offset is not covered by a checksum. If a damaged offset is too high, it leaves a
        gap that could also be due to compaction. However, the next batch then seems to start within
        this one.
        """
        position, header = batch
        if header.base_offset == self.next_offset or header.magic != _MAGIC:
            return True
        following = self._segment.read_batch(position + header.size_bytes, _NEXT_BYTES)
        return len(following) < _NEXT_BYTES or _BASE_OFFSET(following)[0] > header.last_offset

    def complete(self) -> None:
        """Complete the segment, whose valid part ends at the current position."""
        self._apply_recent()
        self._segment.learn_max_timestamp(self._newest, self._newest_at)
        self._segment.index_time()
        self._advance_scan(self.next_offset)

    def _advance_scan(self, next_offset: int) -> None:
        """Advance the scan if a batch was found, because an epoch may begin before it."""
        if next_offset > self._segment.base_offset:
            self._scan.advance_to(next_offset)

    def _index(self, last_offset: int, position: int) -> None:
        segment = self._segment
        segment.learn_max_timestamp(self._newest, self._newest_at)
        segment.offset_index.append(last_offset - segment.base_offset, position)
        segment.index_time()
        self._last_indexed = position

    # --- producers -------------------------------------------------------------------------------

    def _take_producers(self, producer_id: int, attributes: int, window: bytes, at: int) -> None:
        """Process a batch that is the producer's first or that may begin or end a transaction."""
        if attributes & _MARKED:
            self._apply(producer_id, Located(self.position + at, read_header(window, at)))
            return
        # A log may have very many producers, so limit the memory used for their batches.
        if len(self._recent) >= _MOST_RECENT:
            self._apply_recent()
        self._recent[producer_id] = deque([window[at : at + HEADER_BYTES]], KEPT_BATCHES)

    def _apply(self, producer_id: int, batch: Located) -> None:
        """Apply the queued batches of a producer, and then this batch."""
        for raw in self._recent.pop(producer_id, ()):
            self._apply_header(raw)
        aborted = apply_batch(self._producers, self._segment, batch)
        if aborted is not None:
            self._segment.index_aborted(aborted)

    def _apply_recent(self) -> None:
        for recent in self._recent.values():
            for raw in recent:
                self._apply_header(raw)
        self._recent.clear()

    def _apply_header(self, raw: bytes) -> None:
        header = read_header(raw)
        self._producers.apply(header, header.base_offset, header.max_timestamp)


def _whole_batches(segment: Segment, position: int) -> Iterator[Located]:
    """Yield the batches of a segment from a position up to the first batch that is truncated or
    damaged.
    """
    file = segment.open_file()
    size = segment.size_bytes
    window = b""
    begin = position  # where the window starts; the next batch is at `position`
    while position < size:
        at = position - begin
        if len(window) - at < HEADER_BYTES:
            window, begin, at = file.pread(_WINDOW_BYTES, position), position, 0
        try:
            header = read_header(window, at)
        except CorruptData:
            return
        if position + header.size_bytes > size:
            return
        # The batch does not fit into the window. Read the whole batch to verify its checksum.
        if at + header.size_bytes > len(window):
            window = file.pread(max(_WINDOW_BYTES, header.size_bytes), position)
            begin, at = position, 0
        if not verify_crc(window, at, header):
            return
        yield Located(position, header)
        position += header.size_bytes
