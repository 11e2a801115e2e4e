"""Passes of compaction over a log, in this process, and what is then in the log."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.records.batch import BatchHeader
from barnabas.records.control_records import Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.storage.cleaner import Limits, examine, job_of, last_records
from barnabas.storage.compaction.compaction import Compaction
from barnabas.storage.compaction.job import Finished, Replacement
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from tests.kit.storage.disk import T0, QuickFiles, append, make_transactional

LIMITS = Limits(buffer_bytes=1 << 27, read_bytes=4096, bytes_per_second=1e18)
NOW = T0 + 1_000_000

Pair = tuple[bytes, bytes | None]


def keyed(
    *pairs: Pair,
    timestamp: int = T0,
    step_ms: int = 1,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
) -> bytearray:
    """A batch of keys and values; the producer is (id, epoch, sequence)."""
    builder = BatchBuilder(codec, *producer)
    for i, (key, value) in enumerate(pairs):
        builder.append(timestamp + i * step_ms, key, value)
    raw = bytearray(builder.build())
    if is_transactional:
        make_transactional(raw)
    return raw


def write(log: Log, *pairs: Pair, timestamp: int = T0, codec: int = 0) -> int:
    """One batch; returns its base offset."""
    return append(log, keyed(*pairs, timestamp=timestamp, codec=codec)).base_offset


def end(log: Log, kind: int, producer_id: int, *, epoch: int = 0, timestamp: int = T0) -> int:
    """A transaction's marker; returns its offset."""
    marker = bytearray(build_marker(Marker(0, timestamp, kind, 0), producer_id, epoch))
    offset = log.append_control(memoryview(marker), 0, timestamp).base_offset
    log.write_staged()
    return offset


def roll(log: Log) -> None:
    """What was written so far may be cleaned."""
    if log.segments[-1].size_bytes:
        log.roll()


def clean(
    log: Log,
    *,
    now_ms: int = NOW,
    stable_offset: int | None = None,
    limits: Limits = LIMITS,
    files: Files | None = None,
) -> Finished | None:
    """One pass, whether it is due or not; None if there is nothing that may be cleaned."""
    files = files or QuickFiles()
    stable = log.last_stable_offset(log.log_end_offset) if stable_offset is None else stable_offset
    cleanable = examine(log, stable, now_ms)
    if not cleanable.sources:
        return None
    job = job_of(cleanable, limits, now_ms)
    if 0 <= log.gaps.end < job.end_offset:
        for flush in log.take_unflushed():
            flush()
        log.gaps.note(job.end_offset)
    producers = last_records(log.producers, job.end_offset)
    segments = {each.base_offset: each for each in cleanable.sources}
    for event in Compaction(files, log.directory, job, producers).run():
        if isinstance(event, Replacement):
            assert log.swaps.begin([segments[i] for i in event.replaced], event.sizes)
            files.sync(log.directory)
            assert log.finish_swap(now_ms)
        elif isinstance(event, Finished):
            log.first_dirty_offset = event.first_dirty_offset
            return event
    raise AssertionError("the pass did not end")


def headers(log: Log) -> list[BatchHeader]:
    """Of all batches that the log holds."""
    log.write_staged()
    return [found.header for each in log.segments for found in each.headers(0)]


def spans(found: Sequence[BatchHeader]) -> list[tuple[int, int, int]]:
    """First and last offset and number of records of each."""
    return [(each.base_offset, each.last_offset, each.record_count) for each in found]
