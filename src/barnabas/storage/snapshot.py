"""Reads and writes `<offset>.snapshot` files, which contain the producer state before an offset.

    version int16 (1) | crc uint32, CRC-32C of what follows | count int32 | per producer 46 bytes:
     0 producer id int64         8 epoch int16            10 last sequence int32
    14 last offset int64        22 offset delta int32     26 timestamp int64
    34 coordinator epoch int32  38 transaction's first offset int64        (-1: none)

As in Kafka, only the last of the five batches is stored. A snapshot is written in place, not
atomically. If the file is torn, its checksum is wrong, and an earlier snapshot or the log is used
instead.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from struct import Struct, error, iter_unpack

from barnabas.errors import CorruptData
from barnabas.records.crc32c import crc32c
from barnabas.storage.files import Entry, Files
from barnabas.storage.producers import ROW, Producers
from barnabas.storage.segment import base_offset_in

_log = logging.getLogger(__name__)

SUFFIX = ".snapshot"

_HEADER = Struct(">hI")
_COUNT = Struct(">i")
_VERSION = 1


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020}{SUFFIX}"


def encode_snapshot(producers: Producers) -> bytes:
    return encode_states(producers.states())


def encode_states(states: Sequence[bytes]) -> bytes:
    """Encode the producers that `Producers.states` has returned."""
    size = ROW.size
    body = b"".join([_COUNT.pack(len(states)), *[each[:size] for each in states]])
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> Producers:
    """Decode a snapshot. Raises CorruptData if the snapshot is torn or damaged or has an unknown
    version.
    """
    try:
        version, crc = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        (count,) = _COUNT.unpack_from(body)
    except error as cause:
        raise CorruptData("a producer snapshot is truncated") from cause
    if version != _VERSION:
        raise CorruptData(f"a producer snapshot has unknown version {version}")
    # The snapshot is torn. It need not be written atomically, because the log contains the same
    # state.
    if crc != crc32c(body) or len(body) != _COUNT.size + count * ROW.size:
        raise CorruptData("a producer snapshot fails its checksum")
    producers = Producers()
    producers.take_over_rows(row for (row,) in iter_unpack(f"{ROW.size}s", body[_COUNT.size :]))
    return producers


def write_snapshot(files: Files, directory: Path, offset: int, producers: Producers) -> None:
    files.write(snapshot_path(directory, offset), encode_snapshot(producers))


def snapshot_offsets(entries: Sequence[Entry]) -> list[int]:
    """Return the offsets of all snapshots in a directory listing in ascending order."""
    found = (base_offset_in(each.name) for each in entries if each.name.endswith(SUFFIX))
    return sorted(offset for offset in found if offset is not None)


def load_newest_snapshot(
    files: Files, directory: Path, offsets: Sequence[int]
) -> tuple[Producers, int] | None:
    """Return the newest intact snapshot at one of these offsets, which must be ascending, and its
    offset.

    Damaged snapshots are removed, because the same state can be restored from an older snapshot and
    the log.
    """
    for offset in reversed(offsets):
        path = snapshot_path(directory, offset)
        try:
            return decode_snapshot(files.read(path)), offset
        except CorruptData as error:
            _log.warning("%s: %s; rebuilding producer state from the log", path, error)
            files.remove(path)
    return None
