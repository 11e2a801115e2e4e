"""`offsets`, `log-dirs`, `cluster describe` and `health`: what a cluster says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.command_line import InProcess

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

BEGAN_MS = 1_760_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With five records in two partitions of `t`, the oldest deleted, and an empty topic."""
    with package.Broker(config={"log.retention.ms": "-1"}) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 2), NewTopic("empty", 1)])
        with SyncProducer(running.bootstrap_servers) as producer:
            for number in range(5):
                at_ms = BEGAN_MS + number
                producer.send("t", b"x", partition=number % 2, timestamp_ms=at_ms).result(60)
        yield running


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "empty:0:0\nt:0:3\nt:1:2\n"),
        ("t", "t:0:3\nt:1:2\n"),
        ("t:1 --topic empty", "empty:0:0\nt:1:2\n"),
        ("t --time earliest", "t:0:0\nt:1:0\n"),
        ("t --time -1", "t:0:3\nt:1:2\n"),
        ("t --time max-timestamp", "t:0:2\nt:1:1\n"),
        (f"t --time {BEGAN_MS + 3}", "t:0:2\nt:1:1\n"),
        (f"t --time {BEGAN_MS + 4}", "t:0:2\n"),
        ("t --time 2025-10-09T08:53:20.001Z", "t:0:1\nt:1:0\n"),
        ("t --time now", ""),
    ],
)
def test_offsets_of_partitions(barnabas: InProcess, words: str, expected: str) -> None:
    assert barnabas(f"offsets {words}")[0] == expected


def test_offsets_as_data_and_what_is_refused(barnabas: InProcess) -> None:
    found = json.loads(barnabas("offsets t --time max-timestamp --json")[0])
    assert found[0] == {
        "topic": "t", "partition": 0, "offset": 2, "timestamp": BEGAN_MS + 4,
    }  # fmt: skip
    assert json.loads(barnabas("offsets t:1 --time now --json")[0])[0]["offset"] is None
    for words, code, problem in (
        ("t:9", 1, "partitions 0 to 1, not 9"),
        ("t:x", 2, "not a topic with partitions"),
        ("t --time soon", 2, "--time soon: not a time"),
        ("gone", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        errors = barnabas(f"offsets {words}", code=code)[1]
        assert problem in errors and errors.count("\n") == 1


def test_log_directories_with_their_replicas(barnabas: InProcess, broker: Broker) -> None:
    """In Kafka's lines, the last of which is JSON; and as data with the volume's size."""
    lines = barnabas("log-dirs describe --topic t")[0].splitlines()
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 0",
    ]
    (described,) = json.loads(lines[2])["brokers"]
    (directory,) = described["logDirs"]
    assert (described["broker"], directory["error"]) == (0, None)
    assert [each["partition"] for each in directory["partitions"]] == ["t-0", "t-1"]
    assert all(each["size"] > 0 for each in directory["partitions"])
    (found,) = json.loads(barnabas("log-dirs describe --broker 0 --json")[0])
    assert {each["topic"] for each in found["replicas"]} == {"t", "empty"}
    assert found["usable_bytes"] > 0
    errors = barnabas("log-dirs describe --broker 7", code=2)[1]
    assert "--broker 7: this broker is not alive; the live brokers are 0" in errors


@pytest.mark.foreign
@pytest.mark.slow
def test_the_lines_are_kafkas(barnabas: InProcess, broker: Broker, tmp_path: Path) -> None:
    kafkas = Tools(broker.bootstrap_servers, tmp_path)
    for theirs, ours in (
        ("", ""),
        ("--topic t --time max-timestamp", "t --time max-timestamp"),
        (f"--topic-partitions t:0,empty --time {BEGAN_MS + 4}", f"t:0 empty --time {BEGAN_MS + 4}"),
    ):
        assert barnabas(f"offsets {ours}")[0] == kafkas.run("kafka-get-offsets", *theirs.split())
    theirs = kafkas.run("kafka-log-dirs", "--describe", "--topic-list", "t")
    assert _sorted(theirs) == _sorted(barnabas("log-dirs describe --topic t")[0])


def _sorted(text: str) -> tuple[list[str], dict[str, Any]]:
    """The partitions of a directory in order: Kafka's are in that of a hash table."""
    *lines, last = text.splitlines()
    found = json.loads(last)
    found["brokers"][0]["logDirs"][0]["partitions"].sort(key=lambda each: each["partition"])
    return lines, found


def test_a_cluster_and_its_brokers(barnabas: InProcess, broker: Broker) -> None:
    first, second = barnabas("cluster describe")[0].splitlines()
    assert first.endswith(": 1 broker, controller 0, 2 topics, 3 partitions")
    address = broker.bootstrap_servers
    assert second == f"\tBroker: 0\tAddress: {address}\tLeaders: 3\tReplicas: 3\tController"
    described = json.loads(barnabas("cluster describe --json")[0])
    assert first.startswith(f"Cluster {described['cluster_id']}: ")
    assert (described["controller"], described["brokers"][0]["leaders"]) == (0, 3)


def test_a_cluster_that_is_well(barnabas: InProcess) -> None:
    assert barnabas("cluster health")[0] == (
        "healthy: 1 broker, controller 0, 2 topics, 3 partitions, all replicas in sync\n"
    )
    assert json.loads(barnabas("cluster health --json")[0]) == {"healthy": True, "problems": []}


def test_a_cluster_without_one_of_its_brokers(capfd: pytest.CaptureFixture[str]) -> None:
    """Under-replicated, below min.insync.replicas and offline: a line each, and exit code 1."""
    from barnabas.cli.main import main

    with package.Cluster(3) as cluster:
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            admin.create_topics(
                [
                    NewTopic("one", assignment={0: [2]}),
                    NewTopic("two", assignment={0: [1, 2]}, configs={"min.insync.replicas": "2"}),
                    NewTopic("three", assignment={0: [1, 2, 3]}),
                ]
            )
        assert main(["cluster", "health", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        cluster.stop_broker(2)
        assert main(["cluster", "health", "--bootstrap-server", cluster.bootstrap_servers]) == 1
        lines = capfd.readouterr().out.splitlines()[1:]
        assert lines == [
            "missing-broker: broker 2 is not alive, and has replicas of 3 partitions",
            "offline: one-0 has no leader: it can be neither read nor written (in sync 2 of 2)",
            "under-min-isr: two-0 rejects writes with acks=all: in sync 1 of 1,2, "
            "but min.insync.replicas is 2",
            "under-replicated: three-0 is under-replicated: in sync 1,3 of 1,2,3",
        ]
        assert main(["offsets", "--bootstrap-server", cluster.bootstrap_servers]) == 1
        assert capfd.readouterr() == (
            "three:0:0\ntwo:0:0\n",
            "barnabas offsets: one-0 has no leader: its offsets are unknown\n",
        )
