"""The defaults of Kafka 2.3, on a broker and in our clients."""

from __future__ import annotations

import contextlib
import re
import subprocess
from typing import TYPE_CHECKING

import barnabas
from barnabas.client import ConfigResource, SyncAdmin, SyncProducer, kafka_2_3
from barnabas.client.admin.admin import BROKER, STATIC_BROKER_CONFIG
from barnabas.config.profiles import profile
from tests.kit.processes.broker_process import COMMAND, STOP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_profile_stands_below_all_other_settings(tmp_path: Path) -> None:
    """And its values are described as settings of the broker."""
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.session.timeout.ms=7000\n")
    words = [str(file), "--profile", "kafka-2.3", "--override", "message.max.bytes=77777"]
    with server(tmp_path / "data", *words) as servers, SyncAdmin(servers) as admin:
        entries = admin.describe_configs(ConfigResource(BROKER, "0"), list(profile("kafka-2.3")))
    assert {entry.name: entry.value for entry in entries} == {
        "inter.broker.protocol.version": "2.3-IV1",
        "message.max.bytes": "77777",
        "replica.lag.time.max.ms": "10000",
        "zookeeper.session.timeout.ms": "7000",
    }
    assert {entry.source for entry in entries} == {STATIC_BROKER_CONFIG}


@contextlib.contextmanager
def server(data_dir: Path, *words: str) -> Iterator[str]:
    """The address of a broker in a process of its own."""
    listener = "listeners=PLAINTEXT://127.0.0.1:0"
    command = [str(COMMAND), "server", "start", "--data-dir", str(data_dir)]
    command += ["--override", listener, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        found = re.match(r"barnabas ready on \S+:(\d+) ", ready)
        assert found is not None, ready or process.communicate()[1]
        yield f"127.0.0.1:{found[1]}"
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


def test_a_producer_of_2_3_takes_the_partitions_in_turn() -> None:
    with (
        barnabas.Broker(config={"num.partitions": 3}) as broker,
        SyncProducer(broker.bootstrap_servers, **kafka_2_3.PRODUCER) as producer,
    ):
        sent = [producer.send("t", b"%d" % number) for number in range(9)]
        partitions = [delivery.result().partition for delivery in sent]
    assert sorted(partitions) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert partitions[:3] == partitions[3:6] == partitions[6:]
