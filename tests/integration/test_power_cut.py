"""The last replica in sync loses the end of its log with the machine's power (decision 14).

What a power cut does is done here by hand: the log's last bytes go, and the note of the machine's
boot is another one's.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.client import SyncProducer
from tests.kit.clients import confluent_client
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.foreign]

TOPIC = "kept"
RECORDS = 1000


@pytest.mark.slow
def test_the_last_one_in_sync_does_not_lead_with_what_it_has_left(tmp_path: Path) -> None:
    """DL-2: acknowledged records outlive a power cut of the only replica in the ISR."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        last = _last_one_standing(cluster)
        log = last.data_dir / f"{TOPIC}-0" / f"{0:020}.log"
        os.truncate(log, log.stat().st_size // 2)
        (last.data_dir / ".barnabas_boot").write_bytes(b"another boot")
        last.start()
        assert _leader(last) == -1, "no broker knows yet which of them has everything"
        for broker in cluster.brokers.values():
            if broker is not last:
                broker.start()
        wait_until(lambda: _leader(last) > 0)
        assert _values(cluster) == list(range(RECORDS))


def test_the_last_one_in_sync_leads_at_once_if_only_its_process_died(tmp_path: Path) -> None:
    """A kill takes nothing from the page cache, and must not cost availability."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        last = _last_one_standing(cluster)
        last.start()
        wait_until(lambda: _leader(last) > 0)
        # What is committed is seen again when enough are in sync to commit anything.
        for broker in cluster.brokers.values():
            if broker is not last:
                broker.start()
        assert _values(cluster) == list(range(RECORDS))


def _last_one_standing(cluster: ClusterProcess) -> BrokerProcess:
    """Write, and have all brokers die one after the other; returns the last, alone in the ISR."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, TOPIC, 1, {}, replicas=3)
    with SyncProducer(servers, acks=-1, linger_ms=0, batch_size=1000) as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, b"%d" % number)
        producer.flush()
    last = cluster.brokers[confluent_client.describe_topic(servers, TOPIC)[0].leader]
    for broker in cluster.brokers.values():
        if broker is not last:
            broker.kill()
    wait_until(lambda: len(_described(last).isr) == 1)
    last.kill()
    return last


def _described(broker: BrokerProcess) -> confluent_client.PartitionSeen:
    return confluent_client.describe_topic(broker.bootstrap_servers, TOPIC)[0]


def _leader(broker: BrokerProcess) -> int:
    return _described(broker).leader


def _values(cluster: ClusterProcess) -> list[int]:
    seen = confluent_client.consume(cluster.bootstrap_servers, TOPIC, 1, RECORDS)
    return [int(one.value or b"") for one in seen]
