"""What half a million producers in one partition cost.

    python -m benchmarks.producers [--producers N] [--json FILE]

Memory for each of them; what a batch of a producer pays for its sequence, `check` and `apply`; how
long the event loop is held by a roll, which has to remember all of them as they are, and by the
longest step of the look for idle ones; and how long a thread is busy with the snapshot. All times
are of the processor, so that a busy machine does not spoil them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.config import LogConfig
from barnabas.records.batch import BatchHeader
from barnabas.records.record import BatchBuilder
from barnabas.storage.files import OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.producers import Producers
from barnabas.storage.recovery import open_log
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.producers"
NOW_MS = 1_700_000_000_000
PRODUCERS = 500_000
GOAL_BYTES, GOAL_STEP_MS = 300.0, 10.0
ROUNDS, BATCHES = 5, 50_000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--producers", type=int, default=PRODUCERS)
    options = parser.parse_args()
    show("producers", measure(options.producers), options.json)


def measure(count: int) -> list[Figure]:
    before = _resident_bytes()
    producers = Producers()
    for i in range(count):
        producers.apply(_header(1_000_000 + i, 0), 10_000_000 + i, NOW_MS + i // 100)
    each = (_resident_bytes() - before) / count
    figures = [
        Figure("memory of a producer", "bytes", each, GOAL_BYTES, command=COMMAND),
        Figure("check and apply", "ns", _per_batch_ns(), command=COMMAND),
    ]
    hold_ms, thread_ms = _snapshot_ms(producers)
    steps = list(_steps_ms(producers.expiring(NOW_MS + count)))
    assert len(producers) == 0
    return [
        *figures,
        Figure("roll", "ms", hold_ms, GOAL_STEP_MS, command=COMMAND),
        Figure("snapshot in a thread", "ms", thread_ms, command=COMMAND),
        Figure("longest step of the expiry", "ms", max(steps), GOAL_STEP_MS, command=COMMAND),
        Figure("all steps of the expiry", "ms", sum(steps), command=COMMAND),
    ]


def _header(producer_id: int, sequence: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, 0, 5, 5, producer_id, 0, sequence, 1)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _per_batch_ns() -> float:
    """The best of some rounds, of processor time."""
    return min(_round_ns() for _ in range(ROUNDS))


def _round_ns() -> float:
    producers = Producers()
    headers = [_header(7, i) for i in range(BATCHES)]
    began = time.process_time()
    for i, header in enumerate(headers):
        producers.check(header)
        producers.apply(header, i, NOW_MS)
    return (time.process_time() - began) / BATCHES * 1e9


def _snapshot_ms(producers: Producers) -> tuple[float, float]:
    """Of a roll, and of what it leaves to a thread. The best of some rounds."""
    rolls, writes = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
            log = _log(Path(directory))
            log.producer_state.producers = producers
            rolls.append(_ms(log.roll))
            writes.append(sum(map(_ms, log.take_unflushed())))
            log.release()
    return min(rolls), min(writes)


def _log(directory: Path) -> Log:
    config, start = LogConfig(), Start(is_clean=True)
    log = open_log(OsFiles(), directory, TopicPartition("t", 0), config, start)
    builder = BatchBuilder()
    builder.append(NOW_MS, b"key", b"value")
    log.append(memoryview(bytearray(builder.build())), 0, NOW_MS)
    log.write_staged()
    return log


def _ms(action: Callable[[], object]) -> float:
    began = time.thread_time()
    action()
    return (time.thread_time() - began) * 1000


def _steps_ms(steps: Iterator[None]) -> Iterator[float]:
    while True:
        began = time.thread_time()
        is_over = next(steps, steps) is steps
        yield (time.thread_time() - began) * 1000
        if is_over:
            return


if __name__ == "__main__":
    main()
