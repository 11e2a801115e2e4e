"""Decides which records of a batch are kept by compaction. The rules are those of Kafka 3.9's
cleaner.

aborted data            is removed
a marker                is removed once its horizon has passed; the horizon is set by the first
                        pass that finds no data of its transaction
a record                is removed if there is a newer record with its key, or if it is a tombstone
                        and the horizon of its batch has passed; the horizon is set by the first
                        pass that meets a tombstone in the batch
a producer's last       is kept, as an empty batch if necessary; otherwise, sequence numbers and
batch                   epochs could not be checked after a restart
a batch that is too     is kept unchanged, and so are all tombstones after it: if it contains one
large to open           of their keys, the old value would otherwise reappear (Kafka's cleaner has
                        no such limit, because it decompresses record by record)
"""

from __future__ import annotations

from barnabas.records.batch import HEADER_BYTES, BatchHeader
from barnabas.records.compression import NONE, PlainTooLarge, decompress
from barnabas.records.control_records import read_marker
from barnabas.records.record import DEFAULT_LIMIT_BYTES, Record, records_of
from barnabas.storage.compaction.batches import NO_HORIZON, convert_messages, empty_batch, rebuild
from barnabas.storage.compaction.job import Producers
from barnabas.storage.compaction.key_map import NEWEST, TOMBSTONE, KeyMap, fold
from barnabas.storage.compaction.sieve import Section, Sifted, note_keys, sift, sift_marked
from barnabas.storage.compaction.stored_batches import Stored
from barnabas.storage.compaction.transactions import Transactions
from barnabas.storage.transaction_index import Aborted

_LAST_MS = 2**63 - 1
_NO_KEYS = KeyMap(0)

PLAIN_LIMIT_BYTES = DEFAULT_LIMIT_BYTES
"""Batches whose decompressed size exceeds this limit are not decompressed."""


def add_keys(stored: Stored, key_map: KeyMap) -> None:
    """Add the keys of a data batch's records to the map. Raises CorruptData if a record is
    malformed.
    """
    try:
        _add_keys(stored, key_map)
    except PlainTooLarge:
        key_map.unopened.add(stored.header.base_offset)
        key_map.make_marks(stored.header.last_offset)


def _add_keys(stored: Stored, key_map: KeyMap) -> None:
    if stored.header.magic == 2:
        note_keys(section_of(stored), key_map)
        return
    for record in records_of(stored.data, stored.at, stored.header, PLAIN_LIMIT_BYTES):
        if record.key is not None and record.offset >= key_map.first_offset:
            key_map.add((*fold(record.key), record.offset - key_map.first_offset))
    key_map.make_marks(stored.header.last_offset)


def section_of(stored: Stored) -> Section:
    """Decompress the records of the batch. Raises PlainTooLarge."""
    header, data, at = stored
    begin, end = at + HEADER_BYTES, at + header.size_bytes
    if header.codec == NONE:
        return Section(header, data, begin, end)
    plain = decompress(header.codec, memoryview(data)[begin:end], PLAIN_LIMIT_BYTES)
    return Section(header, plain, 0, len(plain))


class Survival:
    """Applies the rules of compaction to the batches of a log, which must be passed in order."""

    __slots__ = (
        "_horizon_ms",
        "_key_map",
        "_now_ms",
        "_producers",
        "_transactions",
        "records_kept",
        "to_index",
        "unopened",
    )

    def __init__(
        self,
        key_map: KeyMap,
        transactions: Transactions,
        producers: Producers,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._key_map = key_map
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, _LAST_MS)
        self.to_index: Aborted | None = None
        """The index entry of the transaction ended by the last batch passed to `of`, if the entry
        is still needed.
        """
        self.records_kept = 0
        self.unopened = 0
        """The number of batches that were kept because they are too large to decompress."""

    def of(self, stored: Stored) -> bytes | None:
        """Return the part of the batch to keep, or None if nothing is kept.

        Raises CorruptData if a record is malformed.
        """
        self.to_index = None
        try:
            return self._of(stored)
        except PlainTooLarge:
            self.unopened += 1
            self.records_kept += stored.header.record_count
            return stored.raw

    def _of(self, stored: Stored) -> bytes | None:
        header = stored.header
        # Batches in the old formats have no producer ids, and none of them are control batches.
        if header.magic < 2:
            return self._of_messages(stored)
        if header.is_control:
            return self._of_marker(stored)
        # read_committed consumers skip this batch anyway. As in Kafka, other consumers no longer
        # see it.
        if self._transactions.is_aborted(header) or header.record_count == 0:
            return self._nothing(header)
        # The marks do not show which tombstones may be dropped because the delete horizon of their
        # batch has passed.
        marks = None if header.has_delete_horizon else self._key_map.marks_of(header)
        if marks is not None:
            newest = marks.count(NEWEST)
            # The batch need not be decompressed, because every record in it is the latest one of
            # its key.
            if newest == header.record_count:
                self.records_kept += newest
                return stored.raw
            if newest == 0 and NEWEST | TOMBSTONE not in marks:
                return self._nothing(header)
        section = section_of(stored)
        sifted = self._sift(section) if marks is None else sift_marked(section, marks)
        if sifted.kept == 0:
            return self._nothing(header)
        self.records_kept += sifted.kept
        # KIP-534: the time of `delete.retention.ms` starts with this pass.
        is_first_seen = sifted.has_tombstone and not header.has_delete_horizon
        if sifted.kept == header.record_count and not is_first_seen:
            return stored.raw
        return rebuild(section, sifted, self._horizon_ms if is_first_seen else _horizon_of(header))

    def _sift(self, section: Section) -> Sifted:
        header = section.header
        is_over = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        # A batch that was not decompressed may contain an older value, which would reappear without
        # the tombstone.
        drops_tombstones = is_over and not self.unopened
        return sift(section, self._key_map, drops_tombstones=drops_tombstones)

    def _of_marker(self, stored: Stored) -> bytes | None:
        header = stored.header
        if header.record_count == 0:
            self._transactions.end(header, None)
            return self._nothing(header)
        marker = read_marker(stored.data, stored.at, header)
        if marker is None:
            self.records_kept += header.record_count
            return stored.raw  # this is not a transaction marker
        is_over, self.to_index = self._transactions.end(header, marker)
        if is_over and header.has_delete_horizon and header.base_timestamp <= self._now_ms:
            return self._nothing(header)
        self.records_kept += header.record_count
        # Consumers still need the marker, because its transaction has data or its delete horizon
        # has not passed.
        if not is_over or header.has_delete_horizon:
            return stored.raw
        section = section_of(stored)
        return rebuild(section, sift(section, _NO_KEYS, drops_tombstones=False), self._horizon_ms)

    def _of_messages(self, stored: Stored) -> bytes | None:
        """Return the messages of magic 0 or 1 to keep. If any were removed, the rest is converted
        to a batch of magic 2.
        """
        records = list(records_of(stored.data, stored.at, stored.header, PLAIN_LIMIT_BYTES))
        kept = [record for record in records if self._stays(record)]
        self.records_kept += len(kept)
        has_tombstone = any(record.value is None for record in kept)
        if not kept:
            return None
        if len(kept) == len(records) and not has_tombstone:
            return stored.raw
        horizon_ms = self._horizon_ms if has_tombstone else NO_HORIZON
        return convert_messages(kept, stored.header.codec, horizon_ms)

    def _stays(self, record: Record) -> bool:
        key_map = self._key_map
        if record.offset > key_map.latest_offset:
            return True
        if record.key is None:
            return False
        return record.offset - key_map.first_offset >= key_map.newest(fold(record.key))[0]

    def _nothing(self, header: BatchHeader) -> bytes | None:
        """Return the batch without its records if the batch itself must be kept, otherwise None."""
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return None
        # The producer's last data batch preserves its sequence number. Without a data batch, the
        # marker preserves its epoch.
        if last.last_offset >= 0:
            is_needed = header.last_offset == last.last_offset
        else:
            is_needed = header.is_control and header.producer_epoch == last.producer_epoch
        return empty_batch(header) if is_needed else None


def _horizon_of(header: BatchHeader) -> int:
    return header.base_timestamp if header.has_delete_horizon else NO_HORIZON
