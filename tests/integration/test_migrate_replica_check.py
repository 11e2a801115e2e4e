"""MX-3: a replica that lacks or differs in what was there before is found."""

from __future__ import annotations

from pathlib import Path

from barnabas import Cluster
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.read import connection_to
from barnabas.cli.migrate.replica_check import Checked, check_replicas
from barnabas.cli.options import run_client
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

NAME = TopicPartition("t", 0)
RECORDS = 500


def judge(servers: str, broker_id: int, end: int) -> Checked:
    async def work() -> Checked:
        async with connection_to(servers) as connection:
            facts = await connection.facts()
            progress = Progress(broker_id, ends={NAME: end})
            return await check_replicas(connection, facts, progress, records=True, patience_s=1.0)

    return run_client(work())


def test_a_replica_is_compared_up_to_its_old_end(tmp_path: Path) -> None:
    """MX-3: a log that ends too early, and one in which a byte is another."""
    with Cluster(2, tmp_path) as cluster:
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
        logs = sorted(tmp_path.glob("**/t-0/*.log"))
        assert len(logs) == 2
        with logs[-1].open("r+b") as file:
            file.seek(-1, 2)
            last = file.read(1)
            file.seek(-1, 2)
            file.write(bytes([last[0] ^ 1]))
        [problem] = judge(servers, ids[1], RECORDS).problems
        assert problem == f"t-0 differs from the leader's replica in offsets 0 to {RECORDS - 1}"
