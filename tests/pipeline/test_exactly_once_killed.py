"""SP-3: a query is killed at each step of a micro-batch's commit; every record is there once.

All of it at once: PySpark's process, Spark's JVM, which knows what is done, and Python's workers.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.protocol.api import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DELETE_RECORDS,
    END_TXN,
    INIT_PRODUCER_ID,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    Api,
)
from barnabas.types import TopicPartition
from pyspark_barnabas.staging import staging_topic
from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.answer_proxy import AnswerProxy, Fate, behind_a_proxy
from tests.kit.processes.cluster_load import committed_values
from tests.kit.waiting import wait_until
from tests.pipeline.exactly_once_job import TRANSACTIONAL_ID
from tests.pipeline.killed import kill_tree

SOURCE, TARGET, PARTITIONS = "killed-in", "killed-out", 3
PER_BATCH = 40


class Step(NamedTuple):
    """Where the query dies, and whether its micro-batch is committed then."""

    api: Api
    side: str  # its request never arrives, or its answer does not
    is_committed: bool


STEPS = [
    Step(DELETE_RECORDS, "request", True),  # the first micro-batch clears the staging topic
    Step(INIT_PRODUCER_ID, "request", False),
    Step(OFFSET_FETCH, "request", False),
    Step(ADD_PARTITIONS_TO_TXN, "request", False),
    Step(ADD_OFFSETS_TO_TXN, "answer", False),
    Step(TXN_OFFSET_COMMIT, "answer", False),
    Step(END_TXN, "request", False),
    Step(END_TXN, "answer", True),
]


class Job:
    """The query as a process, again and again with one checkpoint."""

    def __init__(self, servers: str, checkpoint: Path) -> None:
        self._command = [sys.executable, "-m", "tests.pipeline.exactly_once_job", servers]
        self._command += [SOURCE, TARGET, str(checkpoint), str(PER_BATCH)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, start_new_session=True)

    def kill(self) -> None:
        assert self._process is not None
        kill_tree(self._process.pid)

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(180)


def arm(proxy: AnswerProxy, job: Job, key: int, side: str) -> None:
    """The next request of this kind kills the query, before it arrives or instead of its answer."""
    jobs = [job]

    def strike(asked: int) -> Fate:
        if asked != key or not jobs:
            return Fate.PASS
        jobs.pop().kill()
        return Fate.CUT

    def strike_before(asked: int) -> None:
        if strike(asked) is Fate.CUT:
            raise ConnectionAbortedError(f"{asked}: the request is lost with its sender")

    if side == "answer":
        proxy.rule = strike
    else:
        proxy.before_request = strike_before


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(STEPS[6:], id="two"),
        pytest.param(STEPS, id="all", marks=pytest.mark.soak),
    ],
)
def test_sp_3_every_record_is_there_once_wherever_a_query_is_killed(
    tmp_path: Path, steps: list[Step]
) -> None:
    foreign.require_java()
    with behind_a_proxy() as proxy:
        confluent_client.create_topic(proxy.servers, SOURCE, 2, {})
        confluent_client.create_topic(proxy.servers, TARGET, PARTITIONS, {})
        job = Job(proxy.servers, tmp_path / "checkpoint")
        sent = committed = 0
        with SyncProducer(proxy.servers) as producer:
            for api, side, is_committed in steps:
                values = numbered(sent, sent + PER_BATCH)
                sent += PER_BATCH
                producer.send_many(
                    ProducerRecord(SOURCE, value, b"k" + value[-1:]) for value in values
                )
                producer.flush()
                arm(proxy, job, api.key, side)
                job.start()
                assert job.wait() == -signal.SIGKILL, f"{api.name} ({side}) was never asked"
                proxy.rule = lambda key: Fate.PASS
                proxy.before_request = lambda key: None
                if is_committed:  # an answer to EndTxn is a promise; the markers follow
                    committed += 1
                    wait_until(lambda: next_batch(proxy.servers) == committed)  # noqa: B023
                assert next_batch(proxy.servers) == committed, f"after {api.name} ({side})"
        job.start()
        assert job.wait() == 0
        found = committed_values(proxy.servers, TARGET, PARTITIONS)
        assert sorted(found) == sorted(numbered(0, sent))


def next_batch(servers: str) -> int:
    """The number of the micro-batch that the query is to commit next, as the broker has it.

    A transaction that is still open counts for nothing.
    """
    place = TopicPartition(staging_topic(TRANSACTIONAL_ID), 0)
    with SyncAdmin(servers) as admin:
        committed = admin.list_group_offsets(TRANSACTIONAL_ID)
    return committed[place][0] if place in committed else 0
