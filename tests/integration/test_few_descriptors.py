"""A broker process with few file descriptors: connections wait, writes are refused, it lives on."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from barnabas.broker.network.connections import _COUNT_EVERY_MS
from barnabas.errors import KafkaStorageError
from barnabas.protocol.api import API_VERSIONS, PRODUCE
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.kit.broker.produces import produce_request
from tests.kit.broker.topics import create
from tests.kit.processes.broker_process import broker_process
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

PARTITIONS = 60
SPARE = 40  # descriptors, when it has started
MOST = 60  # connections: those, and fewer than the backlog has room for


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux has prlimit")
@pytest.mark.slow
def test_st_10_it_survives_and_serves_when_some_are_back(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "many", PARTITIONS)
        assert broker.process is not None
        pid = broker.process.pid
        limit = len(os.listdir(f"/proc/{pid}/fd")) + SPARE
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
        time.sleep(2 * _COUNT_EVERY_MS / 1000)  # the next connection has it count again

        others: list[RawClient] = []

        def is_full() -> bool:
            if len(others) < MOST:
                others.append(RawClient(broker.bootstrap_servers))
                others[-1].send(API_VERSIONS, 0, ApiVersionsRequest())
            return "accepting no connections" in broker.log.read_text()

        wait_until(is_full)

        def produce_to_all() -> set[int]:
            """The error codes, of which each partition has one."""
            codes = set()
            for index in range(PARTITIONS):
                answer = client.call(PRODUCE, 9, produce_request("many", {index: batch(b"a")}))
                codes.add(answer.responses[0].partition_responses[0].error_code)
            return codes

        assert produce_to_all() == {0, KafkaStorageError.code}
        assert produce_to_all() == {0, KafkaStorageError.code}, "what is refused is refused again"
        said = [line for line in broker.log.read_text().splitlines() if "Too many open" in line]
        assert len(said) == 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert produce_to_all() == {0}
        assert "offline" not in broker.log.read_text()
        for each in others:
            assert each.receive_frame(), "it was in the backlog"
            each.close()
        assert broker.stop() == 0
