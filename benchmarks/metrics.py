"""How long `/metrics` keeps a broker busy, and how long other requests wait meanwhile.

    python -m benchmarks.metrics [--partitions N] [--json FILE]

A broker process has that many partitions. The CPU time of a page is that of the whole process for a
number of pages, divided by it. While the pages are read, another connection sends ApiVersions as
fast as it is answered; its slowest answer bounds a slice of the loop's time.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.protocol.api import API_VERSIONS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.broker_process import broker_process, free_port
from tests.kit.raw_client import RawClient

COMMAND = "python -m benchmarks.metrics"
PARTITIONS, PER_TOPIC, PAGES = 1_000, 10, 20
GOAL_PAGE_MS, GOAL_SLICE_MS = 50.0, 5.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    given = parser.parse_args()
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as directory,
        broker_process(Path(directory), f"barnabas.metrics.port={port}") as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
    ):
        topics = given.partitions // PER_TOPIC
        admin.create_topics([NewTopic(f"topic-{number}", PER_TOPIC) for number in range(topics)])
        assert broker.process is not None
        idle_ms, _ = waits_ms(broker.bootstrap_servers, pause)
        page_cpu_ms = cpu_ms(broker.process.pid, port)
        slowest_ms, size = waits_ms(
            broker.bootstrap_servers, lambda: [read(port) for _ in range(PAGES)][-1]
        )
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    partitions = f"{given.partitions:,} partitions"
    figures = [
        Figure(f"CPU of a page, {partitions}", "ms", page_cpu_ms, GOAL_PAGE_MS, command=COMMAND),
        Figure("slowest other answer meanwhile", "ms", slowest_ms, GOAL_SLICE_MS, command=COMMAND),
        Figure("slowest other answer before", "ms", idle_ms, command=COMMAND),
        Figure("size of a page", "KB", size / 1_000, command=COMMAND),
    ]
    show("metrics page", figures, given.json)


def pause() -> int:
    """Do nothing for a second."""
    time.sleep(1)
    return 0


def read(port: int) -> int:
    """Read a page, and return its size in bytes."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        return len(response.read())


def cpu_ms(pid: int, port: int) -> float:
    """Return the CPU time of the process for each page."""
    read(port)
    before = _ticks(pid)
    for _ in range(PAGES):
        read(port)
    return (_ticks(pid) - before) / _TICKS_PER_SECOND * 1_000 / PAGES


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])  # utime and stime


def waits_ms(servers: str, work: Callable[[], int]) -> tuple[float, int]:
    """Return the slowest answer to ApiVersions while `work` is done, and what that returned."""
    is_over = threading.Event()
    slowest: list[float] = [0.0]

    def ask() -> None:
        with RawClient(servers) as client:
            while not is_over.is_set():
                began_s = time.perf_counter()
                client.call(API_VERSIONS, 0, ApiVersionsRequest())
                slowest[0] = max(slowest[0], time.perf_counter() - began_s)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        result = work()
    finally:
        is_over.set()
        thread.join()
    return slowest[0] * 1_000, result


if __name__ == "__main__":
    main()
