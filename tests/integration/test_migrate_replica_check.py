"""MX-3: a replica that lacks or differs in what was there before is found."""

from __future__ import annotations

from pathlib import Path

from barnabas import Cluster
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.read import connection_to
from barnabas.cli.migrate.replica_check import Checked, check_replicas, read_tails
from barnabas.cli.options import run_client
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

NAME = TopicPartition("t", 0)
RECORDS = 500


def judge(servers: str, before: Progress) -> Checked:
    async def work() -> Checked:
        async with connection_to(servers) as connection:
            facts = await connection.facts()
            return await check_replicas(connection, facts, before, records=True, patience_s=1.0)

    return run_client(work())


def create_on_both(admin: SyncAdmin, producer: SyncProducer) -> list[int]:
    """Create a partition with records on two brokers, and return their ids."""
    ids = [each.broker_id for each in admin.describe_cluster().brokers]
    admin.create_topics([NewTopic("t", assignment={0: ids})])
    for number in range(RECORDS):
        producer.send("t", b"%d" % number, partition=0)
    producer.flush()
    return ids


def test_a_replica_is_compared_up_to_its_old_end(tmp_path: Path) -> None:
    """MX-3: a log that ends too early, and one in which a byte is another."""
    with Cluster(2, tmp_path) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
            ids = create_on_both(admin, producer)
            wait_until(lambda: admin.replica_ends({NAME: ids})[NAME][ids[1]].end_offset == RECORDS)
        found = judge(servers, Progress(ids[1], {NAME: RECORDS}))
        assert found == Checked(found.replicas, 1, RECORDS, ())
        found = judge(servers, Progress(ids[1], {NAME: RECORDS + 1}))
        [problem] = found.problems
        assert problem.startswith(f"t-0 ended at {RECORDS + 1} before, and broker {ids[1]} says: ")
        logs = sorted(tmp_path.glob("**/t-0/*.log"))
        assert len(logs) == 2
        with logs[-1].open("r+b") as file:
            file.seek(-1, 2)
            last = file.read(1)
            file.seek(-1, 2)
            file.write(bytes([last[0] ^ 1]))
        [problem] = judge(servers, Progress(ids[1], {NAME: RECORDS})).problems
        assert problem == f"t-0 differs from the leader's replica in offsets 0 to {RECORDS - 1}"


def before_stop(servers: str, broker_id: int) -> Progress:
    """What a step notes of a broker."""

    async def work() -> Progress:
        async with connection_to(servers) as connection:
            ends = {NAME: RECORDS}
            tails = await read_tails(connection, await connection.facts(), broker_id, ends)
            return Progress(broker_id, ends, tails)

    return run_client(work())


def write_some(servers: str, text: bytes) -> None:
    with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
        admin.create_topics([NewTopic("t", 1, 1)])
        for _ in range(RECORDS):
            producer.send("t", text, partition=0)
        producer.flush()


def test_another_log_of_a_single_replica_is_found(tmp_path: Path) -> None:
    """MX-3: an empty directory, in which new records have reached the old end."""
    with Cluster(1, tmp_path / "before") as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin:
            [broker] = admin.describe_cluster().brokers
        write_some(servers, b"old")
        before = before_stop(servers, broker.broker_id)
        assert before.tails.keys() == {NAME}
        assert judge(servers, before).problems == ()
    with Cluster(1, tmp_path / "after") as cluster:
        write_some(cluster.bootstrap_servers, b"new")
        [problem] = judge(cluster.bootstrap_servers, before).problems
        assert problem == f"t-0 has another record than before at offset {RECORDS - 1}"


def test_a_partition_of_which_nothing_was_noted_is_compared(tmp_path: Path) -> None:
    """MX-3: such as one that had no leader when the broker was stopped."""
    with Cluster(2, tmp_path) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
            ids = create_on_both(admin, producer)
        found = judge(servers, Progress(ids[1]))
        assert (found.compared, found.offsets, found.problems) == (1, RECORDS, ())
