"""The scan after a crash finds what a walk over each batch finds (ST-8), whatever is in the log."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import CHECKED_FROM, assign_in_place, read_header, verify_crc
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.crc32c import crc32c
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.producers import Producers
from barnabas.storage.replay import apply_batch
from barnabas.storage.scan import Scan
from barnabas.storage.segment import Located, Segment, Sizes
from tests.kit.storage.batches import message
from tests.kit.storage.disk import T0, QuickFiles, batch

INTERVAL_BYTES = 300

Rebuilt = tuple[object, ...]


def _log_of(random: Random, first_offset: int, count: int) -> bytes:
    """Batches of all kinds, in order; some have gaps before them, as compaction leaves."""
    parts = []
    offset, epoch = first_offset, 0
    sequences: dict[int, int] = {}
    for number in range(count):
        epoch += random.random() < 0.05
        offset += random.choice((0, 0, 0, 3))
        producer_id = random.choice((-1, 1, 2, 3))
        timestamp = T0 + random.randint(-50, 50) + number
        kind = random.random()
        if kind < 0.1:
            parts.append(message(offset, bytes(random.randint(0, 80)), timestamp=timestamp))
            offset += 1
            continue
        if kind < 0.2:
            marker = Marker(offset, timestamp, random.choice((ABORT, COMMIT)), 0)
            raw = bytearray(build_marker(marker, max(1, producer_id), 0))
        else:
            records = random.randint(1, 4)
            sequence = sequences.get(producer_id, 0)
            sequences[producer_id] = sequence + records
            producer = None if producer_id < 0 else (producer_id, int(number > 60), sequence)
            size = random.choice((1, 20, 100, 900))
            raw = batch(
                records,
                size,
                timestamp=timestamp,
                producer=producer,
                is_transactional=producer is not None and random.random() < 0.3,
            )
        assign_in_place(raw, 0, offset, epoch)
        parts.append(bytes(raw))
        offset += read_header(raw).last_offset_delta + 1
    return b"".join(parts)


def _segment(directory: Path, base_offset: int, raw: bytes) -> Segment:
    segment = Segment.create(QuickFiles(), directory, base_offset)
    segment.path(".log").write_bytes(raw)
    segment.release()
    return Segment(QuickFiles(), directory, base_offset, Sizes(len(raw), 0, 0))


def _entries(segment: Segment) -> Rebuilt:
    index, times = segment.offset_index, segment.time_index
    aborted = segment.aborted
    return (
        list(OFFSET_ENTRY.iter_unpack(index.raw(0, len(index)))),
        list(TIME_ENTRY.iter_unpack(times.raw(0, len(times)))),
        b"" if aborted is None else aborted.raw(0, len(aborted)),
        segment.max_timestamp,
        segment.offset_of_max_timestamp,
    )


def _state(producers: Producers) -> dict[int, bytes]:
    return dict(zip(producers.ids(), producers.states(), strict=True))


def _scanned(directory: Path, base_offset: int, raw: bytes, window_bytes: int) -> Rebuilt:
    segment = _segment(directory, base_offset, raw)
    epochs = LeaderEpochs(QuickFiles(), directory, is_lost=True)
    producers = Producers()
    scan = Scan(epochs, (), base_offset, INTERVAL_BYTES, None, window_bytes)
    end = scan.rebuild(segment, producers)
    found = (end, _entries(segment), _state(producers), epochs.entries, producers.stable_below(99))
    segment.release()
    return found


def _walked(directory: Path, base_offset: int, raw: bytes) -> Rebuilt:
    """The same, one thing after the other."""
    segment = _segment(directory, base_offset, raw)
    epochs = LeaderEpochs(QuickFiles(), directory, is_lost=True)
    producers = Producers()
    position = last_indexed = 0
    next_offset = base_offset
    newest, newest_at = -1, base_offset
    while position < len(raw):
        try:
            header = read_header(raw, position)
        except CorruptData:
            break
        if not verify_crc(raw, position, header) or header.base_offset < next_offset:
            break
        if header.max_timestamp > newest:
            newest, newest_at = header.max_timestamp, header.last_offset
            segment.learn_max_timestamp(newest, newest_at)
        if position - last_indexed > INTERVAL_BYTES:
            segment.offset_index.append(header.last_offset - base_offset, position)
            segment.index_time()
            last_indexed = position
        if header.partition_leader_epoch > epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = apply_batch(producers, segment, Located(position, header))
            if aborted is not None:
                segment.index_aborted(aborted)
        next_offset = header.last_offset + 1
        position += header.size_bytes
    segment.index_time()
    end = position, next_offset
    found = (end, _entries(segment), _state(producers), epochs.entries, producers.stable_below(99))
    segment.release()
    return found


@pytest.mark.parametrize("seed", range(12))
def test_st_8_the_scan_finds_what_a_walk_finds(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    base_offset = random.choice((0, 1000))
    raw = bytearray(_log_of(random, base_offset, 120))
    assert len(raw) > 10 * INTERVAL_BYTES
    for damage in range(4):
        if damage:
            raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
        expected = _walked(tmp_path, base_offset, bytes(raw))
        for window_bytes in (200, 700, 5000, 1 << 20):
            assert _scanned(tmp_path, base_offset, bytes(raw), window_bytes) == expected


def test_st_8_a_length_of_nothing_ends_the_scan(tmp_path: Path) -> None:
    """Its empty body has a checksum, too; the scan may not stand still there."""
    raw = batch(1)
    for length in (-12, 0, 9, 48):
        lying = bytearray(batch(1))
        assign_in_place(lying, 0, 1, 0)
        lying[8:12] = length.to_bytes(4, "big", signed=True)
        stop = max(CHECKED_FROM, length + 12)
        lying[17:21] = crc32c(memoryview(lying)[CHECKED_FROM:stop]).to_bytes(4, "big")
        (end, *_) = _scanned(tmp_path, 0, bytes(raw + lying), 1 << 20)
        assert end == (len(raw), 1)


def test_many_producers_keep_few_headers(tmp_path: Path) -> None:
    """Each is known in the end, though their headers wait in bounded numbers."""
    raw = bytearray()
    for number in range(10_500):
        one = batch(1, 1, producer=(number, 0, 0))
        assign_in_place(one, 0, number, 0)
        raw += one
    (_, _, states, *_) = _scanned(tmp_path, 0, bytes(raw), 1 << 18)
    assert isinstance(states, dict) and len(states) == 10_500


def test_a_large_batch_is_no_end(tmp_path: Path) -> None:
    config = LogConfig()
    raw = bytearray()
    for offset in range(3):
        one = batch(1, config.max_message_bytes - 200)
        assign_in_place(one, 0, offset, 0)
        raw += one
    (end, *_) = _scanned(tmp_path, 0, bytes(raw), 1 << 18)
    assert end == (len(raw), 3)
