"""How long a follower holds its loop up that cuts its logs back (RE-10).

    python -m benchmarks.truncation [--cuts N] [--partitions N]

Two things: one record cut off a segment of 100 MiB of small batches, with and without producers;
and a record off each of `--cuts` logs, as answers of a new leader bring it, in a broker that has
`--partitions`, all of which were flushed and checkpointed. The longest turn of the loop is what
others wait for: clients, the session in ZooKeeper.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable
from functools import partial
from pathlib import Path

from barnabas.broker.runtime.steps import Steps, in_turns
from barnabas.config import LogConfig
from barnabas.records.record import BatchBuilder
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show

CUTS, PARTITIONS = 500, 5_000
_SEGMENT_BYTES = 100 << 20
_CUTS_PER_TURN = 4  # as a fetcher's
_NOW_MS = 1_700_000_000_000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    show("truncation", measure(options.cuts, options.partitions), options.json)


def measure(cuts: int, partitions: int) -> list[Figure]:
    figures = []
    for has_producer in (False, True):
        with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
            store = _store(Path(directory))
            name = _large(store, has_producer=has_producer)
            took_s, longest_s = asyncio.run(_cut(store, [name]))
            what = "with producers" if has_producer else "no producer"
            figures += [
                Figure(f"one record off 100 MiB, {what}", "s", took_s),
                Figure(f"one record off 100 MiB, {what}: longest turn", "s", longest_s, 0.05),
            ]
            store.close()
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        store = _store(Path(directory))
        names = _many(store, partitions)
        took_s, longest_s = asyncio.run(_cut(store, names[:cuts]))
        figures += [
            Figure(f"{cuts} cuts, {partitions} partitions", "s", took_s),
            Figure(f"{cuts} cuts, {partitions} partitions: longest turn", "s", longest_s, 0.05),
        ]
        store.close()
    return figures


def _store(directory: Path) -> LogStore:
    return LogStore.open(OsFiles(), [directory], config=LogConfig(), broker_id=0, now_ms=0)


def _batch(producer: tuple[int, int, int]) -> bytearray:
    builder = BatchBuilder(0, *producer)
    builder.append(_NOW_MS, None, b"x" * 30)
    return bytearray(builder.build())


def _large(store: LogStore, *, has_producer: bool) -> TopicPartition:
    name = TopicPartition("large", 0)
    log = store.create(name, bytes(16), LogConfig())
    sequence = 0
    while log.size_bytes < _SEGMENT_BYTES:
        for _ in range(1_000):
            producer = (7, 0, sequence) if has_producer else (-1, -1, -1)
            log.append(memoryview(_batch(producer)), 1, _NOW_MS)
            sequence += 1
        log.write_staged()
    _flush(store, [log])
    return name


def _many(store: LogStore, partitions: int) -> list[TopicPartition]:
    names = [TopicPartition("t", number) for number in range(partitions)]
    for name in names:
        log = store.create(name, bytes(16), LogConfig())
        for _ in range(20):
            log.append(memoryview(_batch((-1, -1, -1))), 1, _NOW_MS)
        log.write_staged()
    _flush(store, [store.logs[name] for name in names])
    return names


def _flush(store: LogStore, logs: list[Log]) -> None:
    for log in logs:
        log.flush()
        log.release()
    store.checkpoint_recovery_points()


async def _cut(store: LogStore, names: list[TopicPartition]) -> tuple[float, float]:
    """Seconds in all, and of the longest turn of the loop."""

    async def cut_all() -> None:
        for done, name in enumerate(names, 1):
            store.truncations.begin(name, store.logs[name].log_end_offset - 1)
            if done % _CUTS_PER_TURN == 0:
                await asyncio.sleep(0)
        await in_turns(_settle(store, names))

    return await longest_turn(cut_all())


def _settle(store: LogStore, names: list[TopicPartition]) -> Steps[None]:
    """Have on disk what was cut, as `broker.replication.followed.settling` does."""
    for name in names:
        yield from store.truncations.learn(name)
    yield partial(store.truncations.settle, names)


async def longest_turn(work: Awaitable[object]) -> tuple[float, float]:
    """Seconds that it took, and of the longest time for which nothing else had its turn.

    Looks each millisecond: who never rests keeps the interpreter from the threads of the work.
    """
    longest = 0.0
    began = last = time.perf_counter()
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    task.result()
    return time.perf_counter() - began, longest


if __name__ == "__main__":
    main()
