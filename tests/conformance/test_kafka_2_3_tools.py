"""UX-5: Kafka 2.3.1's own tools with --zookeeper work on our brokers, and ours print the same.

The lines of texts about Kafka 2.3 name the cluster by its ZooKeeper. What 2.3.1 prints for them is
compared to the byte with what ours prints; a warning goes to standard error. The ZooKeeper is our
own server, on which Kafka's old tools work unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.main import main
from tests.kit.clients.kafka_2_3_tools import OldTools
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.cluster_process import ClusterProcess, started
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

Capture = pytest.CaptureFixture[str]
WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """One broker on our ZooKeeper server (ZS-1)."""
    directory = tmp_path_factory.mktemp("cluster")
    with started(ClusterProcess(directory, 1, zookeeper=OwnZooKeeperProcess(directory))) as running:
        yield running


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldTools]:
    with OldTools(tmp_path_factory.mktemp("tools")) as tools:
        yield tools


def ours(capfd: Capture, tool: str, *words: str) -> tuple[int, str]:
    """The exit code and standard output; the warning must be on standard error."""
    capfd.readouterr()
    code = main([f"{tool}.sh", *words])
    output, errors = capfd.readouterr()
    assert errors.startswith(WARNING), errors
    return code, output


SAME = (
    "--create --topic same --partitions 1 --replication-factor 1",
    "--create --topic same --partitions 1 --replication-factor 1 --if-not-exists",
    "--create --topic other --partitions 0 --replication-factor 1",
    "--create --topic other --partitions 1 --replication-factor 0",
    "--create --topic other --partitions 1 --replication-factor 2",
    "--list",
    "--list --topic sa.*",
    "--list --topic nothing",
    "--describe --topic same",
    "--describe --topic nothing",
    "--describe --topic nothing --if-exists",
    "--describe --under-replicated-partitions",
    "--describe --unavailable-partitions",
    "--alter --topic same --partitions 1",
    "--alter --topic same --config retention.ms=1000",
    "--describe --topics-with-overrides",
    "--describe --exclude-internal",
    "--alter --topic same --delete-config retention.ms",
    "--alter --topic nothing --partitions 2",
    "--delete --topic nothing",
    "--delete --topic nothing --if-exists",
)


def test_ux_5_topics_by_zookeeper_print_what_kafka_2_3_1_prints(
    cluster: ClusterProcess, theirs: OldTools, capfd: Capture
) -> None:
    at = ("--zookeeper", cluster.zookeeper.connect)
    created = ("--create", "--partitions", "1", "--replication-factor", "1", "--topic")
    for topic in ("same", "with.dot"):
        said = theirs.call("kafka-topics", *at, *created, topic)
        assert ours(capfd, "kafka-topics", *at, *created, topic + "2") == (
            said.code,
            said.output.replace(topic, topic + "2"),
        )
    for line in SAME:
        said = theirs.call("kafka-topics", *at, *line.split())
        assert ours(capfd, "kafka-topics", *at, *line.split()) == (said.code, said.output), line
    for words in (("--alter", "--partitions", "4"), ("--delete",)):
        said = theirs.call("kafka-topics", *at, *words, "--topic", "same")
        code, output = ours(capfd, "kafka-topics", *at, *words, "--topic", "same2")
        assert (code, output) == (said.code, said.output.replace("same", "same2"))


CONFIGS = (
    "--alter --entity-type topics --entity-name NAME --add-config retention.ms=1000",
    "--describe --entity-type topics --entity-name NAME",
    "--alter --entity-type topics --entity-name NAME --delete-config retention.ms",
    "--alter --entity-type topics --entity-name NAME --delete-config retention.ms",
    "--alter --entity-type users --entity-name NAME --add-config producer_byte_rate=100",
    "--describe --entity-type users --entity-name NAME",
    "--alter --entity-type users --entity-name NAME --entity-type clients --entity-default "
    "--add-config producer_byte_rate=100",
    "--describe --entity-type users --entity-name NAME --entity-type clients",
    "--describe --entity-type users --entity-type clients",
    "--alter --entity-type clients --entity-name NAME --add-config consumer_byte_rate=100",
    "--describe --entity-type clients --entity-name NAME",
    "--alter --entity-type clients --entity-name NAME --add-config foo=100",
)


def test_ux_5_configs_by_zookeeper_print_what_kafka_2_3_1_prints(
    cluster: ClusterProcess, theirs: OldTools, capfd: Capture
) -> None:
    """Of a topic and a quota each; and both tools see what the other has set."""
    at = ("--zookeeper", cluster.zookeeper.connect)
    new = (*at, "--create", "--partitions", "1", "--replication-factor", "1", "--topic")
    for name in ("theirs", "mine"):
        theirs.run("kafka-topics", *new, name)
    for line in CONFIGS:
        said = theirs.call("kafka-configs", *at, *line.replace("NAME", "theirs").split())
        code, output = ours(capfd, "kafka-configs", *at, *line.replace("NAME", "mine").split())
        if "NAME" in line:
            output = output.replace("mine", "theirs")
        assert code == said.code, line
        assert sorted(output.splitlines()) == sorted(said.output.splitlines()), line
    for line in CONFIGS:
        if "--describe" in line and "NAME" in line:
            words = line.replace("NAME", "mine").split()
            assert ours(capfd, "kafka-configs", *at, *words)[1] == theirs.run(
                "kafka-configs", *at, *words
            )


def test_ux_5_users_by_zookeeper_are_those_of_kafka_3_9_1(
    cluster: ClusterProcess, tmp_path: Path, capfd: Capture
) -> None:
    """3.9.1 has the option still: its nodes have the form of ours, and it reads ours."""
    tools = Tools(cluster.bootstrap_servers, tmp_path)
    at = ("--zookeeper", cluster.zookeeper.connect)
    user = (*at, "--entity-type", "users", "--entity-name")
    added = ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    said = tools.try_run("kafka-configs", *user, "kafka", *added)
    code, output = ours(capfd, "kafka-configs", *user, "barnabas", *added)
    expected = said.stdout.removeprefix(WARNING).replace("kafka", "barnabas")
    assert (code, output) == (said.returncode, expected)
    described = ours(capfd, "kafka-configs", *user, "kafka", "--describe")[1]
    assert "user-principal 'kafka' are SCRAM-SHA-256=salt=" in described
    theirs = tools.try_run("kafka-configs", *user, "barnabas", "--describe").stdout
    assert theirs == WARNING + ours(capfd, "kafka-configs", *user, "barnabas", "--describe")[1]


def test_ux_5_preferred_leaders_by_zookeeper_print_what_kafka_2_3_1_prints(
    cluster: ClusterProcess, theirs: OldTools, tmp_path: Path, capfd: Capture
) -> None:
    """One partition that exists and one that does not; by a broker, one that is led already."""
    at = ("--zookeeper", cluster.zookeeper.connect)
    new = (*at, "--create", "--partitions", "1", "--replication-factor", "1", "--topic", "led")
    theirs.run("kafka-topics", *new)
    file = tmp_path / "partitions.json"
    names = [{"topic": "led", "partition": 0}, {"topic": "led", "partition": 7}]
    file.write_text(json.dumps({"partitions": names}))
    words = ("kafka-preferred-replica-election", "--path-to-json-file", str(file))
    said = theirs.call(*words, *at)
    code, output = ours(capfd, *words, *at)
    assert (code, WARNING + output) == (said.code, said.output)
    servers = ("--bootstrap-server", cluster.bootstrap_servers)
    assert main([f"{words[0]}.sh", *words[1:], *servers]) == 1
    assert capfd.readouterr().out == (
        "Successfully completed preferred replica election for partitions led-0\n"
        "Error completing preferred replica election for partition led-7: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: partition led-7 does not "
        "exist\n"
    )


def test_ux_5_the_tools_of_kafka_2_3_1_work_on_our_brokers(
    cluster: ClusterProcess, theirs: OldTools
) -> None:
    """The way through the texts: a topic, three records, the segment; and the topic's end.

    KIP-516: 2.3.1 writes the larger topic without its id, and the records stay all the same.
    """
    at = ("--zookeeper", cluster.zookeeper.connect)
    new = (*at, "--create", "--partitions", "1", "--replication-factor", "1", "--topic", "life")
    assert theirs.run("kafka-topics", *new) == "Created topic life.\n"
    assert "life" in theirs.run("kafka-topics", *at, "--list").splitlines()
    to = ("--broker-list", cluster.bootstrap_servers, "--topic", "life")
    theirs.run("kafka-console-producer", *to, stdin="one\ntwo\nthree\n")
    by = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", "life", "--from-beginning")
    limits = ("--max-messages", "3", "--timeout-ms", "60000")
    assert theirs.run("kafka-console-consumer", *by, *limits) == "one\ntwo\nthree\n"
    log = cluster.brokers[1].data_dir / "life-0" / f"{0:020}.log"
    dumped = theirs.run("kafka-dump-log", "--files", str(log), "--print-data-log")
    payloads = [
        line.rpartition("payload: ")[2] for line in dumped.splitlines() if "payload" in line
    ]
    assert payloads == ["one", "two", "three"]
    alter = ("--alter", "--topic", "life", "--partitions", "3", "--config", "retention.ms=100000")
    assert "Adding partitions succeeded!" in theirs.run("kafka-topics", *at, *alter)

    def leaders() -> str:
        return theirs.run("kafka-topics", *at, "--describe", "--topic", "life")

    wait_until(lambda: leaders().count("Leader: 1\t") == 3)
    assert leaders().splitlines()[0] == (
        "Topic:life\tPartitionCount:3\tReplicationFactor:1\tConfigs:retention.ms=100000"
    )
    assert cluster.brokers[1].stop() == 0
    cluster.brokers[1].start()
    limits = ("--max-messages", "6", "--timeout-ms", "60000")  # it counts on, in the same JVM
    again = theirs.run("kafka-console-consumer", *by, *limits)
    assert again == "one\ntwo\nthree\n", "after a restart"
    theirs.run("kafka-topics", *at, "--delete", "--topic", "life")
    wait_until(lambda: "life" not in theirs.run("kafka-topics", *at, "--list").splitlines())
    wait_until(lambda: not log.parent.exists())


def test_ux_5_reassignments_by_zookeeper_print_what_kafka_2_3_1_prints(
    cluster: ClusterProcess, theirs: OldTools, tmp_path: Path, capfd: Capture
) -> None:
    """A move to where the partition is; the throttle that it sets is removed at the end."""
    at = ("--zookeeper", cluster.zookeeper.connect)
    new = (*at, "--create", "--partitions", "1", "--replication-factor", "1", "--topic", "moved")
    theirs.run("kafka-topics", *new)
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "moved"}]}))
    move = {"topic": "moved", "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    tool = "kafka-reassign-partitions"
    generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
    verify = ("--verify", "--reassignment-json-file", str(plan))
    execute = ("--execute", "--reassignment-json-file", str(plan), "--throttle", "1000000")
    for words in (generate, verify, execute):
        assert ours(capfd, tool, *at, *words) == theirs.call(tool, *at, *words)[:2], words
    said: list[str] = []

    def is_over() -> bool:
        said.append(theirs.run(tool, *at, *verify))
        return "in progress" not in said[-1]

    wait_until(is_over)
    assert said[-1].endswith("Throttle was removed.\n")
    ours(capfd, tool, *at, *execute)
    assert ours(capfd, tool, *at, *verify) == (0, said[-1])
    assert "Throttle" not in ours(capfd, tool, *at, *verify)[1]


def test_re_13_what_the_tools_of_kafka_2_3_1_leave_in_zookeeper_is_carried_out(
    theirs: OldTools, tmp_path: Path
) -> None:
    """A partition is moved to another broker, and led by the first of its replicas again."""
    topic = ("--topic", "t")
    with started(ClusterProcess(tmp_path, 2, zookeeper=OwnZooKeeperProcess(tmp_path))) as cluster:
        at = ("--zookeeper", cluster.zookeeper.connect)

        def has(text: str) -> bool:
            return text in theirs.run("kafka-topics", *at, "--describe", *topic)

        theirs.run("kafka-topics", *at, "--create", *topic, "--replica-assignment", "1")
        wait_until(lambda: has("Leader: 1\tReplicas: 1\t"))
        plan = tmp_path / "plan.json"
        move = {"topic": "t", "partition": 0, "replicas": [2, 1]}
        plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
        tool = ("kafka-reassign-partitions", *at, "--reassignment-json-file", str(plan))
        assert "Successfully started" in theirs.run(*tool, "--execute")
        wait_until(lambda: "completed successfully" in theirs.run(*tool, "--verify"))
        assert has("Replicas: 2,1\tIsr: ")
        elect = ("kafka-preferred-replica-election", *at)
        assert "Successfully started" in theirs.run(*elect)
        wait_until(lambda: has("Leader: 2\tReplicas: 2,1\t"))
        wait_until(lambda: theirs.call(*elect).code == 0)
