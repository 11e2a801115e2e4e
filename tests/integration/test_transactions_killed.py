"""PR-7, DL-1: a transaction is all or nothing, at whichever point of it the broker is killed.

The points are hit by a switch (`dying_broker`), not by luck: each batch that the coordinator writes
and each marker, before and after it is in the log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.client import NewTopic, SyncAdmin
from tests.kit.clients.committing import DEADLINE_S, Committing, commit
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.cluster_load import committed_values
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

PARTITIONS = 4
TOPIC = "atomic"
TRANSACTIONAL_ID = "mover"
OPTIONS = ("transaction.abort.timed.out.transaction.cleanup.interval.ms=100",)

# What the coordinator appends for the transaction below, in this order: the Ongoing record (one
# AddPartitionsToTxn has all partitions, or several have one each), then Prepare, then Complete.
POINTS = [
    *(f"own:{number}:{moment}" for number in (1, 2, 3) for moment in ("before", "after")),
    *(f"control:{number}:{moment}" for number in (1, 2, 4) for moment in ("before", "after")),
]


@contextmanager
def dying_at(broker: BrokerProcess, point: str) -> Iterator[None]:
    """The broker starts as one that dies there, and is dead afterwards."""
    command, broker.command = broker.command, Path("tests.integration.dying_broker")
    broker.prefix = (sys.executable, "-m")
    os.environ["DIE_AT"] = point
    try:
        broker.start()
        yield
        assert broker.process is not None
        broker.process.wait(DEADLINE_S)
    finally:
        del os.environ["DIE_AT"]
        broker.command, broker.prefix = command, ()
        if broker.process is not None:
            broker.kill()


def producer_of(servers: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": TRANSACTIONAL_ID,
            # Longer than a broker is away: that it ends in the middle of this is another matter.
            "transaction.timeout.ms": 60_000,
            "socket.timeout.ms": 20_000,
            "reconnect.backoff.max.ms": 1_000,
            "linger.ms": 200,  # so that all partitions are added by one request
            "log_level": 0,
        }
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_this_point_a_transaction_is_all_or_nothing(tmp_path: Path, point: str) -> None:
    with broker_process(tmp_path, *OPTIONS) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        producer = producer_of(broker.bootstrap_servers)
        producer.init_transactions(DEADLINE_S)
        broker.stop()
        with dying_at(broker, point):
            producer.begin_transaction()
            for number in range(PARTITIONS):
                producer.produce(TOPIC, b"%d" % number, partition=number)
            producer.poll(0)
            # The broker dies in the middle of this, or (markers) right after it.
            committing = Committing(producer)
        broker.process = None
        broker.start()
        is_committed = committing.outcome()

        with SyncAdmin(broker.bootstrap_servers) as admin:
            ended = ("Empty", "CompleteCommit", "CompleteAbort")
            wait_until(
                lambda: all(each.state in ended for each in admin.list_transactions()), DEADLINE_S
            )
        seen = committed_values(broker.bootstrap_servers, TOPIC, PARTITIONS)
        assert sorted(seen) == ([b"0", b"1", b"2", b"3"] if is_committed else []), point

        # Whatever happened, the next transaction goes through.
        producer.begin_transaction()
        producer.produce(TOPIC, b"next", partition=0)
        assert commit(producer)
        assert committed_values(broker.bootstrap_servers, TOPIC, PARTITIONS).count(b"next") == 1
