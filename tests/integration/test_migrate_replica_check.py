"""MX-3: a replica that lacks or differs in what was there before is found."""

from __future__ import annotations

import pytest

from barnabas import Cluster
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.read import connected
from barnabas.cli.migrate.replica_check import Checked, check_replicas
from barnabas.cli.options import run_client
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

NAME = TopicPartition("t", 0)
RECORDS = 500


def judge(servers: str, broker_id: int, end: int) -> Checked:
    async def work() -> Checked:
        async with connected(servers) as connection:
            facts = await connection.facts()
            progress = Progress(broker_id, ends={NAME: end})
            return await check_replicas(connection, facts, progress, records=True, patience_s=1.0)

    return run_client(work())


def test_a_replica_is_compared_up_to_its_old_end() -> None:
    """MX-3"""
    with Cluster(2) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
            ids = [each.broker_id for each in admin.describe_cluster().brokers]
            admin.create_topics([NewTopic("t", assignment={0: ids})])
            for number in range(RECORDS):
                producer.send("t", b"%d" % number, partition=0)
            producer.flush()
            wait_until(lambda: admin.replica_ends({NAME: ids})[NAME][ids[1]].end_offset == RECORDS)
        found = judge(servers, ids[1], RECORDS)
        assert found == Checked(found.replicas, 1, RECORDS, ())
        found = judge(servers, ids[1], RECORDS + 1)
        [problem] = found.problems
        assert problem.startswith(f"t-0 ended at {RECORDS + 1} before, and broker {ids[1]} says: ")
