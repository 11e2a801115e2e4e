"""Our commands beside Kafka 3.9's own tools, on the same partitions of the same three brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.admin.configs import (
    BROKER,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
)
from barnabas.client.sync.producer import SyncAdmin
from tests.kit.broker.held_follower import held_follower
from tests.kit.clients.kafka_tools import Tools
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

ELECTION, REASSIGNMENT = "kafka-leader-election", "kafka-reassign-partitions"
TOPICS = "kafka-topics"
CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "100",
}
SET_BY_HAND = (DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG)


class Both:
    """Says a line to our command or to Kafka's tool."""

    def __init__(self, servers: str, directory: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._servers = servers
        self._capture = capture
        self._tools = Tools(servers, directory)

    def ours(self, line: str, code: int = 0) -> str:
        self._capture.readouterr()
        assert main([*line.split(), "--bootstrap-server", self._servers]) == code
        return self._capture.readouterr().out

    def kafkas(self, tool: str, line: str, code: int = 0) -> str:
        return self._tools.run(tool, *line.split(), code=code)


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(brokers=3, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: barnabas.Cluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def both(cluster: barnabas.Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Both:
    return Both(cluster.bootstrap_servers, tmp_path, capfd)


def file_of(directory: Path, text: str) -> Path:
    path = directory / "given.json"
    path.write_text(text)
    return path


def test_the_filters_of_describe(cluster: barnabas.Cluster, admin: SyncAdmin, both: Both) -> None:
    """TP-4: with one broker away, line for line."""
    configs = {"min.insync.replicas": "2"}
    admin.create_topics([NewTopic("a", configs=configs, assignment={0: [1, 3], 1: [1, 2]})])
    admin.create_topics([NewTopic("b", assignment={0: [3], 1: [2]})])
    cluster.stop_broker(3)

    def are_informed() -> bool:
        images = [cluster.server(each).node.image for each in (1, 2)]
        known = [each.topics["b"] for each in images if "b" in each.topics]
        return len(known) == 2 and all(each.partitions[0].leader == -1 for each in known)

    try:
        wait_until(are_informed)  # each of the two may be asked, by either command
        for filters in (
            "--under-replicated-partitions",
            "--unavailable-partitions",
            "--under-min-isr-partitions",
            "--at-min-isr-partitions",
            "--exclude-internal --topic a",
            "--topic b --unavailable-partitions",
        ):
            ours = both.ours(f"topics describe {filters}")
            theirs = both.kafkas(TOPICS, f"--describe {filters}")
            assert sorted(ours.splitlines()) == sorted(theirs.splitlines()), filters
            assert ours
    finally:
        cluster.start_broker(3)


def test_elections(cluster: barnabas.Cluster, admin: SyncAdmin, both: Both, tmp_path: Path) -> None:
    """RE-13: the same words, but for the Java name of an error."""
    admin.create_topics([NewTopic("e", assignment={0: [1, 2], 1: [2, 1]})])
    file = file_of(
        tmp_path, '{"partitions":[{"topic":"e","partition":0},{"topic":"e","partition":1}]}'
    )
    line = f"--election-type preferred --path-to-json-file {file}"
    said = {}
    for name in ("ours", "theirs"):
        cluster.stop_broker(2)
        cluster.start_broker(2)
        wait_until(
            lambda: all(len(each.isr) == 2 for each in admin.describe_topics(["e"])[0].partitions)
        )
        said[name] = (
            both.ours(f"elect-leaders {line}") if name == "ours" else both.kafkas(ELECTION, line)
        )
    assert said["ours"] == said["theirs"]
    assert "(PREFERRED) for partitions e-1\n" in said["ours"]
    absent = "--election-type unclean --topic e --partition 7"
    ours = both.ours(f"elect-leaders {absent}", code=1)
    theirs = both.kafkas(ELECTION, absent, code=1)
    assert ours.split(": ")[:2] == theirs.split(": ")[:2]


def test_reassignments(
    cluster: barnabas.Cluster, admin: SyncAdmin, both: Both, tmp_path: Path
) -> None:
    """RE-13: line for line; each tool goes on where the other one has begun."""
    admin.create_topics([NewTopic("r", assignment={0: [1, 2], 1: [2, 3]})])
    topics = file_of(tmp_path, '{"topics":[{"topic":"r"}],"version":1}')
    generate = f"--generate --topics-to-move-json-file {topics} --broker-list 1,2,3"
    ours = both.ours(f"reassign {generate}").splitlines()
    theirs = both.kafkas(REASSIGNMENT, generate).splitlines()
    assert ours[:4] == theirs[:4]
    assert len(ours) == len(theirs) == 5
    assert json.loads(ours[4]).keys() == json.loads(theirs[4]).keys(), "both draw lots"
    plan = file_of(
        tmp_path, '{"version":1,"partitions":[{"topic":"r","partition":0,"replicas":[1,3]}]}'
    )
    given = f"--reassignment-json-file {plan}"
    verify = f"--verify --preserve-throttles {given}"
    assert_same(both.ours(f"reassign {verify}"), both.kafkas(REASSIGNMENT, verify))
    with held_follower(3):
        said = both.ours(f"reassign --execute {given}")
        assert_same(both.ours("reassign --list"), both.kafkas(REASSIGNMENT, "--list"))
        assert_same(both.ours(f"reassign --verify {given}"), both.kafkas(REASSIGNMENT, verify))
        assert_same(both.ours("topics describe r"), both.kafkas(TOPICS, "--describe --topic r"))
        filtered = "--under-replicated-partitions --topic r"
        assert both.ours(f"topics describe {filtered}") == ""
        assert both.kafkas(TOPICS, f"--describe {filtered}") == ""
        cancelled = both.kafkas(REASSIGNMENT, f"--cancel --preserve-throttles {given}")
        assert_same(both.kafkas(REASSIGNMENT, f"--execute {given}"), said)
        assert both.ours(f"reassign --cancel --preserve-throttles {given}") in cancelled
        assert_same(both.ours("reassign --list"), both.kafkas(REASSIGNMENT, "--list"))


def test_throttles(cluster: barnabas.Cluster, admin: SyncAdmin, both: Both, tmp_path: Path) -> None:
    """RE-13, KIP-73: the same settings by the same words, while it begins, goes on and is over."""
    admin.create_topics([NewTopic("th", assignment={0: [1, 2], 1: [2, 1], 2: [2, 1]})])
    partitions = [
        {"topic": "th", "partition": number, "replicas": replicas}
        for number, replicas in enumerate([[1, 3], [2, 3], [3, 2]])
    ]
    plan = file_of(tmp_path, json.dumps({"version": 1, "partitions": partitions}))
    given = f"--reassignment-json-file {plan}"
    with held_follower(3):
        ours = both.ours(f"reassign --execute --throttle 1000 {given}")
        begun = settings(admin, "th")
        both.ours(f"reassign --cancel {given}")
        cleared = settings(admin, "th")
        assert_same(ours, both.kafkas(REASSIGNMENT, f"--execute --throttle 1000 {given}"))
        assert settings(admin, "th") == begun != cleared
        line = f"--execute --throttle 2000 --additional {given}"
        ours = both.ours(f"reassign {line}")
        changed = settings(admin, "th")
        assert_same(both.kafkas(REASSIGNMENT, line), ours)
        assert settings(admin, "th") == changed != begun
        ours = both.ours(f"reassign --verify {given}")
        assert_same(ours, both.kafkas(REASSIGNMENT, f"--verify {given}"))
        assert settings(admin, "th") == changed
        both.ours(f"reassign --cancel --preserve-throttles {given}")
        assert settings(admin, "th") == changed
        ours = both.ours(f"reassign --verify {given}")
        assert settings(admin, "th") == cleared
        both.ours(f"reassign --execute --throttle 2000 {given}")
        both.ours(f"reassign --cancel --preserve-throttles {given}")
        assert_same(ours, both.kafkas(REASSIGNMENT, f"--verify {given}"))
        assert settings(admin, "th") == cleared


def settings(admin: SyncAdmin, topic: str) -> dict[ConfigResource, set[tuple[str, str | None]]]:
    """What is set of throttles, wherever."""
    resources = [ConfigResource(TOPIC, topic)]
    resources += [ConfigResource(BROKER, str(broker_id)) for broker_id in (1, 2, 3)]
    return {
        resource: {
            (entry.name, entry.value)
            for entry in admin.describe_configs(resource)
            if "throttled" in entry.name and entry.source in SET_BY_HAND
        }
        for resource in resources
    }


def assert_same(ours: str, theirs: str) -> None:
    """But for empty lines at the end."""
    assert ours.rstrip("\n") == theirs.rstrip("\n")
