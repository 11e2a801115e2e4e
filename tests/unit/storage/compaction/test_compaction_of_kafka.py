"""ST-7: what is left is what Kafka 3.9.1 left of the same records: its fixtures' input, written
again by their README, and cleaned at the times that Kafka's delete horizons give away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.config import LogConfig
from barnabas.records.compression import GZIP
from barnabas.records.control_records import ABORT, COMMIT
from barnabas.records.record import BatchBuilder
from barnabas.storage.log import Log
from tests.kit.foreign import require_shared
from tests.kit.storage.disk import T0, append, make_transactional, open_at, records
from tests.kit.storage.passes import clean, end, headers, keyed, write

pytestmark = pytest.mark.foreign

CONFIG = LogConfig(
    cleanup_policy="compact",
    segment_bytes=1500,
    index_interval_bytes=256,
    delete_retention_ms=86400000000,
    segment_ms=2**62,
)
GONE = CONFIG._replace(delete_retention_ms=200)


def expected(partition: str) -> list[list[Any]]:
    """Kafka's batches; the columns are position, size, magic, base, last, count, codec,
    attributes, leader epoch, base and max timestamp, producer id, epoch, sequence, horizon, crc."""
    path = require_shared() / "fixtures/kafka-3.9/expected/single-batches.json"
    segments = json.loads(path.read_text())[partition]["segments"]
    return [batch for segment in segments for batch in segment["batches"]]


def expected_records(partition: str) -> list[list[Any]]:
    path = require_shared() / "fixtures/kafka-3.9/expected/single-records.json"
    found: list[list[Any]] = json.loads(path.read_text())[partition]
    return found


def ours(log: Log) -> list[list[Any]]:
    """The same columns, but for position, codec's name and horizon."""
    return [
        [
            h.size_bytes,
            2,
            h.base_offset,
            h.last_offset,
            h.record_count,
            h.attributes,
            *h[7:12],
            h.crc,
        ]
        for h in headers(log)
    ]


def theirs(partition: str) -> list[list[Any]]:
    return [[*b[1:6], b[7], *b[9:14], b[15]] for b in expected(partition)]


def write_rounds(log: Log, codec: int = 0) -> None:
    """Eight rounds over ten keys; two tombstones for them, and one for a key that never was."""
    for i in range(8):
        value = b"round-%d-yyyyyyyyyy" % i
        pairs = [(b"k%d" % key, value) for key in range(10)]
        write(log, *pairs, timestamp=T0 + 100 * i, codec=codec)
    write(
        log, (b"k3", None), (b"only-once", b"stays"), (b"k7", None), timestamp=T0 + 900, codec=codec
    )
    write(log, (b"never-seen", None), timestamp=T0 + 903, codec=codec)


def fill(log: Log, count: int, value: str, timestamp: int) -> None:
    """Batches of one record each, over four keys: they push what is before into closed segments."""
    for i in range(count):
        text = value.format(i).encode()
        write(log, (b"filler-%d" % (i % 4), text), timestamp=timestamp + i)


def fill_up_to(log: Log, end_offset: int) -> None:
    """As Kafka's were filled: the last twenty records are the ones that are left."""
    fill(log, end_offset - 20 - log.log_end_offset, "f{}-" + "z" * 80, T0 + 1000)
    log.assign_leader_epoch(6)
    for i in range(20):
        text = f"g50-{i}-{'w' * 80}".encode()
        append(log, keyed((b"filler-%d" % (i % 4), text), timestamp=T0 + 50000 + i), epoch=6)


def horizon_of(partition: str, base_offset: int) -> int:
    return next(int(b[14]) for b in expected(partition) if b[3] == base_offset)


def values(log: Log) -> list[list[Any]]:
    found = []
    for each in records(log):
        assert each.key is not None
        value = None if each.value is None else each.value.decode()
        found.append([each.offset, each.timestamp, each.key.decode(), value])
    return found


def test_two_policies_and_two_passes(tmp_path: Path) -> None:
    """compact-delete-0: tombstones got their horizons in two passes."""
    config = CONFIG._replace(cleanup_policy="compact,delete", delete_retention_ms=86400000)
    log = open_at(tmp_path, config)
    write_rounds(log)
    clean(log, now_ms=horizon_of("compact-delete-0", 80) - 86400000)
    fill(log, 20, "f{}-" + "z" * 80, T0 + 1000)
    clean(log, now_ms=horizon_of("compact-delete-0", 83) - 86400000)
    assert ours(log)[:3] == theirs("compact-delete-0")[:3]
    # Kafka's last pass was over before the last segment but one was closed.
    kept = [
        each for each in theirs("compact-delete-0")[3:] if each[2] >= headers(log)[3].base_offset
    ]
    assert ours(log)[3:] == kept
    print(f"{len(ours(log))} batches as Kafka left them")


def test_tombstones_stay_until_their_horizon(tmp_path: Path) -> None:
    """compact-0"""
    log = open_at(tmp_path, CONFIG)
    write_rounds(log)
    fill_up_to(log, 184)
    clean(log, now_ms=horizon_of("compact-0", 80) - CONFIG.delete_retention_ms)
    assert ours(log)[:3] == theirs("compact-0")[:3]
    assert values(log)[:12] == expected_records("compact-0")[:12]


def test_tombstones_whose_horizon_is_over_are_gone(tmp_path: Path) -> None:
    """compact-gone-0: the horizon stays in the batch of which a record is left."""
    log = open_at(tmp_path, GONE)
    write_rounds(log)
    fill_up_to(log, 164)
    now_ms = horizon_of("compact-gone-0", 80) - 200
    clean(log, now_ms=now_ms)
    fill(log, 20, "f{}-" + "z" * 80, T0 + 2000)
    clean(log, now_ms=now_ms + 200)
    assert ours(log)[:2] == theirs("compact-gone-0")[:2]
    assert values(log)[:9] == expected_records("compact-gone-0")[:9]


def test_the_codec_stays(tmp_path: Path) -> None:
    """compact-gzip-0, but for the compressed bytes: Java's gzip has another header."""
    log = open_at(tmp_path, CONFIG)
    write_rounds(log, GZIP)
    fill_up_to(log, 184)
    clean(log, now_ms=horizon_of("compact-gzip-0", 80) - CONFIG.delete_retention_ms)
    wanted = [each[:-1] for each in theirs("compact-gzip-0")[:2]]
    assert [each[:-1] for each in ours(log)[:2]] == wanted
    assert values(log)[:12] == expected_records("compact-gzip-0")[:12]


def write_transactions(log: Log, partition: str) -> None:
    """Committed, aborted, another producer's that the third one makes obsolete, and the third."""
    times = {batch[3]: batch[10] for batch in expected(partition)}
    first, second = (4009, 4010) if partition.endswith("gone-0") else (4007, 4008)

    def send(producer: tuple[int, int, int], timestamp: int, step_ms: int, *pairs: Any) -> None:
        append(
            log,
            keyed(
                *pairs,
                timestamp=timestamp,
                step_ms=step_ms,
                producer=producer,
                is_transactional=True,
            ),
        )

    send((first, 0, 0), T0, 1, *[(b"k%d" % i, b"committed") for i in range(5)])
    end(log, COMMIT, first, timestamp=times[5])
    send((first, 0, 5), T0 + 10, 1, *[(b"k%d" % i, b"aborted") for i in range(5)])
    end(log, ABORT, first, timestamp=times.get(11, times[5] + 10))
    send((second, 0, 0), T0 + 20, 1, *[(b"k%d" % i, b"other") for i in range(3)])
    end(log, COMMIT, second, timestamp=times[15])
    newest = [(b"k%d" % i, b"newest") for i in range(3)]
    batch = BatchBuilder(0, first, 0, 10)
    for i, (key, value) in enumerate(newest):
        batch.append(T0 + 30 + i, key, value)
    batch.append(T0 + 40, b"k4", None)
    raw = bytearray(batch.build())
    make_transactional(raw)
    append(log, raw)
    end(log, COMMIT, first, timestamp=times[20])
    assert log.log_end_offset == 21


def test_transactions(tmp_path: Path) -> None:
    """compact-txn-0: aborted data is gone, its marker got a horizon in the pass after that, and the
    other producer's last batch is there without its records."""
    log = open_at(tmp_path, CONFIG)
    write_transactions(log, "compact-txn-0")
    fill_up_to(log, 101)
    clean(log, now_ms=horizon_of("compact-txn-0", 16) - CONFIG.delete_retention_ms)
    assert len(log.aborted_transactions(0, 30)) == 1  # this pass has met its data
    fill(log, 20, "f{}-" + "z" * 80, T0 + 2000)
    clean(log, now_ms=horizon_of("compact-txn-0", 11) - CONFIG.delete_retention_ms)
    assert log.aborted_transactions(0, 30) == []
    assert ours(log)[:7] == theirs("compact-txn-0")[:7]
    assert values(log)[:5] == expected_records("compact-txn-0")[:5]


def test_markers_whose_horizon_is_over_are_gone(tmp_path: Path) -> None:
    """compact-txn-gone-0"""
    log = open_at(tmp_path, GONE)
    write_transactions(log, "compact-txn-gone-0")
    now_ms = horizon_of("compact-txn-gone-0", 16) - 200
    for i in range(4):
        fill(log, 20, "f{}-" + "z" * 80, T0 + 2000 * i)
        clean(log, now_ms=now_ms + 200 * i)
    assert ours(log)[:6] == theirs("compact-txn-gone-0")[:6]
    assert values(log)[:4] == expected_records("compact-txn-gone-0")[:4]
