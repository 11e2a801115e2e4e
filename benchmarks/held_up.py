"""How long everybody else waits while one client asks for much at once.

    python -m benchmarks.held_up [--json FILE]

Another process asks for the versions of the APIs every two milliseconds, on a connection of its
own. The figure is the longest of its round trips while one request is answered that names as much
as a request may: each list of each API in turn, at a broker without an authorizer and at one whose
rules allow this client nothing. The first row of each is the longest without any; the last one is
of many clients that start together, and ask at the same moment for the same metadata.
"""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from barnabas.protocol.api import API_VERSIONS, METADATA
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.brokers import barnabas
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.light_client import frame_of
from benchmarks.long_lists import long_requests
from tests.kit.raw_client import RawClient

ENTRIES = 100_000
GOAL_MS = 100.0
CLIENTS, PARTITIONS = 300, 2_000
CLIENTS_GOAL_MS = 50.0
_EVERY_S = 0.002
_PATIENCE_S = 120.0
_WITH_RULES = (
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    "super.users=User:admin",
)

LongestDuring = Callable[[Callable[[], None]], tuple[float, float]]
"""Does something, and returns the longest round trip of the other process meanwhile, in ms, and how
many seconds it took."""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="APIs whose name begins with this")
    options = parser.parse_args()
    show("Longest wait of the others", measure(only=options.only), options.json)


def measure(share: float = 1.0, only: str = "") -> list[Figure]:
    """With that share of the entries in each request, for the lists that are named."""
    return [
        *_measure("no rules", (), share, only),
        *_measure("all denied", _WITH_RULES, share, only),
    ]


def _measure(broker_kind: str, options: tuple[str, ...], share: float, only: str) -> list[Figure]:
    figures = []
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        barnabas(Path(directory), "auto.create.topics.enable=false", *options) as broker,
        _watcher(broker.servers) as longest_during,
    ):
        longest_ms, _ = longest_during(lambda: time.sleep(1))
        figures.append(Figure(f"{broker_kind}: nothing", "ms", longest_ms))
        for what, frame in long_requests(int(ENTRIES * share), only):
            longest_ms, took_s = longest_during(partial(_ask, broker.servers, frame))
            name = f"{broker_kind}: {what} ({took_s:.1f} s)"
            figures.append(Figure(name, "ms", longest_ms, GOAL_MS))
        if not options and not only:
            figures.append(_together(broker.servers, share, longest_during))
    return figures


def _together(servers: str, share: float, longest_during: LongestDuring) -> Figure:
    """Many clients at once, that ask for the metadata of a large topic."""
    clients, partitions = int(CLIENTS * share), int(PARTITIONS * share)
    create_topic(servers, "large", partitions)
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="large")])
    frame = frame_of(METADATA, 9, wanted)
    with ExitStack() as stack:
        sockets = [stack.enter_context(RawClient(servers)) for _ in range(clients)]

        def ask() -> None:
            for client in sockets:
                client.send_bytes(frame)
            for client in sockets:
                assert client.receive_frame()

        longest_ms, took_s = longest_during(ask)
    what = f"Metadata of {partitions:,} partitions, {clients} clients at once ({took_s:.1f} s)"
    return Figure(what, "ms", longest_ms, CLIENTS_GOAL_MS)


def _ask(servers: str, frame: bytes) -> None:
    """Until there is an answer, or the connection is closed: a refusal as well."""
    with RawClient(servers, timeout_s=_PATIENCE_S) as client:
        client.send_bytes(frame)
        try:
            client.receive_frame()
        except (OSError, EOFError) as error:
            assert not isinstance(error, socket.timeout), error


@contextmanager
def _watcher(servers: str) -> Iterator[LongestDuring]:
    """A function that does something, and returns the longest round trip of the other process
    meanwhile, in ms, and how many seconds it took."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_ask_all_the_time, args=(servers, theirs))
    process.start()

    def longest_during(work: Callable[[], None]) -> tuple[float, float]:
        ours.send("next")
        ours.recv()
        began = time.perf_counter()
        work()
        took_s = time.perf_counter() - began
        ours.send("next")
        longest_s: float = ours.recv()
        return longest_s * 1000, took_s

    try:
        yield longest_during
        ours.send("end")
    finally:
        ours.close()
        process.join(_PATIENCE_S)


def _ask_all_the_time(servers: str, results: Connection) -> None:
    longest_s = 0.0
    frame = frame_of(API_VERSIONS, 0, ApiVersionsRequest())
    with RawClient(servers) as client:
        while True:
            if results.poll(_EVERY_S):
                if results.recv() == "end":
                    return
                results.send(longest_s)
                longest_s = 0.0
            began = time.perf_counter()
            client.send_bytes(frame)
            client.receive_frame()
            longest_s = max(longest_s, time.perf_counter() - began)


if __name__ == "__main__":
    main()
