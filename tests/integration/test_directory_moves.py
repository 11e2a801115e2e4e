"""Replicas move between the log directories of a running broker, and nobody notices (ST-10).

Also while it is killed, and by the tools and clients of others (KIP-113).
"""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import barnabas as package
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import BrokerNotAvailable, ReplicaNotAvailable
from barnabas.types import TopicPartition
from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.command_line import InProcess
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, OwnSender, Sender, sending
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

ROUNDS = 8
BURST = 4_000
FUTURE = "*-future"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SMALL = {"log.segment.bytes": "100000"}


class Reader:
    """Reads a topic from its beginning on, all the time, in a thread of its own."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failed: list[Exception] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with SyncConsumer(self._servers, auto_offset_reset="none") as consumer:
                names = [TopicPartition(self._topic, each) for each in range(PARTITIONS)]
                consumer.assign(names)
                consumer.seek_to_beginning(names)
                while not self._stopping.is_set():
                    for name, records in consumer.getmany(timeout_ms=100).items():
                        self.seen[name.partition] += [int(each.value or b"") for each in records]
        except Exception as error:
            self.failed.append(error)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive()


def places(admin: SyncAdmin, *topics: str) -> dict[TopicPartition, dict[bool, str]]:
    """The directory of each replica, and of its future one."""
    found: dict[TopicPartition, dict[bool, str]] = {}
    for directory in admin.describe_log_dirs()[0]:
        for name, replica in directory.replicas.items():
            if name.topic in topics:
                found.setdefault(name, {})[replica.is_future] = directory.path
    return found


def move_all(admin: SyncAdmin, paths: list[str], *topics: str) -> dict[TopicPartition, str]:
    """Begin to move every replica to the other directory; where they go."""
    targets = {
        name: paths[1 - paths.index(there[False])] for name, there in places(admin, *topics).items()
    }
    outcomes = admin.alter_replica_log_dirs(0, targets)
    assert set(outcomes.values()) == {None}, outcomes
    return targets


def have_moved(admin: SyncAdmin, targets: dict[TopicPartition, str]) -> bool:
    topics = {name.topic for name in targets}
    return places(admin, *topics) == {name: {False: path} for name, path in targets.items()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_st_10_moves_under_load_and_under_kills_lose_nothing(tmp_path: Path) -> None:
    """Two idempotent producers and two consumers see no error, and all that was acknowledged is
    there once and in order; every second time the broker is killed in the middle."""
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    options = (f"log.dirs={','.join(paths)}", "log.segment.bytes=100000")
    with broker_process(tmp_path, *options) as broker:
        servers = broker.bootstrap_servers
        with sending(ConfluentSender, servers) as theirs, sending(OwnSender, servers) as ours:
            senders = (theirs, ours)
            topics = [each.topic for each in senders]
            readers = [Reader(servers, each) for each in topics]
            under_way = 0
            for number in range(ROUNDS):
                for sender in senders:
                    sender.allow(BURST)
                with SyncAdmin(servers) as admin:
                    if number % 2:  # or they would be over before the kill
                        admin.alter_configs(ConfigResource(BROKER, "0"), {RATE: "100000"})
                    targets = move_all(admin, paths, *topics)
                if number % 2:
                    time.sleep(random.uniform(0, 0.1))
                    under_way += len([each for path in paths for each in Path(path).glob(FUTURE)])
                    broker.kill()
                    broker.start()
                with SyncAdmin(servers) as admin:
                    admin.alter_configs(ConfigResource(BROKER, "0"), {RATE: None})
                    wait_until(lambda admin=admin, targets=targets: have_moved(admin, targets))
            for sender in senders:
                sender.stop()
        wait_until(lambda: all(read_all(*each) for each in zip(senders, readers, strict=True)))
        for sender, reader in zip(senders, readers, strict=True):
            reader.stop()
            check(sender, reader, servers)
        print(f"{under_way} moves went on after {ROUNDS // 2} kills in {ROUNDS} rounds of moves")
        assert under_way
        assert broker.stop() == 0
        assert not [each for path in paths for each in Path(path).glob(FUTURE)]


def read_all(sender: Sender, reader: Reader) -> bool:
    return bool(reader.failed) or sum(map(len, reader.seen)) >= sender.sent_count


def check(sender: Sender, reader: Reader, servers: str) -> None:
    assert sender.failed == []
    assert reader.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        assert sender.acknowledged[partition] == sent
        assert [int(each.value or b"") for each in seen if each.partition == partition] == sent
        assert reader.seen[partition] == sent


# --- commands and tools --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    directory = tmp_path_factory.mktemp("jbod")
    return [str(directory / "one"), str(directory / "two")]


@pytest.fixture(scope="module")
def broker(paths: list[str]) -> Iterator[package.Broker]:
    with package.Broker(config={"log.dirs": ",".join(paths), **SMALL}) as running:
        yield running


@pytest.fixture
def admin(broker: package.Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        yield admin


_numbers = itertools.count()


@pytest.fixture
def name(broker: package.Broker, admin: SyncAdmin) -> TopicPartition:
    """A topic's only partition, with several segments."""
    topic = f"t{next(_numbers)}"
    admin.create_topics(NewTopic(topic, 1))
    with SyncProducer(broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send(topic, bytes(10_000))
    return TopicPartition(topic, 0)


@pytest.fixture
def slowly(admin: SyncAdmin) -> Iterator[Callable[[], None]]:
    """Moves come to their ends only after this is called."""
    resource = ConfigResource(BROKER, "0")
    admin.alter_configs(resource, {RATE: "1"})
    yield lambda: admin.alter_configs(resource, {RATE: None})
    admin.alter_configs(resource, {RATE: None})


def other_than(admin: SyncAdmin, paths: list[str], name: TopicPartition) -> tuple[str, str]:
    home = places(admin, name.topic)[name][False]
    return home, paths[1 - paths.index(home)]


def test_the_command_moves_and_waits(
    barnabas: InProcess, admin: SyncAdmin, paths: list[str], name: TopicPartition
) -> None:
    home, other = other_than(admin, paths, name)
    said, _ = barnabas(f"log-dirs move {name.topic} --to {other} --wait")
    assert said == f"moved to {other} on broker 0: {name}\n"
    assert places(admin, name.topic)[name] == {False: other}
    said, _ = barnabas(f"log-dirs move {name.topic}:0 --broker 0 --to {home}")
    assert said == f"moving to {home} on broker 0: {name}\n"
    wait_until(lambda: places(admin, name.topic)[name] == {False: home})
    for words, code, problem in (
        (f"{name.topic} --to /none", 2, f"broker 0 has no such log directory; it has {paths[0]}"),
        (
            f"{name.topic} --to {home} --broker 7",
            2,
            "this broker is not alive; the live brokers are 0",
        ),
        (f"{name.topic}:7 --to {home}", 1, "partitions 0 to 0, not 7"),
        (f"gone --to {home}", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        errors = barnabas(f"log-dirs move {words}", code=code)[1]
        assert problem in errors
        assert "Traceback" not in errors


def plan_of(directory: Path, name: TopicPartition, path: str) -> str:
    entry = {"topic": name.topic, "partition": 0, "replicas": [0], "log_dirs": [path]}
    file = directory / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return f"--reassignment-json-file {file}"


def test_re_13_reassign_moves_between_log_directories(
    barnabas: InProcess,
    admin: SyncAdmin,
    paths: list[str],
    name: TopicPartition,
    slowly: Callable[[], None],
    tmp_path: Path,
) -> None:
    """RE-13, KIP-113: with the lines of Kafka's tool."""
    home, other = other_than(admin, paths, name)
    given = plan_of(tmp_path, name, other)
    said, _ = barnabas(f"reassign --execute {given} --replica-alter-log-dirs-throttle 1")
    assert said.splitlines()[-3:] == [
        "The replica-alter-dir throttle limit was set to 1 B/s",
        f"Successfully started partition reassignment for {name}",
        f"Successfully started moving log directory to {other} for replica {name} with broker 0 ",
    ]
    said, _ = barnabas(f"reassign --verify {given}")
    assert said.splitlines()[1:] == [
        f"Reassignment of partition {name} is completed.",
        f"Reassignment of replica {name}-0 is still in progress.",
    ]
    elsewhere = plan_of(tmp_path, name, "/other")
    said, _ = barnabas(f"reassign --verify {elsewhere}")
    assert f"{name} on broker 0 is being moved to log dir {other} instead of /other.\n" in said
    _, errors = barnabas(f"reassign --execute {elsewhere}", code=1)
    assert f"{name}-0: replica {name}" in errors or "LOG_DIR_NOT_FOUND" in errors
    given = plan_of(tmp_path, name, other)
    said, _ = barnabas(f"reassign --cancel {given}")
    assert f"moving log directory to {home} for replica {name} with broker 0 \n" in said
    said, _ = barnabas(f"reassign --verify {given}")
    assert f"{name} on broker 0 is not being moved from log dir {home} to {other}.\n" in said
    assert (
        "None of the specified partition moves are active.\n"
        in barnabas(f"reassign --cancel {given}")[0]
    )
    slowly()
    barnabas(f"reassign --execute {given}")
    done = f"Reassignment of replica {name}-0 completed successfully.\n"
    wait_until(lambda: done in barnabas(f"reassign --verify {given}")[0])
    assert places(admin, name.topic)[name] == {False: other}


def test_re_13_a_replica_that_is_on_its_way_from_another_broker_is_waited_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A broker that does not have it remembers where to make it, and refuses."""
    with (
        package.Cluster(brokers=2) as cluster,
        SyncAdmin(cluster.bootstrap_servers) as admin,
    ):
        admin.create_topics(NewTopic("t", assignment={0: [1]}))
        name = TopicPartition("t", 0)
        (directory,) = admin.describe_log_dirs()[2]
        outcomes = admin.alter_replica_log_dirs(2, {name: directory.path})
        assert isinstance(outcomes[name], ReplicaNotAvailable)
        with pytest.raises(BrokerNotAvailable, match="there is no broker 7"):
            admin.alter_replica_log_dirs(7, {name: directory.path})
        entry = {"topic": "t", "partition": 0, "replicas": [2], "log_dirs": [directory.path]}
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        words = ["reassign", "--execute", "--reassignment-json-file", str(file)]
        assert main([*words, "--bootstrap-server", cluster.bootstrap_servers]) == 0
        said = capfd.readouterr().out
        assert f"moving log directory to {directory.path} for replica t-0 with broker 2 \n" in said
        wait_until(lambda: name in admin.describe_log_dirs()[2][0].replicas)


@pytest.mark.foreign
@pytest.mark.slow
def test_kafkas_tools_move_show_and_read_it(
    barnabas: InProcess,
    broker: package.Broker,
    admin: SyncAdmin,
    paths: list[str],
    name: TopicPartition,
    slowly: Callable[[], None],
    tmp_path: Path,
) -> None:
    """RE-13, ST-1: kafka-reassign-partitions, kafka-log-dirs and DumpLogSegments of 3.9.1."""
    tools = Tools(broker.bootstrap_servers, tmp_path)
    _, other = other_than(admin, paths, name)
    given = plan_of(tmp_path, name, other).split()
    said = tools.run("kafka-reassign-partitions", "--execute", *given)
    started = f"moving log directory to {other} for replica {name} with broker 0 \n"
    assert said.endswith(f"Successfully started {started}")
    wait_until(lambda: True in places(admin, name.topic)[name])
    verify = ("--verify", "--preserve-throttles", *given)
    assert (
        tools.run("kafka-reassign-partitions", *verify)
        == (barnabas(f"reassign {' '.join(verify)}")[0])
    )
    theirs = tools.run("kafka-log-dirs", "--describe", "--topic-list", name.topic)
    assert '"isFuture":true' in theirs
    slowly()
    wait_until(lambda: places(admin, name.topic)[name] == {False: other})
    assert (
        tools.run("kafka-reassign-partitions", *verify)
        == (barnabas(f"reassign {' '.join(verify)}")[0])
    )
    files = sorted((Path(other) / str(name)).glob("*.log"))
    assert len(files) > 3
    command = [
        str(foreign.require_java()),
        *("-cp", f"{foreign.require_kafka_jars()}/*", "kafka.tools.DumpLogSegments"),
        *("--deep-iteration", "--files", ",".join(map(str, files))),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert "isvalid: false" not in dumped
    offsets = [int(each) for each in re.findall(r"^\| offset: (\d+)", dumped, re.MULTILINE)]
    assert offsets == list(range(40))


@pytest.mark.foreign
def test_kafka_python_moves_a_replica(
    broker: package.Broker, admin: SyncAdmin, paths: list[str], name: TopicPartition
) -> None:
    """ST-10: an administration client that is not ours."""
    kafka = pytest.importorskip("kafka")
    home, other = other_than(admin, paths, name)
    client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        replica = (name.topic, 0, 0)
        (error,) = client.alter_replica_log_dirs({replica: "/none"}).values()
        assert error.errno == 57
        (error,) = client.alter_replica_log_dirs({replica: other}).values()
        assert error.errno == 0
        wait_until(lambda: places(admin, name.topic)[name] == {False: other})
    finally:
        client.close()
    wait_until(lambda: not (Path(home) / str(name)).exists())  # once the other is on disk
