"""How fast a broker reads its log again after `kill -9`.

    python -m benchmarks.recovery [--megabytes N] [--json FILE]

A partition is filled, the broker killed, and started again: the difference to a start after a clean
stop, over the bytes of the log. Nothing of it was flushed, so all is scanned and its checksums are
verified, and the indexes are rebuilt. The log is in the page cache: this is the price of the
scan, not of the disk.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.raw_client import Frames, batch_of, fill, produce_frame
from benchmarks.startup import restarted_ms, stop
from tests.kit.processes.broker_process import BrokerProcess

COMMAND = "python -m benchmarks.recovery"
TOPIC = "recovered"
MEGABYTE = 1e6
NOISE_MS = 5.0  # of a start; less than that cannot be measured
SMALL_SHARE = 8  # one-record batches are so much slower that fewer megabytes do
CASES = (
    ("16 KiB batches", 16 * 1024, b"x" * 100, 500.0),
    ("one-record batches", 0, b"x" * 100, None),
    ("100-byte batches", 0, b"x" * 32, 150.0),
)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    options = parser.parse_args()
    figures = measure(options.megabytes)
    show("recovery scan", figures, options.json)


def measure(megabytes: int) -> list[Figure]:
    figures = []
    for name, batch_bytes, value, goal in CASES:
        volume = int(megabytes * MEGABYTE) // (1 if batch_bytes else SMALL_SHARE)
        rate, batches = recovered(batch_of(batch_bytes, value)[0], volume)
        figures += [
            Figure(f"recovery, {name}", "MB/s", rate, goal, False, command=COMMAND),
            Figure(f"recovery, {name}", "batches/s", batches, command=COMMAND),
        ]
    return figures


def recovered(batch: bytes, volume: int) -> tuple[float, float]:
    """Megabytes and batches a second."""
    frame, _, _ = produce_frame(TOPIC, batch)
    count = max(1, volume // len(batch))
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        broker = BrokerProcess(Path(directory))
        try:
            broker.start()
            create_topic(broker.bootstrap_servers, TOPIC, 1)
            clean_ms = restarted_ms(broker)
            fill(broker.port, Frames([frame], 1, 64), count)
            broker.kill()
            seconds = max(restarted_ms(broker) - clean_ms, NOISE_MS) / 1000
            stop(broker)
        finally:
            if broker.process is not None:
                broker.kill()
    return count * len(batch) / MEGABYTE / seconds, count / seconds


if __name__ == "__main__":
    main()
