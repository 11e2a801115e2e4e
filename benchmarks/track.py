"""How many events `barnabas track serve` takes, how soon it answers, and what it needs for that.

    python -m benchmarks.track [--seconds N] [--rounds N] [--json FILE]

A broker, the server (with and without a journal) and the load are processes of their own, and share
the machine's cores, so the rate per CPU second of the server is less disturbed by other work than
the rate per second. Batches have ten events as a page sends them, and all headers of a browser; the
connections are kept alive. For the rate, each connection sends its next batch once the last one is
answered. The latency is measured at 1,000 events a second, from when a batch was due until its
answer is complete, so that a late batch counts as late; all of it with acks=all. The best of the
rounds counts as the rate, and the median as the latency. All of it is measured when the server
remembers as many ids as it ever does, so that each new one makes it forget an old one; the memory
is what it has at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from barnabas_track.outbox import MOST_IDS
from benchmarks.accounting import cpu_seconds, resident_bytes
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.track_server import Tracking

COMMAND = "python -m benchmarks.track"
SECONDS, ROUNDS = 5.0, 3
CONNECTIONS = 16
BATCH = 10
EVENTS_PER_SECOND = 1_000
GOAL_EVENTS, GOAL_P99_MS = 10_000.0, 20.0
_HEAD = (
    "POST /v1/events HTTP/1.1\r\nHost: track.example\r\nConnection: keep-alive\r\n"
    "Content-Length: {}\r\nContent-Type: text/plain;charset=UTF-8\r\n"
    'sec-ch-ua: "Chromium";v="142", "Not_A Brand";v="99"\r\nsec-ch-ua-mobile: ?0\r\n'
    'sec-ch-ua-platform: "Linux"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)'
    " AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36\r\n"
    "Accept: */*\r\nOrigin: https://shop.example\r\nSec-Fetch-Site: cross-site\r\n"
    "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\nReferer: https://shop.example/\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9\r\n\r\n"
)
_EVENT = (
    '{{"id":"{}-{}","time":{},"name":"pageview","url":"https://shop.example/product?item={}",'
    '"visitor":"3847562910-1928374650-{}","session":"2837465910-{}",'
    '"properties":{{"view":"{}-view","seconds":15,"scroll":60}},"screen":"1920x1080",'
    '"language":"en-GB"}}'
)


class Load(NamedTuple):
    """What was sent: the number of events, the seconds it took and the answers' latencies."""

    events: int
    seconds: float
    latencies_ms: list[float]


class Measured(NamedTuple):
    """What a server did."""

    per_second: float
    per_cpu_second: float
    p50_ms: float
    p99_ms: float
    resident_mb: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    figures: list[Figure] = []
    for name, has_journal in (("", False), (", journal", True)):
        with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as place:
            found = measure(Path(place), given.seconds, given.rounds, has_journal=has_journal)
        figures += figures_of(name, found)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("track serve", figures, given.json)


def figures_of(name: str, found: Measured) -> list[Figure]:
    rate = f"events in batches of {BATCH}{name}"
    latency = f"at {EVENTS_PER_SECOND:,} events/s{name}"
    return [
        Figure(rate, "/s", found.per_second, GOAL_EVENTS, False, command=COMMAND),
        Figure(rate, "/CPU s", found.per_cpu_second, GOAL_EVENTS, False, command=COMMAND),
        Figure(f"p50 {latency}", "ms", found.p50_ms, command=COMMAND),
        Figure(f"p99 {latency}", "ms", found.p99_ms, GOAL_P99_MS, command=COMMAND),
        Figure(f"resident memory{name}", "MB", found.resident_mb, command=COMMAND),
    ]


def measure(directory: Path, seconds: float, rounds: int, *, has_journal: bool) -> Measured:
    with (
        broker_process(directory) as broker,
        server(broker, directory / "journal" if has_journal else None) as running,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process,
    ):
        pid = running.process.pid
        warm = 0
        while warm < MOST_IDS:
            warm += _run(process, running.port, 1.0, None).events
        rates, cpu_rates, p50s, p99s = [], [], [], []
        for _ in range(rounds):
            before_s = cpu_seconds(pid)
            load = _run(process, running.port, seconds, None)
            rates.append(load.events / load.seconds)
            cpu_rates.append(load.events / (cpu_seconds(pid) - before_s))
            steady = _run(process, running.port, seconds, EVENTS_PER_SECOND)
            cuts = statistics.quantiles(steady.latencies_ms, n=100)
            p50s.append(cuts[49])
            p99s.append(cuts[98])
            print(
                f"  {rates[-1]:,.0f}/s, {cpu_rates[-1]:,.0f} per CPU second, p99 {cuts[98]:.1f} ms"
            )
        resident_mb = resident_bytes(pid) / 1e6
    return Measured(
        max(rates), max(cpu_rates), statistics.median(p50s), statistics.median(p99s), resident_mb
    )


@contextlib.contextmanager
def server(broker: BrokerProcess, directory: Path | None) -> Iterator[Tracking]:
    running = Tracking(broker.bootstrap_servers)
    if directory is not None:
        running.options += ["--dir", str(directory)]
    running.start()
    try:
        yield running
    finally:
        running.kill()


def _run(process: Executor, port: int, seconds: float, rate: float | None) -> Load:
    return process.submit(send, port, seconds, rate).result()


# ---- the load, in a process of its own ----


def send(port: int, seconds: float, rate: float | None) -> Load:
    """Send batches for so long: `rate` events a second, or as many as are answered."""
    return asyncio.run(_send(port, seconds, rate))


async def _send(port: int, seconds: float, rate: float | None) -> Load:
    began_s = time.perf_counter()
    end_s = began_s + seconds
    # All connections take the times at which their batches are due from one row.
    due_s = itertools.repeat(0.0) if rate is None else itertools.count(began_s, BATCH / rate)
    rows = await asyncio.gather(*(_connection(port, due_s, end_s) for _ in range(CONNECTIONS)))
    latencies_ms = [each for row in rows for each in row]
    took_s = time.perf_counter() - began_s
    return Load(len(latencies_ms) * BATCH, took_s, latencies_ms)


async def _connection(port: int, due_s: Iterator[float], end_s: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    latencies_ms = []
    name = secrets.token_hex(8)
    for number in itertools.count():
        at_s = next(due_s) or time.perf_counter()
        if at_s > end_s:
            break
        if (wait_s := at_s - time.perf_counter()) > 0:
            await asyncio.sleep(wait_s)
        writer.write(_request(name, number))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        latencies_ms.append((time.perf_counter() - at_s) * 1_000)
    writer.close()
    return latencies_ms


def _request(name: str, number: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    first = number * BATCH
    events = (
        _EVENT.format(name, each, now_ms, each % 100, name, name, name)
        for each in range(first, first + BATCH)
    )
    body = f'{{"events":[{",".join(events)}]}}'
    return (_HEAD.format(len(body)) + body).encode()


if __name__ == "__main__":
    main()
