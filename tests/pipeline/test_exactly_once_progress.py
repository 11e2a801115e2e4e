"""SP-3: what becomes of a query's progress in the brokers: forgotten, worn out, or moved."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import barnabas
from barnabas.broker.seams import system_seams
from barnabas.broker.server import Server
from barnabas.client import SyncAdmin, TopicPartition
from barnabas.client.admin.admin import NewTopic
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.config import BrokerConfig
from barnabas.protocol.api import INIT_PRODUCER_ID
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.storage.seen_time import FILE_NAME as SEEN_TIME
from pyspark_barnabas.exactly_once import transactional_id_of
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.clocks import SteppedClock
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.cluster_load import committed_values
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until
from tests.pipeline.micro_batches import end, options_of, query_of, task

DAY_MS = 24 * 3_600_000
LAST_EPOCH = 32_766
AT_ONCE = 500
INTERNAL = ("__transaction_state", "__consumer_offsets")
MOVES = 8


def test_sp_3_progress_that_the_brokers_have_forgotten_is_missed(tmp_path: Path) -> None:
    """A query stood still for longer than they keep the offsets of a group without members."""

    def at_first(servers: str) -> None:
        options = options_of(servers, topic="t")
        for batch in range(3):
            assert end(options, batch, task(options, numbered(10 * batch, 10 * batch + 10)))

    def six_days_later(servers: str) -> None:
        options = options_of(servers, topic="t")
        assert not end(options, 2, task(options, numbered(20, 30)))

    def eight_days_later(servers: str) -> None:
        options = options_of(servers, topic="t")
        name = transactional_id_of(options, query_of(options))
        with SyncAdmin(servers) as admin:
            wait_until(lambda: not admin.list_group_offsets(name))
        staged = task(options, numbered(30, 40))
        with pytest.raises(NotExactlyOnce, match=r"offsets\.retention\.minutes"):
            end(options, 3, staged)
        assert committed_values(servers, "t", 1) == numbered(0, 30)
        assert end(options_of(servers, topic="t", exactlyOnceBegins="3"), 3, staged)
        assert committed_values(servers, "t", 1) == numbered(0, 40)

    for days, scenario in ((0, at_first), (6, six_days_later), (8, eight_days_later)):
        asyncio.run(served(tmp_path, days, scenario))


async def served(directory: Path, days: int, scenario: Callable[[str], None]) -> None:
    """A broker on this directory, that many days from now."""
    clock = SteppedClock()
    clock.step(days * DAY_MS)
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "log.retention.ms": "-1",
        "offsets.retention.check.interval.ms": "50",
    }
    # A clock that is days ahead at a start counts only when it has lasted; that is not for here.
    (directory / SEEN_TIME).unlink(missing_ok=True)
    server = Server(BrokerConfig(config), system_seams()._replace(clock=clock))
    await server.start()
    try:
        await asyncio.to_thread(scenario, f"127.0.0.1:{server.port}")
    finally:
        await server.stop()


@pytest.mark.slow
def test_sp_3_a_producer_id_whose_epochs_are_used_up_is_replaced() -> None:
    """Each micro-batch takes an epoch, and there are 32,767."""
    with barnabas.Broker() as broker:
        options = options_of(broker.bootstrap_servers, topic="t")
        assert end(options, 0, task(options, numbered(0, 10)))
        name = transactional_id_of(options, query_of(options))
        with RawClient(broker.bootstrap_servers) as raw:
            old = initialised(raw, name, 1)
            while (left := LAST_EPOCH - 2 - old.producer_epoch) > 0:
                old = initialised(raw, name, min(left, AT_ONCE))
        for batch in range(1, 6):
            assert end(options, batch, task(options, numbered(10 * batch, 10 * batch + 10)))
            assert not end(options, batch, task(options, numbered(0, 10)))
        with RawClient(broker.bootstrap_servers) as raw:
            new = initialised(raw, name, 1)
        assert new.producer_id != old.producer_id and new.producer_epoch < 20
        assert committed_values(broker.bootstrap_servers, "t", 1) == numbered(0, 60)


def initialised(raw: RawClient, transactional_id: str, times: int) -> InitProducerIdResponse:
    """The last answer."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    for _ in range(times):
        raw.send(INIT_PRODUCER_ID, 4, request)
    for _ in range(times):
        _, answer = raw.receive(INIT_PRODUCER_ID, 4)
        assert isinstance(answer, InitProducerIdResponse) and answer.error_code == 0
    return answer


@pytest.mark.slow
def test_sp_3_coordinators_move_while_batches_are_committed() -> None:
    """Those of the transaction and of the group, from broker to broker."""
    config = {
        "transaction.state.log.num.partitions": 1,
        "offsets.topic.num.partitions": 1,
        "auto.leader.rebalance.enable": False,
    }
    with (
        barnabas.Cluster(brokers=3, config=config) as cluster,
        SyncAdmin(cluster.bootstrap_servers) as admin,
    ):
        servers = cluster.bootstrap_servers
        admin.create_topics([NewTopic("t", 2)])
        options = options_of(servers, topic="t")
        is_over, batches = threading.Event(), [0]

        def write() -> None:
            while not is_over.is_set():
                first = 10 * batches[0]
                end(options, batches[0], task(options, numbered(first, first + 10)))
                batches[0] += 1

        with ThreadPoolExecutor(1) as writers:
            writing = writers.submit(write)
            try:
                for move in range(MOVES):
                    wanted = batches[0] + 2
                    wait_until(lambda wanted=wanted: batches[0] >= wanted or writing.done())  # type: ignore[misc]
                    lead(admin, INTERNAL[move % 2], [1 + (move + at) % 3 for at in range(3)])
            finally:
                is_over.set()
            writing.result(120)
        found = committed_values(servers, "t", 2)
        assert sorted(map(int, found)) == list(range(10 * batches[0]))
        print(f"{batches[0]} batches, {MOVES} moves")


def lead(admin: SyncAdmin, topic: str, replicas: list[int]) -> None:
    """Make the first of these the leader."""
    partition = TopicPartition(topic, 0)
    admin.alter_partition_reassignments({partition: replicas})
    wait_until(lambda: not admin.list_partition_reassignments())
    admin.elect_leaders(PREFERRED, [partition])
