"""UX-6: the formatters of internal topics that print JSON print what those of Kafka 3.9.1 print.

To the byte, on real records and on every version and kind that may be in such a topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas as package
from barnabas.cli.main import main
from barnabas.client import NewTopic, SyncAdmin, SyncProducer, TopicPartition
from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionKey,
    TransactionPartitions,
    TransactionValue,
)
from barnabas.protocol.codec import encode_after
from barnabas.protocol.message import Message
from barnabas.testing.embedded.broker import Broker
from tests.kit.clients.kafka_tools import Tools

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

PACKAGE = "org.apache.kafka.tools.consumer."
TEXTS = ("g", "\\u001f \\\\u001f", "Zoë–雪 😀", '"\\/\b\f\n\r\t\x00\x1f\x7f\u2028', "")


def encoded(version: int, message: Message) -> bytes:
    out = bytearray(version.to_bytes(2, "big", signed=True))
    encode_after(out, message, version)
    return bytes(out)


def offsets() -> Iterator[tuple[bytes | None, bytes | None]]:
    for text in TEXTS:
        name = OffsetCommitKey(group=text, topic=text, partition=7)
        value = OffsetCommitValue(
            offset=2**62, leader_epoch=5, metadata=text, commit_timestamp=1, expire_timestamp=2
        )
        for version in range(5):
            yield encoded(version % 2, name), encoded(version, value)
        yield encoded(1, name), None
    yield encoded(1, name), b"\x00\x05rest"
    yield encoded(2, GroupMetadataKey(group="g")), b"\x00\x00"
    yield b"\x00\x03rest", encoded(3, value)
    yield b"\xff\xffrest", None
    yield None, encoded(3, value)
    yield None, None


def groups() -> Iterator[tuple[bytes | None, bytes | None]]:
    for text in TEXTS:
        member = MemberMetadata(
            member_id=text, group_instance_id=text, client_id=text, client_host="/h",
            rebalance_timeout=1, session_timeout=2, subscription=b"\x00\x01\xff", assignment=b"",
        )  # fmt: skip
        other = MemberMetadata(
            member_id="m", client_id="c", client_host="h", subscription=bytes(range(256))
        )
        value = GroupMetadataValue(
            protocol_type=text, generation=3, protocol=text, leader=text,
            current_state_timestamp=4, members=[member, other],
        )  # fmt: skip
        for version in range(5):
            yield encoded(2, GroupMetadataKey(group=text)), encoded(version, value)
    empty = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None)
    yield encoded(2, GroupMetadataKey(group="g")), encoded(3, empty)
    yield encoded(2, GroupMetadataKey(group="g")), None
    yield encoded(1, OffsetCommitKey(group="g", topic="t", partition=0)), b"\x00\x00"
    yield b"\x00\x09rest", b"\x00\x09rest"


def transactions() -> Iterator[tuple[bytes | None, bytes | None]]:
    for text in TEXTS:
        for status in range(8):
            partitions = TransactionPartitions(topic=text, partition_ids=[0, 2])
            value = TransactionValue(
                producer_id=1, producer_epoch=2, transaction_timeout_ms=3,
                transaction_status=status, transaction_partitions=[partitions],
                last_update_timestamp_ms=4, start_timestamp_ms=-1,
            )  # fmt: skip
            yield encoded(0, TransactionKey(transactional_id=text)), encoded(status % 2, value)
    none = TransactionValue(transaction_partitions=None)
    yield encoded(0, TransactionKey(transactional_id="t")), encoded(0, none)
    yield encoded(0, TransactionKey(transactional_id="t")), None
    yield b"\x00\x01rest", b"\x00\x02rest"
    yield None, encoded(0, none)


KINDS = {
    "OffsetsMessageFormatter": ("__consumer_offsets", offsets),
    "GroupMetadataMessageFormatter": ("__consumer_offsets", groups),
    "TransactionLogMessageFormatter": ("__transaction_state", transactions),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With a group's offsets and a transaction, and a topic of made records for each formatter."""
    config = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with package.Broker(config=config) as running:
        servers = running.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("copied", 1), *(NewTopic(name, 1) for name in KINDS)])
            admin.alter_group_offsets("readers", {TopicPartition("copied", 0): 1})
        with SyncProducer(servers, transactional_id="copy") as producer, producer.transaction():
            producer.send("copied", b"v")
        with SyncProducer(servers) as producer:
            for name, (_, records) in KINDS.items():
                for key, value in records():
                    producer.send(name, value, key)
        yield running


@pytest.mark.parametrize("name", KINDS)
def test_ux_6_json_formatters_print_the_same(
    name: str, broker: Broker, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    tools = Tools(broker.bootstrap_servers, tmp_path)
    real, records = KINDS[name]
    for topic, count in (
        (real, 1 if real == "__consumer_offsets" else 4),
        (name, len([*records()])),
    ):
        words = (
            *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--partition", "0"),
            *("--offset", "earliest", "--max-messages", str(count)),
            *("--formatter", PACKAGE + name),
        )
        said = tools.try_run("kafka-console-consumer", *words)
        capfdbinary.readouterr()
        code = main(["kafka-console-consumer.sh", *words])
        ours = capfdbinary.readouterr()
        assert ours.out == said.stdout.encode(), topic
        assert (code, ours.err) == (said.returncode, said.stderr.encode()), topic
    assert ours.out.count(b'{"key":') > count // 2


def test_ux_6_a_record_that_cannot_be_read_ends_the_tool_or_is_skipped(
    broker: Broker, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    tools = Tools(broker.bootstrap_servers, tmp_path)
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("broken", 1)])
    with SyncProducer(broker.bootstrap_servers) as producer:
        key = encoded(1, OffsetCommitKey(group="g", topic="t", partition=0))
        for some in (key, b"", b"\x00", b"\x00\x01", key[:-1], key):
            producer.send("broken", None, some)
    words = (
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", "broken", "--partition", "0"),
        *("--offset", "earliest", "--max-messages", "6"),
        *("--formatter", f"{PACKAGE}OffsetsMessageFormatter"),
    )
    for more in ((), ("--skip-message-on-error",)):
        said = tools.try_run("kafka-console-consumer", *words, *more)
        capfdbinary.readouterr()
        code = main(["kafka-console-consumer.sh", *words, *more])
        ours = capfdbinary.readouterr()
        assert (code, ours.out) == (said.returncode, said.stdout.encode())
        assert ours.out
