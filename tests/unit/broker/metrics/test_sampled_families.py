"""The families that are read from a broker's state when a page is rendered."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from barnabas.protocol.api import DELETE_RECORDS, FETCH
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.group_calls import (
    AT_ONCE,
    find_coordinator,
    join_as_well,
    settle,
)
from tests.kit.broker.loops import inside
from tests.kit.broker.metric_pages import page_of, samples, samples_of
from tests.kit.broker.produces import fill
from tests.kit.broker.replicated import parts_of
from tests.kit.broker.topics import create, with_configs
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import free_port
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

LISTENER = "PLAINTEXT://127.0.0.1:0"
LOG = "kafka_log_log_"
CONNECTIONS = "kafka_server_socket_server_metrics_connection_"
PURGATORY = "kafka_server_delayedoperationpurgatory_purgatorysize"
GROUPS = "kafka_coordinator_group_groupmetadatamanager_"


def test_in_3_the_logs_of_each_replica(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    config = {"log.dirs": ",".join(map(str, directories))}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        with_configs(client, "t", segment_bytes="1000")
        one = batch(b"x" * 600)
        fill(client, "t", one, one, one)
        trimmed = DeleteRecordsPartition(partition_index=0, offset=2)
        topic = DeleteRecordsTopic(name="t", partitions=[trimmed])
        client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=60_000))
        found = samples_of(broker)
        label = '{topic="t",partition="0"}'
        assert found[f"{LOG}logstartoffset{label}"] == 2
        assert found[f"{LOG}logendoffset{label}"] == 3
        segments = found[f"{LOG}numlogsegments{label}"]
        assert 1 <= segments <= 3 and found[f"{LOG}size{label}"] == segments * len(one)
        offline = "kafka_log_logmanager_offlinelogdirectorycount"
        assert found[offline] == 0
        failures = parts_of(broker).partitions.failures
        inside(broker, lambda: failures.on_error(directories[1], OSError("gone")))
        assert samples_of(broker)[offline] == 1


def test_in_3_the_space_of_each_log_directory(tmp_path: Path) -> None:
    """Of the online ones: what a disk that failed says of itself is worth nothing."""
    directories = [tmp_path / "a", tmp_path / "b"]
    with Broker(config={"log.dirs": ",".join(map(str, directories))}) as broker:

        def shares() -> dict[Path, float]:
            found = samples_of(broker)
            prefix = "barnabas_log_directory_"
            labels = {each: f'{{directory="{each}"}}' for each in directories}
            return {
                each: found[f"{prefix}free_bytes{label}"] / found[f"{prefix}size_bytes{label}"]
                for each, label in labels.items()
                if f"{prefix}size_bytes{label}" in found
            }

        usage = os.statvfs(tmp_path)
        assert shares() == {
            each: pytest.approx(usage.f_bavail / usage.f_blocks, abs=0.05) for each in directories
        }
        failures = parts_of(broker).partitions.failures
        inside(broker, lambda: failures.on_error(directories[1], OSError("gone")))
        assert list(shares()) == directories[:1]


def test_in_3_the_state_of_the_broker_in_kafkas_numbers(tmp_path: Path) -> None:
    name = "kafka_server_kafkaserver_brokerstate"
    server = Server(BrokerConfig({"log.dirs": str(tmp_path), "listeners": LISTENER}))
    assert samples(page_of(server.metrics))[name] == 2, "loading logs"
    seen: list[float] = []

    async def life() -> None:
        await server.start()
        seen.append(samples(page_of(server.metrics))[name])
        await server.stop()
        seen.append(samples(page_of(server.metrics))[name])

    asyncio.run(life())
    assert seen == [3, 6], "running, then shutting down"


def test_in_3_connections_by_listener() -> None:
    with Broker() as broker:
        label = '{listener="PLAINTEXT",networkProcessor="0"}'
        with RawClient(broker.bootstrap_servers) as one, RawClient(broker.bootstrap_servers) as two:
            create(one, "t")
            create(two, "u")
            found = samples_of(broker)
            assert found[f"{CONNECTIONS}count{label}"] == 2
        wait_until(lambda: samples_of(broker)[f"{CONNECTIONS}count{label}"] == 0)
        assert samples_of(broker)[f"{CONNECTIONS}creation_total{label}"] == 2


def test_in_3_requests_that_wait() -> None:
    """Under Kafka's name for the place where they do, though there is none here."""
    with Broker(config=AT_ONCE) as broker, RawClient(broker.bootstrap_servers) as client:

        def waiting() -> dict[str, float]:
            found = samples_of(broker)
            names = ("Produce", "Fetch", "Rebalance", "DeleteRecords", "ElectLeader")
            sizes = {name: found[f'{PURGATORY}{{delayedOperation="{name}"}}'] for name in names}
            return {name: size for name, size in sizes.items() if size}

        create(client, "t")
        find_coordinator(client)
        assert waiting() == {}
        settle(client, "g")
        address = broker.bootstrap_servers
        with RawClient(address) as other, RawClient(address) as third:
            other.send(FETCH, 11, fetch_request("t", max_wait_ms=600_000))
            wait_until(lambda: waiting() == {"Fetch": 1})
            join_as_well(third, client, "g")
            wait_until(lambda: waiting() == {"Fetch": 1, "Rebalance": 1})
            fill(client, "t", batch(b"a"))
            other.receive(FETCH, 11)
            assert waiting() == {"Rebalance": 1}
            assert samples_of(broker)[f"{GROUPS}numgroupspreparingrebalance"] == 1
        wait_until(lambda: waiting() == {})


def test_in_3_groups_and_transactional_ids() -> None:
    """A broker that coordinates none has none of these, and loads nothing for them."""
    with Broker(config=AT_ONCE) as broker, RawClient(broker.bootstrap_servers) as client:
        names = [name for name in samples_of(broker) if name.startswith((GROUPS, "barnabas_trans"))]
        assert names == []
        find_coordinator(client)
        assert samples_of(broker)[f"{GROUPS}numgroups"] == 0
        settle(client, "g")
        settle(client, "h")
        found = samples_of(broker)
        assert found[f"{GROUPS}numgroups"] == found[f"{GROUPS}numgroupsstable"] == 2
        assert found['barnabas_events_total{kind="group-generation"}'] == 2
        assert found[f"{GROUPS}numgroupsempty"] == found[f"{GROUPS}numoffsets"] == 0

        create(client, "t")
        first, second = (TransactionalProducer(client, name).begun() for name in ("one", "two"))
        assert first.add("t", 0) == [0]
        found = samples_of(broker)
        assert found['barnabas_transactional_ids{state="Ongoing"}'] == 1
        assert found['barnabas_transactional_ids{state="Empty"}'] == 1
        assert first.end(True) == 0
        wait_until(lambda: first.status == "CompleteCommit")
        found = samples_of(broker)
        assert found['barnabas_transactional_ids{state="Ongoing"}'] == 0
        assert found['barnabas_transactional_ids{state="CompleteCommit"}'] == 1
        assert second.add("t", 0) == [0]


def test_in_3_the_names_that_the_documentation_lists_are_on_a_page() -> None:
    """Of a broker that serves metrics, is alone, and has no quota, authorizer or certificate."""
    section = (
        (CHECKOUT / "docs" / "operations.md").read_text().partition("## Metrics and probes")[2]
    )
    listed = set(
        re.findall(r"`((?:kafka|barnabas|process)_[a-z_]+)`", section.partition("\n## ")[0])
    )
    config = {**AT_ONCE, "barnabas.metrics.port": str(free_port())}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        find_coordinator(client)
        TransactionalProducer(client, "one").begun()
        server = broker.server
        assert server is not None
        page = inside(broker, lambda: page_of(server.metrics))
    declared = set(re.findall(r"^# TYPE (\w+) ", page, re.MULTILINE))
    elsewhere = {name for name in listed if name.startswith("kafka_server_quota_")} | {
        "barnabas_access_denied_total",
        "barnabas_certificate_days_left",
        "barnabas_throttled_requests_total",
        "kafka_server_fetcherlagmetrics_consumerlag",
        "kafka_server_socket_server_metrics_connection_accept_rate",
    }
    assert listed - elsewhere == declared
