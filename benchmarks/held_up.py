"""How long everybody else waits while one client asks for much at once.

    python -m benchmarks.held_up [--json FILE]

Another process asks for the versions of the APIs every two milliseconds, on a connection of its
own. The figure is the longest of its round trips while one large request is answered, three
times, and how long that one took. The first row is the longest without any.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from barnabas.protocol.api import API_VERSIONS, FETCH, METADATA
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.brokers import barnabas
from benchmarks.figures import Figure, parser_of, show
from benchmarks.light_client import frame_of
from tests.kit.raw_client import RawClient

FETCHES = 130_000
TOPICS = 300_000
GOAL_MS = 100.0
TIMES = 3
_EVERY_S = 0.002
_PATIENCE_S = 60.0


def main() -> None:
    parser = parser_of(__doc__)
    options = parser.parse_args()
    show("Longest wait of the others", measure(), options.json)


def measure(share: float = 1.0) -> list[Figure]:
    """With that share of the entries in each request."""
    figures = []
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        barnabas(Path(directory), "auto.create.topics.enable=false") as broker,
    ):
        longest_ms, _ = _beside(broker.servers, lambda: time.sleep(1))
        figures.append(Figure("nothing", "ms", longest_ms))
        for what, frame in _requests(share).items():
            longest_ms, took_s = _beside(broker.servers, partial(_ask, broker.servers, frame))
            figures.append(Figure(what, "ms", longest_ms, GOAL_MS))
            figures.append(Figure(f"{what}: each took", "s", took_s / TIMES))
    return figures


def _requests(share: float) -> dict[str, bytes]:
    """Frames, by what they ask for."""
    fetches, topics = int(FETCHES * share), int(TOPICS * share)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    fetch = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1,
        topics=[FetchTopic(topic="absent", partitions=[partition] * fetches)],
    )
    names = [MetadataRequestTopic(name=f"no{number}") for number in range(topics)]
    metadata = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    return {
        f"Fetch, {fetches:,} times one partition": frame_of(FETCH, 11, fetch),
        f"Metadata of {topics:,} unknown topics": frame_of(METADATA, 9, metadata),
    }


def _ask(servers: str, frame: bytes) -> None:
    with RawClient(servers) as client:
        for _ in range(TIMES):
            client.send_bytes(frame)
            assert client.receive_frame()


def _beside(servers: str, work: Callable[[], None]) -> tuple[float, float]:
    """The longest round trip of the other process, in ms, while the work is done; its seconds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_ask_all_the_time, args=(servers, theirs))
    process.start()
    try:
        ours.recv()  # it has begun
        began = time.perf_counter()
        work()
        took_s = time.perf_counter() - began
        ours.send("end")
        longest_s: float = ours.recv()
    finally:
        process.join(_PATIENCE_S)
    return longest_s * 1000, took_s


def _ask_all_the_time(servers: str, results: Connection) -> None:
    longest_s = 0.0
    frame = frame_of(API_VERSIONS, 0, ApiVersionsRequest())
    with RawClient(servers) as client:
        results.send("begun")
        while not results.poll(_EVERY_S):
            began = time.perf_counter()
            client.send_bytes(frame)
            client.receive_frame()
            longest_s = max(longest_s, time.perf_counter() - began)
    results.send(longest_s)


if __name__ == "__main__":
    main()
