"""Leaders and replicas changed and watched by command, on three brokers of one process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.admin.configs import BROKER, TOPIC, ConfigOperation, ConfigResource
from barnabas.client.admin.partition_admin import PREFERRED, UNCLEAN
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.errors import (
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.kit.broker.held_follower import held_follower
from tests.kit.processes.command_line import COMMAND
from tests.kit.waiting import wait_until

CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "100",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "2",
}

Run = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(brokers=3, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: barnabas.Cluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def run(cluster: barnabas.Cluster, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command for the cluster; its output and its errors."""

    def run(line: str, *more: str, code: int = 0) -> tuple[str, str]:
        capfd.readouterr()
        words = [*line.split(), *more, "--bootstrap-server", cluster.bootstrap_servers]
        actual = main(words)
        captured = capfd.readouterr()
        assert actual == code, captured
        return captured.out, captured.err

    return run


def create(admin: SyncAdmin, topic: str, *replicas: Sequence[int]) -> list[TopicPartition]:
    admin.create_topics([NewTopic(topic, assignment=dict(enumerate(replicas)))])
    return [TopicPartition(topic, number) for number in range(len(replicas))]


def leaders(admin: SyncAdmin, topic: str) -> list[int]:
    (described,) = admin.describe_topics([topic])
    return [partition.leader for partition in described.partitions]


def until_in_sync(admin: SyncAdmin, topic: str) -> None:
    def is_in_sync() -> bool:
        (described,) = admin.describe_topics([topic])
        return all(len(each.isr) == len(each.replicas) for each in described.partitions)

    wait_until(is_in_sync)


def bounce(cluster: barnabas.Cluster, admin: SyncAdmin, broker_id: int, topic: str) -> None:
    """It gives its leaderships away, and comes back as a follower."""
    cluster.stop_broker(broker_id)
    cluster.start_broker(broker_id)
    until_in_sync(admin, topic)


def plan_file(directory: Path, wanted: Mapping[TopicPartition, Sequence[int]]) -> str:
    path = directory / "plan.json"
    partitions = [
        {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
        for name, replicas in wanted.items()
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_the_admin_elects(cluster: barnabas.Cluster, admin: SyncAdmin) -> None:
    """RE-13: preferred elections, of some and of all that need one."""
    first, second = create(admin, "elect", [2, 1], [3, 1])
    bounce(cluster, admin, 2, "elect")
    assert leaders(admin, "elect") == [1, 3]
    nowhere = TopicPartition("elect", 7)
    outcomes = admin.elect_leaders(PREFERRED, [first, second, nowhere])
    assert outcomes[first] is None
    assert isinstance(outcomes[second], ElectionNotNeeded)
    assert isinstance(outcomes[nowhere], UnknownTopicOrPartition)
    wait_until(lambda: leaders(admin, "elect") == [2, 3])  # whichever broker is asked
    assert first not in admin.elect_leaders(PREFERRED)
    assert isinstance(admin.elect_leaders(UNCLEAN, [first])[first], ElectionNotNeeded)


def test_the_admin_moves_partitions(cluster: barnabas.Cluster, admin: SyncAdmin) -> None:
    """RE-13, KIP-455"""
    first, second = create(admin, "move", [1, 2], [2, 1])
    assert admin.list_partition_reassignments([first, second]) == {}
    assert admin.alter_partition_reassignments({first: [3, 2]}) == {first: None}
    wait_until(lambda: admin.list_partition_reassignments([first]) == {})
    wait_until(lambda: admin.describe_topics(["move"])[0].partitions[0].replicas == (3, 2))
    refused = admin.alter_partition_reassignments({first: [9], second: None})
    assert isinstance(refused[first], InvalidReplicaAssignment)
    assert isinstance(refused[second], NoReassignmentInProgress)


def test_every_replica_says_where_it_ends(cluster: barnabas.Cluster, admin: SyncAdmin) -> None:
    """RE-5: followers, too; and the leader says up to where all have it."""
    names = create(admin, "ends", [1, 2, 3], [2, 3, 1])
    with SyncProducer(cluster.bootstrap_servers, acks=-1) as producer:
        for number in range(10):
            producer.send("ends", b"%d" % number, partition=0)
        producer.flush()
    replicas = {names[0]: (1, 2, 3), names[1]: (2, 3, 9), TopicPartition("none", 0): (1,)}
    ends = admin.replica_ends(replicas)
    assert {broker: (end.end_offset, end.epoch) for broker, end in ends[names[0]].items()} == {
        1: (10, 0),
        2: (10, 0),
        3: (10, 0),
    }
    assert ends[names[0]][1].high_watermark == 10
    assert ends[names[1]].keys() == {2, 3}, "who is not there says nothing"
    assert ends[TopicPartition("none", 0)] == {}


def test_elect_leaders(
    cluster: barnabas.Cluster, admin: SyncAdmin, run: Run, tmp_path: Path
) -> None:
    """RE-13: Kafka's lines."""
    create(admin, "command", [2, 1], [3, 1])
    bounce(cluster, admin, 2, "command")
    file = tmp_path / "partitions.json"
    file.write_text(
        '{"partitions":[{"topic":"command","partition":0},{"topic":"command","partition":1}]}'
    )
    elect = "elect-leaders --election-type"
    said, _ = run(f"{elect} preferred --path-to-json-file {file}")
    assert said == (
        "Successfully completed leader election (PREFERRED) for partitions command-0\n"
        "Valid replica already elected for partitions command-1\n"
    )
    said, _ = run(f"{elect} PREFERRED --topic command --partition 0")
    assert said == "Valid replica already elected for partitions command-0\n"
    cluster.stop_broker(2)
    said, errors = run(f"{elect} preferred --topic command --partition 0", code=1)
    assert said.startswith(
        "Error completing leader election (PREFERRED) for partition: command-0: "
    )
    assert PreferredLeaderNotAvailable.name in said
    assert errors == "barnabas elect-leaders: 1 replica(s) could not be elected\n"
    cluster.start_broker(2)
    for topic in admin.list_topics():
        until_in_sync(admin, topic)
    said, _ = run(f"{elect} preferred --all-topic-partitions")
    assert "command-0" in said
    assert run(f"{elect} preferred --all-topic-partitions") == ("", "")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--topic t",
        "--partition 1",
        "--topic t --partition 0 --all-topic-partitions",
        "--path-to-json-file /none/file",
    ],
)
def test_elect_leaders_wants_to_know_for_whom(run: Run, words: str) -> None:
    _, errors = run(f"elect-leaders --election-type preferred {words}", code=2)
    assert "--help" in errors


def test_an_unclean_election_brings_a_partition_back(
    cluster: barnabas.Cluster, admin: SyncAdmin, run: Run
) -> None:
    """RE-11: asked for by hand, where the one that was in sync stays away."""
    create(admin, "unclean", [2, 1])
    cluster.stop_broker(1)
    cluster.stop_broker(2)
    cluster.start_broker(1)
    try:
        wait_until(lambda: leaders(admin, "unclean") == [-1])
        said, _ = run("topics describe --unavailable-partitions")
        assert "\tTopic: unclean\tPartition: 0\tLeader: none\tReplicas: 2,1\tIsr: 2\t" in said
        said, _ = run("elect-leaders --election-type unclean --topic unclean --partition 0")
        assert said.startswith("Successfully completed leader election (UNCLEAN) for partitions")
        wait_until(lambda: leaders(admin, "unclean") == [1])
    finally:
        cluster.start_broker(2)
    until_in_sync(admin, "unclean")


def test_reassign_from_the_proposal_to_the_end(
    cluster: barnabas.Cluster, admin: SyncAdmin, run: Run, tmp_path: Path
) -> None:
    """RE-13: the lines of Kafka's tool."""
    create(admin, "plan", [1, 2])
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics":[{"topic":"plan"}],"version":1}')
    generate = f"reassign --generate --topics-to-move-json-file {topics} --broker-list"
    said, _ = run(f"{generate} 2,3")
    lines = said.splitlines()
    now = (
        '{"version":1,"partitions":'
        '[{"topic":"plan","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )
    _, errors = run(f"{generate} 1,9", code=1)
    assert errors == "barnabas: there is no broker 9, only 1,2,3\n"
    assert lines[:4] == [
        "Current partition replica assignment",
        now,
        "",
        "Proposed partition reassignment configuration",
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(lines[4])
    said, _ = run(f"reassign --execute --reassignment-json-file {plan}")
    assert said == (
        f"Current partition replica assignment\n\n{now}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Successfully started partition reassignment for plan-0\n"
    )
    verify = f"reassign --verify --reassignment-json-file {plan}"
    wait_until(lambda: "completed" in run(verify)[0])
    status = "Status of partition reassignment:\nReassignment of partition plan-0 is completed.\n\n"
    cleared = (
        "Clearing broker-level throttles on brokers 1,2,3\n"
        "Clearing topic-level throttles on topic plan\n"
    )
    assert run(f"{verify} --preserve-throttles")[0] == status
    assert run(verify)[0] == status + cleared
    preferred = json.loads(lines[4])["partitions"][0]["replicas"][0]
    wait_until(lambda: leaders(admin, "plan") == [preferred])
    back = plan_file(tmp_path, {TopicPartition("plan", 0): [1, 2]})
    assert "rather than 1,2." in run(f"reassign --verify --reassignment-json-file {back}")[0]


def test_a_move_that_does_not_end_is_listed_and_taken_back(
    cluster: barnabas.Cluster, admin: SyncAdmin, run: Run, tmp_path: Path
) -> None:
    """RE-13"""
    (name,) = create(admin, "stuck", [1, 2])
    assert run("reassign --list")[0] == "No partition reassignments found.\n"
    file = plan_file(tmp_path, {name: [3, 2]})
    given = f"--reassignment-json-file {file}"
    with held_follower(3):
        run(f"reassign --execute {given}")
        moving = "stuck-0: replicas: 3,2,1. adding: 3. removing: 1.\n"
        assert run("reassign --list")[0] == f"Current partition reassignments:\n{moving}"
        assert "stuck-0 is still in progress.\n" in run(f"reassign --verify {given}")[0]
        _, errors = run(f"reassign --execute {given}", code=1)
        assert "other reassignments are in progress (see --list)" in errors
        assert "Successfully started" in run(f"reassign --execute --additional {given}")[0]
        said, _ = run(f"reassign --cancel {given} --preserve-throttles")
        assert said == "Successfully cancelled partition reassignment for: stuck-0\n"
    said, _ = run(f"reassign --cancel {given} --preserve-throttles")
    assert said == "None of the specified partition reassignments are active.\n"
    (described,) = admin.describe_topics(["stuck"])
    assert sorted(described.partitions[0].replicas) == [1, 2]


def test_a_throttle_is_set_changed_and_cleared(
    cluster: barnabas.Cluster, admin: SyncAdmin, run: Run, tmp_path: Path
) -> None:
    """RE-13, KIP-73: as Kafka's tool does it, for the replicas that move and no others."""
    first, second = create(admin, "slow", [1, 2], [2, 1])
    given = f"--reassignment-json-file {plan_file(tmp_path, {first: [3, 2]})}"
    other = tmp_path / "other"
    other.mkdir()
    also_given = f"--reassignment-json-file {plan_file(other, {second: [2, 3]})}"
    with held_follower(3):
        said, _ = run(f"reassign --execute {given} --throttle 1000")
        assert said.splitlines()[4:] == [
            "Save this to use as the --reassignment-json-file option during rollback",
            "Warning: You must run --verify periodically, until the reassignment completes, "
            "to ensure the throttle is removed.",
            "The inter-broker throttle limit was set to 1000 B/s",
            "Successfully started partition reassignment for slow-0",
        ]
        assert throttles(admin, "slow") == ("0:1,0:2", "0:3", ["1000"] * 6)
        run(f"reassign --execute {also_given} --throttle 2000 --additional")
        assert throttles(admin, "slow") == ("0:1,0:2,1:1,1:2", "0:3,1:3", ["2000"] * 6)
        run(f"reassign --execute {given} --throttle 3000 --additional")
        assert throttles(admin, "slow") == ("0:1,0:2,1:1,1:2", "0:3,1:3", ["3000"] * 6)
        assert "Clearing" not in run(f"reassign --verify {given}")[0]
        run(f"reassign --cancel {given} --preserve-throttles")
        assert "Clearing" not in run(f"reassign --verify {given}")[0], "the other one goes on"
        assert throttles(admin, "slow")[2] == ["3000"] * 6
        run(f"reassign --cancel {also_given}")
    assert throttles(admin, "slow") == ("", "", [None] * 6)
    run(f"reassign --execute {given} --throttle 50000000")
    assert throttles(admin, "slow") == ("0:1,0:2", "0:3", ["50000000"] * 6)
    wait_until(lambda: "completed" in run(f"reassign --verify {given}")[0])
    assert throttles(admin, "slow") == ("", "", [None] * 6)


def test_a_throttle_that_cannot_be_cleared_is_reported(
    admin: SyncAdmin, run: Run, tmp_path: Path
) -> None:
    """The other ones are cleared all the same; of a topic that has gone there is nothing to."""
    (name,) = create(admin, "cleared", [1])
    at_two = ConfigResource(BROKER, "2")
    admin.alter_configs(at_two, [ConfigOperation("leader.replication.throttled.rate", value="9")])
    wanted = {name: [9], TopicPartition("gone", 0): [1]}
    given = f"--reassignment-json-file {plan_file(tmp_path, wanted)}"
    said, errors = run(f"reassign --verify {given}", code=1)
    assert said.endswith(
        "Clearing broker-level throttles on brokers 1,2,3,9\n"
        "Clearing topic-level throttles on topic cleared\n"
    )
    assert "the throttles of 9: no broker '9' is known to be alive" in errors
    assert throttles(admin, "cleared") == ("", "", [None] * 6)


def throttles(admin: SyncAdmin, topic: str) -> tuple[str | None, str | None, list[str | None]]:
    """The leaders' replicas, the followers', and both rates of each broker; None: unlimited."""
    names = [f"{side}.replication.throttled.replicas" for side in ("leader", "follower")]
    leaders, followers = values(admin, ConfigResource(TOPIC, topic), names)
    names = [f"{side}.replication.throttled.rate" for side in ("leader", "follower")]
    rates = [
        value
        for broker_id in (1, 2, 3)
        for value in values(admin, ConfigResource(BROKER, str(broker_id)), names)
    ]
    return leaders, followers, rates


def values(admin: SyncAdmin, resource: ConfigResource, names: Sequence[str]) -> list[str | None]:
    found = {entry.name: entry.value for entry in admin.describe_configs(resource, names)}
    return [found.get(name) for name in names]


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({TopicPartition("nowhere", 0): [1]}, "topic 'nowhere'"),
        ({TopicPartition("refused", 5): [1]}, "partition refused-5 does not exist"),
        ({TopicPartition("refused", 0): [1, 9]}, "there is no broker 9, only 1,2,3"),
        ({TopicPartition("refused", 0): [1, 1]}, "names a broker twice"),
    ],
)
def test_what_cannot_be_is_refused_before_it_begins(
    admin: SyncAdmin,
    run: Run,
    tmp_path: Path,
    wanted: Mapping[TopicPartition, Sequence[int]],
    complaint: str,
) -> None:
    if "refused" not in admin.list_topics():
        create(admin, "refused", [1, 2])
    file = plan_file(tmp_path, wanted)
    _, errors = run(f"reassign --execute --reassignment-json-file {file}", code=1)
    assert complaint in errors
    assert admin.list_partition_reassignments() == {}


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--generate",
        "--execute",
        "--verify",
        "--generate --broker-list x",
        "--list --throttle 5",
        "--list --preserve-throttles",
        "--execute --throttle slow",
    ],
)
def test_reassign_wants_to_know_what(run: Run, words: str) -> None:
    assert "--" in run(f"reassign {words}", code=2)[1]


def test_watch_once(cluster: barnabas.Cluster, admin: SyncAdmin, run: Run) -> None:
    """RE-5, RE-14: with a dead broker, a replica whose end is unknown."""
    create(admin, "watched", [1, 2, 3])
    with SyncProducer(cluster.bootstrap_servers, acks=-1) as producer:
        producer.send("watched", b"x")
        producer.flush()
    expected = (
        "Topic: watched\tPartition: 0\tLeader: 1\tLeaderEpoch: 0\tIsr: 1,2,3\tHighWatermark: 1\n"
        "\tBroker: 1\tLogEndOffset: 1\tLag: 0\tLagSeconds: 0.0\tLastEpoch: 0\tleader\n"
        "\tBroker: 2\tLogEndOffset: 1\tLag: 0\tLagSeconds: 0.0\tLastEpoch: 0\tin sync\n"
        "\tBroker: 3\tLogEndOffset: 1\tLag: 0\tLagSeconds: 0.0\tLastEpoch: 0\tin sync\n"
    )
    assert run("partitions watch --once --topic watched")[0] == expected
    admin.describe_groups(["anybody"])  # has the offsets' topic made
    said, _ = run("partitions watch --once")
    assert expected in said
    assert "__consumer_offsets" not in said
    assert (
        "Topic: __consumer_offsets\tPartition: 1\t" in run("partitions watch --once --internal")[0]
    )
    assert run("partitions watch --once --topic __consumer_offsets")[0].count("Topic: ") == 2
    cluster.stop_broker(3)
    try:
        nodes = [cluster.server(each).node for each in (1, 2)]
        wait_until(lambda: all(set(each.image.brokers) == {1, 2} for each in nodes))
        said, _ = run("partitions watch --topic watched --once")
        assert "\tBroker: 3\tLogEndOffset: ?\tLag: ?\t" in said
        assert said.endswith("\tgone\n")
        (described,) = json.loads(run("partitions watch --topic watched --json")[0])
        assert described["isr"] == [1, 2]
        assert [each["live"] for each in described["replicas"]] == [True, True, False]
    finally:
        cluster.start_broker(3)
    until_in_sync(admin, "watched")
    _, errors = run("partitions watch --once --topic nowhere", code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in errors


def test_into_a_pipe_changes_are_printed_as_they_come(
    cluster: barnabas.Cluster, admin: SyncAdmin
) -> None:
    """IN-2: with the reasons that the brokers report."""
    create(admin, "piped", [2, 1])
    with watching(cluster.bootstrap_servers, "--topic", "piped") as lines:
        assert [next(lines).split("\t")[0] for _ in range(3)] == ["Topic: piped", "", ""]
        time.sleep(0.2)
        cluster.stop_broker(2)  # it comes back only when the watcher has seen that it is away
        changes = [next(lines).partition(" piped-0: ")[2] for _ in range(3)]
        cluster.start_broker(2)
        until_in_sync(admin, "piped")
        reason = "election because controlled shutdown of broker 2\n"
        assert reason in changes
        changes.remove(reason)
        assert changes[0].startswith("leader broker 2 -> broker 1, epoch 1")
        assert changes[1].startswith("ISR 2,1 -> 1")
        grown = sorted(next(lines).partition(" piped-0: ")[2] for _ in range(2))
        assert grown == ["ISR 1 -> 1,2\n", "isr-expand because broker 2 has caught up\n"]


def test_a_watcher_without_an_answer_says_so_and_waits() -> None:
    """UX-4: the last state printed may no longer be true."""
    with barnabas.Broker() as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            create(admin, "alone", [0])
        with watching(broker.bootstrap_servers) as lines:
            assert next(lines).startswith("Topic: alone\t")
            assert next(lines).startswith("\tBroker: 0\t")
            broker.stop()
            assert any(line.endswith("Z no broker has answered since\n") for line in lines)


@contextlib.contextmanager
def watching(servers: str, *words: str) -> Iterator[Iterator[str]]:
    """The lines of a watcher that writes into a pipe, and that is still at it in the end."""
    watcher = subprocess.Popen(
        [COMMAND, "partitions", "watch", "--interval-ms", "50", "--bootstrap-server", servers,
         *words],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert watcher.stdout is not None
    try:
        yield iter(watcher.stdout.readline, "")
        assert watcher.poll() is None
    finally:
        watcher.kill()
        watcher.communicate()
