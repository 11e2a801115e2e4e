"""Prints the small files of a log directory and of a partition, line by line (ST-9).

    <offset>.snapshot                the producers of the partition, as Kafka prints them
    *-offset-checkpoint              an offset for each partition
    leader-epoch-checkpoint          where each leader epoch started
    meta.properties                  the directory's broker and cluster
    partition.metadata               the partition's topic id
    .kafka_cleanshutdown             a marker for a clean shutdown

Kafka has a tool for the first file only. For the others, our output imitates its style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.config import parse_properties
from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import read_entries, read_offsets
from barnabas.storage.directory import CLEANER, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from barnabas.storage.epochs import FILE_NAME as LEADER_EPOCHS
from barnabas.storage.epochs import EpochEntry
from barnabas.storage.files import OsFiles
from barnabas.storage.partition_metadata import FILE_NAME as PARTITION_METADATA
from barnabas.storage.partition_metadata import read_topic_id
from barnabas.storage.producers import NO_OFFSET, Producer
from barnabas.storage.snapshot import decode_snapshot
from barnabas.types import uuid_text

MAX_BYTES = 256 << 20
"""The size of a snapshot of five million producers. Larger files are rejected."""

Lines = Callable[[Path, str], Iterator[str]]


def snapshot_lines(path: Path, shown_as: str) -> Iterator[str]:
    """Yield a line for each producer, as Kafka prints it. Raises CorruptData."""
    for producer_id, producer in decode_snapshot(_content(path)):
        yield _producer_line(producer_id, producer)


def _producer_line(producer_id: int, producer: Producer) -> str:
    began = producer.transaction_offset
    line = (
        f"producerId: {producer_id} producerEpoch: {producer.epoch} "
        f"coordinatorEpoch: {producer.coordinator_epoch} "
        f"currentTxnFirstOffset: OptionalLong{'.empty' if began == NO_OFFSET else f'[{began}]'} "
        f"lastTimestamp: {producer.timestamp} "
    )
    if producer.batches:
        last = producer.batches[-1]
        line += (
            f"firstSequence: {last.base_sequence} lastSequence: {last.last_sequence} "
            f"lastOffset: {last.last_offset} offsetDelta: {last.offset_delta} "
            f"timestamp: {last.timestamp}"
        )
    return line


def read_epochs(path: Path) -> list[EpochEntry]:
    """Return the entries of a `leader-epoch-checkpoint`. Raises CorruptData."""
    found = []
    for words in read_entries(OsFiles(), path):
        try:
            epoch, start_offset = map(int, words)
        except ValueError as cause:
            raise CorruptData(f"malformed line {' '.join(words)!r}") from cause
        found.append(EpochEntry(epoch, start_offset))
    return found


def _offset_lines(path: Path, shown_as: str) -> Iterator[str]:
    _content(path)
    for (topic, partition), offset in sorted(read_offsets(OsFiles(), path).items()):
        yield f"topic: {topic} partition: {partition} offset: {offset}"


def _epoch_lines(path: Path, shown_as: str) -> Iterator[str]:
    _content(path)
    for epoch, start_offset in read_epochs(path):
        yield f"epoch: {epoch} startOffset: {start_offset}"


def _property_lines(path: Path, shown_as: str) -> Iterator[str]:
    try:
        pairs = dict(parse_properties(_content(path).decode()))
    except UnicodeDecodeError as cause:
        raise CorruptData("not text") from cause
    for key, value in sorted(pairs.items()):
        yield f"{key}: {value}"


def _metadata_lines(path: Path, shown_as: str) -> Iterator[str]:
    _content(path)
    topic_id = read_topic_id(OsFiles(), path.parent)
    assert topic_id is not None, "it was read a moment ago"
    yield f"topicId: {uuid_text(topic_id)}"


def _marker_lines(path: Path, shown_as: str) -> Iterator[str]:
    content = _content(path).strip()  # empty if written before Kafka 3.8
    if content:
        yield content.decode("utf-8", "replace")


def _content(path: Path) -> bytes:
    """Return the whole file. Raises FileNotFoundError, whereas `storage` treats a missing file as
    empty.
    """
    if path.stat().st_size > MAX_BYTES:
        raise CorruptData(f"too large for this kind of file: {path.stat().st_size} bytes")
    return path.read_bytes()


SMALL_FILES: dict[str, Lines] = {
    RECOVERY_POINTS: _offset_lines,
    HIGH_WATERMARKS: _offset_lines,
    LOG_STARTS: _offset_lines,
    CLEANER: _offset_lines,
    LEADER_EPOCHS: _epoch_lines,
    "meta.properties": _property_lines,
    PARTITION_METADATA: _metadata_lines,
    ".kafka_cleanshutdown": _marker_lines,
}
"""Maps file names to the functions that print these files."""
