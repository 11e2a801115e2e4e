"""A topic in the hands of a test: created, written, read, waited for, deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.client.errors import InvalidTopicName
from barnabas.errors import UnknownTopicOrPartition
from barnabas.storage.files import OsFiles
from barnabas.testing.embedded.waiting import WaitTimeout


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_tk_3_a_line_writes_and_a_line_reads(broker: Broker) -> None:
    topic = broker.topic("in-a-line", partitions=2)
    place = topic.send("ünïcode", key=b"k", partition=1, headers=[("h", b"v")], timestamp_ms=17)
    assert (place.topic, place.partition, place.offset) == ("in-a-line", 1, 0)
    places = topic.send_many([b"a", {"key": "key", "value": None}], partition=0)
    assert [place.offset for place in places] == [0, 1]
    first, second, third = topic.records()
    assert (first.partition, first.key, first.value) == (0, None, b"a")
    assert (second.partition, second.key, second.value) == (0, b"key", None)
    assert (third.key, third.value, third.headers) == (b"k", "ünïcode".encode(), (("h", b"v"),))
    assert third.timestamp_ms == 17
    assert topic.values() == [b"a", None, "ünïcode".encode()]
    assert topic.partitions == [0, 1]


def test_tk_3_an_empty_topic_has_no_records(broker: Broker) -> None:
    assert broker.topic("empty").records() == []
    assert "empty" in broker.topics()


def test_tk_3_a_topic_that_exists_is_taken_as_it_is(broker: Broker) -> None:
    broker.topic("twice", partitions=3).send(b"kept")
    assert broker.topic("twice").values() == [b"kept"]
    assert broker.topic("twice", partitions=3, replication_factor=1).partitions == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^partitions: topic 'twice' exists, and has 3, not 4"):
        broker.topic("twice", partitions=4)


def test_tk_3_its_configs_are_set(broker: Broker) -> None:
    config = {"cleanup.policy": "compact", "preallocate": False, "retention.ms": 5}
    with broker.admin() as admin:
        broker.topic("configured", config=config)
        from barnabas.client.admin.admin import TOPIC, ConfigResource

        found = admin.describe_configs(ConfigResource(TOPIC, "configured"), list(config))
    assert {entry.name: entry.value for entry in found} == {
        "cleanup.policy": "compact",
        "preallocate": "false",
        "retention.ms": "5",
    }


def test_tk_3_a_partition_that_was_added_is_written_at_once(broker: Broker) -> None:
    topic = broker.topic("grows", partitions=1)
    topic.send(b"known")
    with broker.producer() as producer, broker.admin() as admin:
        producer.send("grows", b"known, too").result()
        admin.create_partitions("grows", 4)
        topic.send(b"new", partition=3)
        producer.send("grows", b"new", partition=2).result()
    assert sorted(record.partition for record in topic.records()) == [0, 0, 2, 3]


def test_tk_3_records_are_waited_for(broker: Broker) -> None:
    topic = broker.topic("awaited")
    with broker.producer() as producer:
        deliveries = [producer.send("awaited", b"%d" % number) for number in range(3)]
        found = topic.wait_for_records(3)
        assert [record.value for record in found] == [b"0", b"1", b"2"]
        assert all(delivery.result() for delivery in deliveries)
    with pytest.raises(WaitTimeout, match=r"for 4 records in topic 'awaited'.*3 records .*b'2'"):
        topic.wait_for_records(4, timeout_s=2)  # time enough to have read the three
    with pytest.raises(WaitTimeout, match=r"saw instead: no records"):
        broker.topic("nothing-comes").wait_for_records(1, timeout_s=0.3)
    broker.wait_for_records("awaited", 3)


def test_tk_3_a_topic_whose_logs_take_longer_than_a_request_waits(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent again, the request finds the topic there, which no broker knows before its logs."""
    made = OsFiles.make_directory

    def slow(self: OsFiles, path: Path) -> None:
        time.sleep(0.3)
        made(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(OsFiles, "make_directory", slow)
        topic = broker.topic("slow", partitions=24)  # by several threads
        assert topic.partitions == list(range(24))
    with pytest.raises(ValueError, match="topic 'slow' exists, and has 24, not 25"):
        broker.topic("slow", partitions=25)


def test_tk_3_of_transactions_what_is_committed_is_read(broker: Broker) -> None:
    topic = broker.topic("committed")
    with broker.producer(transactional_id="t") as producer:
        producer.init_transactions()
        for value, ends in ((b"no", producer.abort_transaction), (b"yes", lambda: None)):
            producer.begin_transaction()
            producer.send("committed", value).result()
            ends()
        assert topic.values() == [b"no", b"yes"]
        assert topic.values(isolation_level="read_committed") == []
        producer.commit_transaction()
    assert topic.values(isolation_level="read_committed") == [b"yes"]


def test_tk_3_a_topic_is_waited_for(broker: Broker) -> None:
    with pytest.raises(WaitTimeout, match=r"for topic 'unborn'.*saw instead: no such topic"):
        broker.wait_for_topic("unborn", timeout_s=0.3)
    assert "unborn" not in broker.topics()
    broker.topic("born", partitions=2)
    assert broker.wait_for_topic("born", 2).partitions == [0, 1]
    with pytest.raises(WaitTimeout, match=r"'born' with 3 partitions.*saw instead: 2 partitions"):
        broker.wait_for_topic("born", 3, timeout_s=0.3)


def test_tk_3_leader_and_isr_are_waited_for(broker: Broker) -> None:
    broker.topic("led")
    assert broker.wait_for_leader("led", 0, 0) == 0
    broker.wait_for_isr("led", 0, [0])
    with pytest.raises(WaitTimeout, match=r"ISR \[1, 2\] in partition 0.*leader 0, ISR \[0\]"):
        broker.wait_for_isr("led", 0, [2, 1], timeout_s=0.3)
    with pytest.raises(WaitTimeout, match=r"a leader other than broker 0"):
        broker.wait_for_leader("led", other_than=0, timeout_s=0.3)
    with pytest.raises(ValueError, match=r"'led' has 1 partition, but no partition 7"):
        broker.wait_for_leader("led", 7)


def test_tk_3_a_deleted_topic_is_gone(broker: Broker) -> None:
    topic = broker.topic("deleted")
    topic.delete()
    assert "deleted" not in broker.topics()
    for use in (topic.records, topic.describe, topic.delete):
        with pytest.raises(UnknownTopicOrPartition):
            use()


def test_tk_3_wrong_arguments_are_refused_by_name(broker: Broker) -> None:
    topic = broker.topic("strict")
    with pytest.raises(InvalidTopicName, match=r"^name: 'no good'"):
        broker.topic("no good")
    with pytest.raises(ValueError, match=r"^partitions: 0 is not between 1 and"):
        broker.topic("strict", partitions=0)
    with pytest.raises(TypeError, match=r"^value: must be bytes or None, not int"):
        topic.send(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^records: must be a sequence"):
        topic.send_many(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^records: in a pair, it is unclear which item is"):
        topic.send_many([("key", "value")])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^records: \['keys'\]: only value and key are allowed"):
        topic.send_many([{"value": "v", "keys": "k"}])  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ValueError, match=r"^timeout_s: -1 is not a timeout"):
        topic.wait_for_records(1, timeout_s=-1)


def test_tk_3_a_topic_goes_on_after_a_restart() -> None:
    with Broker() as broker:
        topic = broker.topic("kept")
        topic.send(b"before")
        broker.stop()
        broker.start()
        topic.send(b"after")
        assert topic.values() == [b"before", b"after"]


def test_tk_3_a_topic_is_created_again_with_fewer_partitions(broker: Broker) -> None:
    """What is sent to it must not wait for a partition that it had before."""
    for partitions in (7, 1, 3, 2):
        topic = broker.topic("shrinks", partitions=partitions)
        topic.send_many([b"%d" % n for n in range(20)])
        assert len(topic.records()) == 20
        topic.delete()
