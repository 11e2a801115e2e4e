"""SP-3: a query is killed at each step of a micro-batch's commit; every record is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.client.batch import ProducerRecord
from barnabas.client.sync import SyncProducer
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
from tests import foreign
from tests.conformance import confluent_client
from tests.integration.answer_proxy import AnswerProxy, Fate, behind_a_proxy
from tests.integration.cluster_load import committed_values
from tests.pipeline.topics import numbered

SOURCE, TARGET, PARTITIONS = "killed-in", "killed-out", 3
PER_BATCH = 40
STEPS = [
    (INIT_PRODUCER_ID, "request"),
    (OFFSET_FETCH, "request"),
    (ADD_PARTITIONS_TO_TXN, "request"),
    (ADD_OFFSETS_TO_TXN, "answer"),
    (TXN_OFFSET_COMMIT, "answer"),
    (END_TXN, "request"),
    (END_TXN, "answer"),
    (DELETE_RECORDS, "request"),
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
        os.kill(self._process.pid, signal.SIGKILL)

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
        strike(asked)

    if side == "answer":
        proxy.rule = strike
    else:
        proxy.before_request = strike_before


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(TXN_OFFSET_COMMIT, "answer"), (END_TXN, "answer")], id="two"),
        pytest.param(STEPS, id="all", marks=pytest.mark.soak),
    ],
)
def test_sp_3_every_record_is_there_once_wherever_a_query_is_killed(
    tmp_path: Path, steps: list[tuple[Api, str]]
) -> None:
    foreign.require_java()
    with behind_a_proxy() as proxy:
        confluent_client.create_topic(proxy.servers, SOURCE, 2, {})
        confluent_client.create_topic(proxy.servers, TARGET, PARTITIONS, {})
        job = Job(proxy.servers, tmp_path / "checkpoint")
        sent = 0
        with SyncProducer(proxy.servers) as producer:
            for api, side in steps:
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
        job.start()
        assert job.wait() == 0
        found = committed_values(proxy.servers, TARGET, PARTITIONS)
        assert sorted(found) == sorted(numbered(0, sent))
