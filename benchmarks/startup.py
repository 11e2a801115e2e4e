"""What a broker costs before anybody uses it: time to be ready, memory, idle things.

    python -m benchmarks.startup [--starts N] [--partitions N] [--connections N] [--json FILE]

Ready is from the start of the process to its ready line, seen from outside. The CPU time until then
is that of a new broker, over that of the smallest program with asyncio, started in turns. An idle
partition and an idle connection are differences of the resident memory, over many of them;
connections have done ApiVersions and Metadata. The reopening runs with a soft limit of 1,024 open
files, as most shells give it, after a clean stop.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from barnabas.protocol.api import API_VERSIONS, METADATA
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from benchmarks.accounting import resident_bytes, scheduled_seconds
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.raw_client import RawClient

COMMAND = "python -m benchmarks.startup"
MEGABYTE, KILOBYTE = 1e6, 1e3
TOPICS = 10
OPEN_FILES = 1024
REOPENED_PARTITIONS = 1000
CREATED_AT_ONCE = 500
BARE = "import asyncio; asyncio.run(asyncio.sleep(0))"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--starts", type=int, default=11)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--connections", type=int, default=2000)
    options = parser.parse_args()
    figures = measure(options.starts, options.partitions, options.connections)
    show("start and idle", figures, options.json)


def measure(starts: int, partitions: int, connections: int) -> list[Figure]:
    raise_open_files()
    reopened = min(partitions, REOPENED_PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        directories = [Path(name) / str(number) for number in range(5)]
        for directory in directories:
            directory.mkdir()
        return [
            *ready_and_resident(directories[0], starts),
            *idle_partitions(directories[1], partitions),
            *idle_connections(directories[2], connections),
            *reopening(directories[3], reopened),
            ready_cpu(directories[4], starts),
        ]


def ready_and_resident(directory: Path, starts: int) -> list[Figure]:
    """On an empty directory with no topics, then with ten."""
    broker = BrokerProcess(directory)
    ready_ms = [restarted_ms(broker) for _ in range(starts)]
    empty = resident(broker)
    for number in range(TOPICS):
        create_topic(broker.bootstrap_servers, f"topic-{number}", 1)
    restarted_ms(broker)
    with_topics = resident(broker)
    stop(broker)
    return [
        Figure("ready", "ms", statistics.median(ready_ms), 130, command=COMMAND),
        Figure("resident, empty", "MB", empty / MEGABYTE, command=COMMAND),
        Figure("resident, ten topics", "MB", with_topics / MEGABYTE, 45, command=COMMAND),
    ]


def ready_cpu(directory: Path, starts: int) -> Figure:
    """On a new directory each time, so that a start finds nothing to open."""
    ours, bare = [], []
    for number in range(starts):
        bare.append(bare_cpu_seconds())
        new = directory / str(number)
        new.mkdir()
        broker = BrokerProcess(new)
        broker.start()
        assert broker.process is not None
        ours.append(scheduled_seconds(broker.process.pid))
        stop(broker)
    ratio = statistics.median(ours) / statistics.median(bare)
    return Figure("CPU until ready, of an asyncio program", "x", ratio, 1.8, command=COMMAND)


def bare_cpu_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", BARE], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def restarted_ms(broker: BrokerProcess) -> float:
    """Stopped cleanly, if it runs; then how long the start takes, seen from outside."""
    stop(broker)
    began = time.perf_counter()
    broker.start()
    return (time.perf_counter() - began) * 1000


def stop(broker: BrokerProcess) -> None:
    if broker.process is not None and broker.stop():
        raise ChildProcessError(broker.log.read_text())


def idle_partitions(directory: Path, count: int) -> list[Figure]:
    """Created in several topics, since a request has a limit of its own."""
    with broker_process(directory) as broker:
        create_topic(broker.bootstrap_servers, "first", 10)  # all code that it takes is loaded
        before = resident(broker)
        for number, start in enumerate(range(0, count, CREATED_AT_ONCE)):
            partitions = min(CREATED_AT_ONCE, count - start)
            create_topic(broker.bootstrap_servers, f"topic-{number}", partitions)
        size = (resident(broker) - before) / count
    return [Figure("idle partition", "KB", size / KILOBYTE, 20, command=COMMAND)]


def idle_connections(directory: Path, count: int) -> list[Figure]:
    with broker_process(directory) as broker:
        create_topic(broker.bootstrap_servers, "first", 1)
        clients = [connected(broker) for _ in range(10)]
        before = resident(broker)
        clients += [connected(broker) for _ in range(count)]
        size = (resident(broker) - before) / count
        for client in clients:
            client.socket.close()
    return [Figure("idle connection", "KB", size / KILOBYTE, 10, command=COMMAND)]


def connected(broker: BrokerProcess) -> RawClient:
    """A connection that has done what every client does first."""
    client = RawClient(broker.bootstrap_servers)
    versions = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    client.call(API_VERSIONS, 3, versions)
    client.call(METADATA, 9, MetadataRequest(topics=None))
    return client


def reopening(directory: Path, count: int) -> list[Figure]:
    broker = BrokerProcess(directory)
    broker.start()
    for number, start in enumerate(range(0, count, CREATED_AT_ONCE)):
        partitions = min(CREATED_AT_ONCE, count - start)
        create_topic(broker.bootstrap_servers, f"topic-{number}", partitions)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    try:
        seconds = statistics.median(restarted_ms(broker) / 1000 for _ in range(3))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    stop(broker)
    return [Figure(f"{count:,} partitions reopened", "s", seconds, 2, command=COMMAND)]


def raise_open_files() -> None:
    """For our own ends of the connections; the broker raises its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def resident(broker: BrokerProcess) -> int:
    assert broker.process is not None
    return resident_bytes(broker.process.pid)


if __name__ == "__main__":
    main()
