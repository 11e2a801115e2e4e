"""`barnabas copy` copies a real KRaft cluster, and is killed while it does."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.client.admin.admin import TOPIC, ConfigResource
from barnabas.client.admin.scram_admin import UserScramCredentialUpsertion
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.types import TopicPartition as Name
from tests.kit.clients.kraft_process import KraftProcess, kraft_process
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import COMMAND, BrokerProcess, broker_process
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

KRAFT = (
    "log.cleaner.backoff.ms=200",
    "log.cleaner.dedupe.buffer.size=4000000",
    "log.retention.ms=-1",
)
OURS = ("log.retention.ms=-1",)
SECONDS = 240
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONG_AGO_MS = 1_600_000_000_000

PAGE = CHECKOUT / "docs" / "coming-from-kafka.md"
SECTION = "## From a cluster with KRaft"
NAMES = [Name("orders", number) for number in range(2)]

Record = tuple[int, Any, Any, Any, Any]
"""Timestamp type, timestamp, key, value, headers."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftProcess]:
    with kraft_process(tmp_path_factory.mktemp("kraft"), *KRAFT) as process:
        yield process


@pytest.fixture
def kraft(node: KraftProcess) -> KraftProcess:
    """The one node of these tests, without the topics of the last one."""
    with SyncAdmin(node.bootstrap_servers) as admin:
        admin.delete_topics(admin.list_topics(include_internal=False))
    return node


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[BrokerProcess]:
    (tmp_path / "ours").mkdir()
    with broker_process(tmp_path / "ours", *OURS) as process:
        yield process


class Copying:
    """The command line between two clusters."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target

    def words(self, verb: str, *more: str) -> list[str]:
        return [str(COMMAND), "copy", verb, "--from", self.source, "--to", self.target, *more]

    def run(self, verb: str, *more: str, code: int = 0) -> str:
        done = subprocess.run(
            self.words(verb, *more), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def is_complete(self) -> bool:
        done = subprocess.run(self.words("status"), capture_output=True, text=True, timeout=SECONDS)
        return "\n0 offsets left" in done.stdout  # neither "10 offsets left" nor no partitions

    def start(self, verb: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(verb, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def everything(servers: str, topic: str, partitions: int) -> list[list[tuple[int, Record]]]:
    """All committed records with their offsets, by partition, as librdkafka reads them."""
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    found: list[list[tuple[int, Record]]] = [[] for _ in range(partitions)]
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(SECONDS)
            assert message is not None
            error, number = message.error(), message.partition()
            assert number is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(number)
                continue
            offset = message.offset()
            assert offset is not None
            value = (message.key(), message.value(), message.headers())
            found[number].append((offset, (*message.timestamp(), *value)))
    finally:
        consumer.close()
    return found


def without_offsets(found: list[list[tuple[int, Record]]]) -> list[list[Record]]:
    return [[record for _, record in each] for each in found]


def produce_all_kinds(servers: str, topic: str, partitions: int, rounds: int = 1) -> None:
    """Every codec, keys, headers and nulls, batches of one record and of many."""
    for codec in CODECS:
        with SyncProducer(servers, compression_type=codec, linger_ms=20) as producer:
            for number in range(300 * rounds):
                headers = (("h", b"1"), ("n", None), ("h", b"\xff")) if number % 3 == 0 else ()
                producer.send(
                    topic,
                    None if number % 7 == 0 else f"{codec} {number}".encode() * (number % 40),
                    key=None if number % 5 == 0 else f"{number}".encode(),
                    partition=number % partitions,
                    timestamp_ms=LONG_AGO_MS + number * 1000 if number % 2 else None,
                    headers=headers,
                )
                if number % 100 == 50:
                    producer.flush()


def produce_transactions(servers: str, topic: str) -> None:
    """Committed and aborted ones in turn."""
    with SyncProducer(servers, transactional_id="writer") as producer:
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            for each in range(20):
                producer.send(topic, f"{number}/{each}".encode(), partition=0)
            producer.flush()
            if number % 3 == 1:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


def test_a_copy_has_every_record_once_although_it_is_killed(
    kraft: KraftProcess, ours: BrokerProcess
) -> None:
    """Killed with -9 in the midst, again and again, while records are still arriving."""
    copying = Copying(kraft.bootstrap_servers, ours.bootstrap_servers)
    with SyncAdmin(kraft.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 3, 1, {"max.message.bytes": "2000000"})])
    produce_all_kinds(kraft.bootstrap_servers, "orders", 3, rounds=4)
    produce_transactions(kraft.bootstrap_servers, "orders")
    kills = 0
    for wait_s in (0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0):
        process = copying.start("run", "--follow", "--rate", "1")
        produce_all_kinds(kraft.bootstrap_servers, "orders", 3)
        time.sleep(wait_s)
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        kills += 1
    assert kills == 8
    assert "copied" in copying.run("run")
    assert "no differences" in copying.run("verify")
    theirs = without_offsets(everything(kraft.bootstrap_servers, "orders", 3))
    assert without_offsets(everything(ours.bootstrap_servers, "orders", 3)) == theirs
    assert sum(map(len, theirs)) == 5 * 300 * (4 + 8) + 7 * 20
    # There is nothing left to do.
    assert "copied 0 records" in copying.run("run")
    assert "0 offsets left" in copying.run("status")


def test_a_copy_outlives_the_brokers_of_its_target(
    kraft: KraftProcess, ours: BrokerProcess
) -> None:
    """They are killed and started again, and it continues by itself."""
    copying = Copying(kraft.bootstrap_servers, ours.bootstrap_servers)
    with SyncAdmin(kraft.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, 1)])
    produce_all_kinds(kraft.bootstrap_servers, "orders", 2)
    process = copying.start("run", "--follow")
    wait_until(copying.is_complete, SECONDS)
    for _ in range(3):
        produce_all_kinds(kraft.bootstrap_servers, "orders", 2)
        ours.kill()
        ours.start()
    wait_until(copying.is_complete, SECONDS)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "no differences" in copying.run("verify")
    theirs = without_offsets(everything(kraft.bootstrap_servers, "orders", 2))
    assert without_offsets(everything(ours.bootstrap_servers, "orders", 2)) == theirs


def test_a_second_copy_replaces_the_first(kraft: KraftProcess, ours: BrokerProcess) -> None:
    """The first notices it at its next transaction, and nothing is copied twice."""
    copying = Copying(kraft.bootstrap_servers, ours.bootstrap_servers)
    with SyncAdmin(kraft.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 1, 1)])
    produce_all_kinds(kraft.bootstrap_servers, "orders", 1)
    first = copying.start("run", "--follow")
    wait_until(copying.is_complete, SECONDS)
    produce_all_kinds(kraft.bootstrap_servers, "orders", 1)
    second = copying.start("run", "--follow")
    wait_until(copying.is_complete, SECONDS)
    produce_all_kinds(kraft.bootstrap_servers, "orders", 1)
    said, _ = first.communicate(timeout=SECONDS)
    assert first.returncode == 1
    assert "another `barnabas copy` from the same cluster has started" in said
    wait_until(copying.is_complete, SECONDS)
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=SECONDS)
    assert "orders-0 is equal: 4,500 records" in copying.run("verify")


def produce_compacted(servers: str) -> None:
    """Every third key is unique, so a cleaned log has gaps everywhere."""
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    }
    rounds = 5
    with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
        admin.create_topics([NewTopic("users", 1, 1, configs)])
        for each in range(rounds):
            for number in range(200):
                key = f"{number % 40}" if number % 3 else f"unique {each} {number}"
                producer.send(
                    "users",
                    None if number == 199 else b"v" * (number % 50),
                    key=key.encode(),
                    partition=0,
                    timestamp_ms=LONG_AGO_MS + each * 1000,  # a segment for each round
                )
            producer.flush()
        # The active segment is never cleaned, so the last round must not be in it.
        later_ms = LONG_AGO_MS + 1_000_000
        producer.send("users", b"last", key=b"last", partition=0, timestamp_ms=later_ms).result()

    def is_clean() -> bool:
        (found,) = everything(servers, "users", 1)
        return len(found) < 400  # 335 unique keys and 40 others, each once

    wait_until(is_clean, 60)


def read_in_group(servers: str, topic: str, group: str, count: int) -> None:
    """Read so many records, and commit where the next one is."""
    with SyncConsumer(
        servers, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.subscribe([topic])
        seen = 0
        while seen < count:
            records = consumer.poll(timeout_ms=1000, max_records=count - seen)
            seen += len(list(records))
        consumer.commit()


def next_values(servers: str, topic: str, group: str, count: int) -> list[Any]:
    """What a group reads next."""
    with SyncConsumer(
        servers,
        group_id=group,
        auto_offset_reset="none",
        enable_auto_commit=False,
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe([topic])
        found: list[Any] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(timeout_ms=1000)]
        return found[:count]


def test_everything_comes_along_from_kraft(tmp_path: Path) -> None:
    """Compacted and transactional topics, times, configs, groups, access rules, quotas."""
    everyone = "super.users=User:ANONYMOUS"
    kraft_rules = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    our_rules = "kafka.security.authorizer.AclAuthorizer"
    (tmp_path / "ours").mkdir()
    options = (*KRAFT, f"authorizer.class.name={kraft_rules}", everyone)
    own = (*OURS, f"authorizer.class.name={our_rules}", everyone)
    with (
        kraft_process(tmp_path / "kraft", *options) as kraft,
        broker_process(tmp_path / "ours", *own) as ours,
    ):
        source, target = kraft.bootstrap_servers, ours.bootstrap_servers
        copying = Copying(source, target)
        prepare(source)
        planned = copying.run("plan")
        assert "create orders: 3 partitions, 1 replica" in planned
        assert "max.message.bytes=2000000" in planned
        assert "create the users alice again" in planned
        assert "4 topics, 2 access rules, 1 quota; 2 groups of copied topics" in planned
        refused = copying.run("plan", "--topic", "nothing", code=2)
        assert "no topic of the source matches nothing" in refused
        assert "note: config local.retention.ms=-2 is left out" in planned
        with SyncAdmin(target) as admin:
            assert admin.list_topics(include_internal=False) == []
        done = copying.run("run", "--topic", "[!s]*")
        assert "created 3 topics, 2 access rules and 1 quota" in done
        copying.run("run")
        check_everything(copying)
        assert "no differences" in copying.run("verify")
        check_planted_differences(copying)


def prepare(source: str) -> None:
    produce_compacted(source)
    with SyncAdmin(source) as admin:
        configs = {"max.message.bytes": "2000000", "local.retention.ms": "-2"}
        stamped = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics([NewTopic("orders", 3, 1, configs), NewTopic("paid", 1, 1)])
        admin.create_topics([NewTopic("stamped", 1, 1, stamped)])
        admin.create_acls(RULES)
        admin.alter_client_quotas({"user": "alice"}, {"producer_byte_rate": 1_000_000})
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("alice", "secret of alice")]
        )
    produce_all_kinds(source, "orders", 3)
    produce_all_kinds(source, "stamped", 1)
    produce_transactions(source, "paid")
    read_in_group(source, "users", "readers of users", 31)
    read_in_group(source, "paid", "readers of paid", 33)


RULES = [
    AclBinding(
        Pattern(ResourceType.TOPIC, "orders", PatternType.PREFIXED),
        AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW),
    ),
    AclBinding(
        Pattern(ResourceType.GROUP, "readers"),
        AclEntry("User:bob", "127.0.0.1", Operation.ALL, PermissionType.DENY),
    ),
]


def check_everything(copying: Copying) -> None:
    source, target = copying.source, copying.target
    for topic, partitions in (("orders", 3), ("paid", 1), ("stamped", 1)):
        theirs = without_offsets(everything(source, topic, partitions))
        ours = without_offsets(everything(target, topic, partitions))
        if topic == "stamped":  # the kind of the time is that of the topic now, the time the same
            assert [[each[1:] for each in own] for own in ours] == [
                [each[1:] for each in own] for own in theirs
            ]
        else:
            assert ours == theirs
    for topic, group in (("users", "readers of users"), ("paid", "readers of paid")):
        ours = next_values(target, topic, group, 20)
        assert ours == next_values(source, topic, group, 20)
    with SyncAdmin(source) as theirs_admin, SyncAdmin(target) as admin:
        assert set(admin.describe_acls()) == set(theirs_admin.describe_acls()) == set(RULES)
        assert admin.describe_client_quotas() == theirs_admin.describe_client_quotas()
        entries = admin.describe_configs(ConfigResource(TOPIC, "stamped"))
        assert {each.name: each.value for each in entries}["message.timestamp.type"] == (
            "LogAppendTime"
        )


def check_planted_differences(copying: Copying) -> None:
    """`verify` finds what is more, what is less and what is different, and names it."""
    with SyncProducer(copying.target) as producer, SyncAdmin(copying.target) as admin:
        producer.send("orders", b"mine", partition=1).result()
        producer.send("users", b"mine", key=b"7", partition=0).result()
        admin.alter_configs(ConfigResource(TOPIC, "orders"), {"max.message.bytes": 1_000_000})
    with SyncProducer(copying.source) as producer:
        producer.send("paid", b"theirs", partition=0).result()
    found = copying.run("verify", code=1)
    assert "orders differs: config max.message.bytes is 1000000, not 2000000" in found
    assert "orders-0 is equal: 500 records, checksum" in found
    assert "orders-1 differs: the copy has more records, from its offset" in found
    assert "users-0 differs: key b'7': the time is" in found
    assert "paid-0 differs: offset 210 is missing in the copy, which ends after 140" in found
    assert "4 differences" in found
    # Topics that are no copies are left alone.
    with SyncAdmin(copying.source) as admin, SyncProducer(copying.target) as producer:
        admin.create_topics([NewTopic("theirs", 1, 1)])
        producer.send("theirs", b"ours", partition=0).result()
    refused = copying.run("run", code=1)
    assert "blocks: theirs: the target has a topic of this name that contains records" in refused


def page_commands(copying: Copying) -> list[list[str]]:
    """Those of the page's section, with these clusters."""
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("barnabas ")]
    places = {"kraft:9092": copying.source, "localhost:9092": copying.target}
    return [
        [str(COMMAND), *(places.get(word, word) for word in shlex.split(line)[1:])]
        for line in lines
    ]


def test_the_commands_of_the_page_move_a_cluster(kraft: KraftProcess, ours: BrokerProcess) -> None:
    """`migrate check` names the page, and its commands copy what arrives meanwhile, too."""
    copying = Copying(kraft.bootstrap_servers, ours.bootstrap_servers)
    checked = subprocess.run(
        [str(COMMAND), "migrate", "check", "--bootstrap-server", copying.source],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert checked.returncode == 1
    assert "copy its topics with `barnabas copy` instead" in checked.stdout
    with SyncAdmin(copying.source) as admin:
        admin.create_topics([NewTopic("orders", 2, 1)])
    produce_all_kinds(copying.source, "orders", 2)
    outputs = []
    for words in page_commands(copying):
        if "--follow" in words:
            follow(copying, words)
            read_in_group(copying.source, "orders", "readers", 700)
            continue
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(done.stdout)
    assert [text.splitlines()[-1] for text in outputs[:3]] == [
        "1 topic, 0 access rules, 0 quotas; 0 groups of copied topics",
        outputs[1].splitlines()[-1],
        "0 offsets left in 2 partitions",
    ]
    assert "group readers: 2 offsets committed" in outputs[3]
    assert outputs[4].splitlines()[-1] == "no differences"
    ours_found = everything(copying.target, "orders", 2)
    assert sum(map(len, ours_found)) == 3000
    with SyncAdmin(copying.target) as admin:
        committed = admin.list_group_offsets("readers")
    read = sum(
        offset < committed[NAMES[number]].offset
        for number, records in enumerate(ours_found)
        for offset, _ in records
    )
    assert read == 700


def follow(copying: Copying, words: list[str]) -> None:
    """Ctrl-C, once what arrived meanwhile is copied."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    produce_all_kinds(copying.source, "orders", 2)

    def is_copied() -> bool:
        assert process.poll() is None, process.communicate()
        return copying.is_complete()

    wait_until(is_copied, SECONDS)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "copied 1,500 records" in said
