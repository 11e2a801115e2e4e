"""SP-3, RE-4: brokers are killed while micro-batches are committed; every row is there once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from barnabas.client.admin import NewTopic
from barnabas.client.sync import SyncAdmin
from barnabas.errors import BarnabasError
from pyspark_barnabas.options import SinkOptions
from tests.integration.cluster_load import committed_values, wait_for_full_isr
from tests.integration.cluster_process import cluster_process
from tests.pipeline.micro_batches import end, options_of, task
from tests.pipeline.topics import numbered

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

TOPIC, PARTITIONS = "survivor", 3
ROWS = 50
KILLS = 6
SPREAD_S = 0.6
ATTEMPTS = 60


def test_sp_3_brokers_are_killed_while_batches_are_committed(tmp_path: Path) -> None:
    options = "min.insync.replicas=2", "default.replication.factor=3"
    with cluster_process(tmp_path, 3, *options) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        sink = options_of(servers, topic=TOPIC, **{"kafka.delivery.timeout.ms": "30000"})
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
            for topic in (TOPIC, "__transaction_state", "__consumer_offsets"):
                wait_for_full_isr(servers, topic)
        found = committed_values(servers, TOPIC, PARTITIONS)
        assert sorted(map(int, found)) == list(range(batch * ROWS))
        print(f"{batch} batches committed, {failures} failures, {KILLS} kills of brokers")


def commit(options: SinkOptions, batch: int) -> int:
    """A micro-batch, as often as it takes; how often it failed."""
    values = numbered(batch * ROWS, (batch + 1) * ROWS)
    for failures in range(ATTEMPTS):
        try:
            end(options, batch, task(options, values))
        except BarnabasError:
            continue
        return failures
    raise AssertionError(f"batch {batch} failed {ATTEMPTS} times")
