"""How far the live view of `barnabas pages serve` is behind its topic, and what it needs for that.

    python -m benchmarks.now [--rate N] [--seconds N] [--json FILE]

A process sends that many events a second to a broker, both on this machine, and a viewer reads the
stream. A view is behind by the time since the first event was sent that it does not count, at the
moment before the next view replaces it: this includes the producer, the broker, the counting and
the stream, but no browser. `behind_ms` is what the view says of itself. The processor time is that
of the serving process, after it has counted the events that were in the topic before: those of half
an hour at the same rate, or as many as it reads at most. The load of the machine is printed, since
everything here shares its cores.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import barnabas
from barnabas.client import SyncProducer
from barnabas_pipeline.pages.last_half_hour import MINUTE_MS, SPAN_MS
from barnabas_pipeline.pages.now_feed import USUAL
from barnabas_pipeline.pages.shapes import Now
from benchmarks.figures import Figure, parser_of, show
from tests.kit.pipeline import event_records
from tests.kit.processes.web_console import WebConsole, pages_server

COMMAND = "python -m benchmarks.now"
RATE, SECONDS = 5_000, 30
GOAL_BEHIND_S = 2.0
TOPIC = "events"
_PAUSE_S = 0.02
_PAGES, _VISITORS = 500, 20_000


class Load(NamedTuple):
    """What a number of seconds took. `behind_s`: of each view."""

    behind_s: list[float]
    said_s: list[float]
    cores: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rate", type=int, default=RATE, help="events a second")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    given = parser.parse_args()
    earlier = min(given.rate * SPAN_MS // 1_000, USUAL.most_records)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as directory, barnabas.Broker() as broker:
        out, servers = Path(directory), broker.bootstrap_servers
        broker.topic(TOPIC, partitions=3)
        event_records.take(out / "tables", 0, event_records.records([event_records.event("1")]))
        fill(servers, earlier)
        with pages_server(out, "--bootstrap-server", servers) as server:
            began_s = time.monotonic()
            with server.follow("/api/now/stream") as views:
                next(view for view in views if view["hits"] >= earlier)
                caught_up_s = time.monotonic() - began_s
                load = under_load(server, views, (servers, given.rate, given.seconds))
            resident_mb = _resident_mb(server.process.pid)
    rate = f"at {given.rate:,} events/s"
    figures = [
        Figure(f"behind, worst view {rate}", "s", max(load.behind_s), GOAL_BEHIND_S),
        Figure(f"behind, median view {rate}", "s", statistics.median(load.behind_s), GOAL_BEHIND_S),
        Figure(f"`behind_ms`, worst view {rate}", "s", max(load.said_s), GOAL_BEHIND_S),
        Figure(f"processor time {rate}", "cores", load.cores),
        Figure(f"until {earlier:,} earlier events are counted", "s", caught_up_s),
        Figure("resident memory of the server", "MB", resident_mb),
    ]
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("live view", [each._replace(command=COMMAND) for each in figures], given.json)


def fill(servers: str, count: int) -> None:
    """Send events of the last half hour without its first and last minutes."""
    end_ms = time.time_ns() // 1_000_000 - 2 * MINUTE_MS
    span_ms = SPAN_MS - 4 * MINUTE_MS
    with SyncProducer(servers, linger_ms=20, batch_size=500_000) as producer:
        for number in range(count):
            at_ms = end_ms - span_ms * (count - number) // count
            producer.send(TOPIC, event(number, at_ms), timestamp_ms=at_ms, partition=number % 3)


def event(number: int, at_ms: int) -> bytes:
    made = {
        "id": f"{at_ms:x}-{number:012}",
        "time": at_ms,
        "name": "pageview" if number % 4 else "click",
        "url": f"https://shop.example/products/{number * 7919 % _PAGES}",
        "referrer": "https://search.example/" if number % 10 == 0 else "https://shop.example/",
        "visitor": f"visitor-{number * 104_729 % _VISITORS:08}",
        "session": f"session-{number * 104_729 % _VISITORS:08}",
        "screen": "1920x1080",
        "language": "en-GB",
        "received": at_ms,
        "bot": False,
        "private": False,
    }
    return json.dumps(made, separators=(",", ":")).encode()


def under_load(server: WebConsole, views: Iterator[Now], sent: tuple[str, int, int]) -> Load:
    """Send events, and note each view."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=send_steadily, args=(*sent, theirs))
    process.start()
    first = ours.recv()  # the time of the first event
    used_s, began_s = _processor_s(server.process.pid), time.monotonic()
    seen: list[tuple[float, int, float]] = []
    seconds = sent[2]
    for view in views:
        hits = sum(
            each["hits"] for each in view["minutes"] if each["at"] > first * 1_000 - MINUTE_MS
        )
        seen.append((time.time(), hits, view["behind_ms"] / 1_000))
        if time.time() - first > seconds:
            break
    cores = (_processor_s(server.process.pid) - used_s) / (time.monotonic() - began_s)
    times = ours.recv()
    process.join()
    behind = [
        until - times[hits]
        for (_, hits, _), (until, _, _) in pairwise(seen)
        if 0 < hits < len(times)
    ]
    return Load(behind, [said for _, hits, said in seen if hits > 0], cores)


def send_steadily(servers: str, rate: int, seconds: int, noted: Connection) -> None:
    """Send events at a rate, and note the time of each one."""
    times: list[float] = []
    with SyncProducer(servers, linger_ms=5) as producer:
        began_s = time.monotonic()
        noted.send(time.time())
        while (passed_s := time.monotonic() - began_s) < seconds:
            for _ in range(int(passed_s * rate) - len(times)):
                at_s = time.time()
                producer.send(TOPIC, event(len(times), int(at_s * 1_000)))
                times.append(at_s)
            time.sleep(_PAUSE_S)
    noted.send(times)


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    [resident] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(resident.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()
