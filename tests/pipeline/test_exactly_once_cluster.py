"""SP-3, RE-4: micro-batches are committed while brokers are killed, or one has a full disk.

Every row is there once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.errors import BarnabasError
from pyspark_barnabas.options import SinkOptions
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_load import committed_values, wait_for_full_isr
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process, started
from tests.kit.processes.full_disks import DISKS, IN_EACH_RUN, Disk
from tests.pipeline.micro_batches import end, options_of, task

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

TOPIC, PARTITIONS = "survivor", 3
OPTIONS = "min.insync.replicas=2", "default.replication.factor=3"
ROWS = 50
KILLS = 6
FILLINGS = 3
SPREAD_S = 0.6
WIDTH = 2_000  # bytes of a row: a limit to files shall stop segments, and not what a broker says
ATTEMPTS = 60


def test_sp_3_brokers_are_killed_while_batches_are_committed(tmp_path: Path) -> None:
    with cluster_process(tmp_path, 3, *OPTIONS) as cluster:
        servers = cluster.bootstrap_servers
        sink = sink_of(servers)
        failures = commit(sink, 0)
        batch = 1
        for kill in range(KILLS):
            broker = cluster.brokers[1 + kill % 3]
            # Within one micro-batch or the next: at another step each time.
            timer = threading.Timer(kill / KILLS * SPREAD_S, broker.kill)
            timer.start()
            while timer.is_alive():
                failures += commit(sink, batch)
                batch += 1
            broker.start()
            failures += commit(sink, batch)
            batch += 1
            wait_until_replicated(servers)
        check(servers, batch)
        print(f"{batch} batches committed, {failures} failures, {KILLS} kills of brokers")


@pytest.fixture(params=IN_EACH_RUN)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with DISKS[request.param](tmp_path) as disk:
        yield disk


def test_sp_3_a_disk_gets_full_while_batches_are_committed(tmp_path: Path, disk: Disk) -> None:
    """RE-10: of a broker that leads, copies and coordinates, and has no other disk."""
    cluster = ClusterProcess(tmp_path, 3, *OPTIONS)
    victim = cluster.brokers[2]
    victim.data_dir = disk.directory
    with started(cluster):
        servers = cluster.bootstrap_servers
        sink = sink_of(servers)
        failures = commit(sink, 0, WIDTH)
        batch = 1
        for filling in range(FILLINGS):
            timer = threading.Timer(filling / FILLINGS * SPREAD_S, disk.fill, [victim])
            timer.start()
            while not has_ended(victim):
                failures += commit(sink, batch, WIDTH)
                batch += 1
            timer.join()
            assert not end(sink, batch - 1, task(sink, rows_of(batch - 1, WIDTH))), "a replay"
            assert victim.log.read_text().count("all log directories have failed") == filling + 1
            failures += commit(sink, batch, WIDTH)
            batch += 1
            disk.make_room()
            victim.start()
            failures += commit(sink, batch, WIDTH)
            batch += 1
            wait_until_replicated(servers)
        check(servers, batch)
        print(f"{batch} batches committed, {failures} failures, {FILLINGS} times a full disk")


def sink_of(servers: str) -> SinkOptions:
    """The sink into the topic, which is made."""
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
    return options_of(servers, topic=TOPIC, **{"kafka.delivery.timeout.ms": "31000"})


def has_ended(broker: BrokerProcess) -> bool:
    assert broker.process is not None
    code = broker.process.poll()
    assert code in (None, 1), code
    return code is not None


def wait_until_replicated(servers: str) -> None:
    for topic in (TOPIC, "__transaction_state", "__consumer_offsets"):
        wait_for_full_isr(servers, topic)


def check(servers: str, batches: int) -> None:
    found = committed_values(servers, TOPIC, PARTITIONS)
    assert sorted(map(int, found)) == list(range(batches * ROWS))


def commit(options: SinkOptions, batch: int, width: int = 0) -> int:
    """A micro-batch, as often as it takes; how often it failed."""
    values = rows_of(batch, width)
    for failures in range(ATTEMPTS):
        try:
            end(options, batch, task(options, values))
        except BarnabasError:
            continue
        return failures
    raise AssertionError(f"batch {batch} failed {ATTEMPTS} times")


def rows_of(batch: int, width: int) -> list[bytes]:
    return [value.zfill(width) for value in numbered(batch * ROWS, (batch + 1) * ROWS)]
