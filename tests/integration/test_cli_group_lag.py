"""IN-5: `groups describe --lag` and `groups watch`, against Barnabas and a real Kafka.

The test itself is the producer and the consumer, so that it decides how fast each of them is.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.broker.metric_pages import samples
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.waiting import PATIENCE_S, wait_until

Values = dict[str, Any]


@pytest.fixture
def name() -> str:
    """Of a topic and its group: the brokers are shared."""
    return f"lag-{uuid4().hex[:8]}"


def create(servers: str, topic: str, partitions: int = 1, **configs: object) -> None:
    settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, partitions, configs=settings)])


def fill(servers: str, topic: str, count: int, partition: int = 0, **more: Any) -> None:
    with SyncProducer(servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition, **more)


def commit(servers: str, group: str, offset: int, partition: int = 0) -> None:
    with SyncAdmin(servers) as admin:
        admin.alter_group_offsets(group, {TopicPartition(group, partition): offset})


class Member:
    """A member of the group that reads, processes and commits only as the test says."""

    def __init__(self, servers: str, name: str, partitions: int) -> None:
        self._name = name
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": name,
                "client.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.subscribe([name])
        wait_until(lambda: self._consumer.poll(0.1) or self._has(partitions))

    def _has(self, partitions: int) -> bool:
        return len(self._consumer.assignment()) == partitions

    def commit(self, partition: int, offset: int) -> None:
        from confluent_kafka import TopicPartition as Position

        self._consumer.poll(0)  # takes part in the group
        position = Position(self._name, partition, offset)
        self._consumer.commit(offsets=[position], asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class Watching:
    """`groups watch --json` in a process of its own, look by look."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def look(self) -> Values:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the command has ended"
        (lag,) = json.loads(line)
        found: Values = lag
        return found

    def complaint(self) -> bytes:
        """The next line on standard error."""
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def until(self, is_so: Callable[[Values], bool], work: Callable[[], None]) -> Values:
        """The first look at which it is so; `work` is done before each."""
        ends_at_s = time.monotonic() + PATIENCE_S
        while not is_so(seen := self.look()):
            assert time.monotonic() < ends_at_s, seen
            work()
        return seen


@contextmanager
def watching(servers: str, line: str) -> Iterator[Watching]:
    words = with_settings(["groups", "watch", *line.split(), "--json", "--interval-ms", "200"])
    with subprocess.Popen(
        [COMMAND, *words, "--bootstrap-server", servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Watching(process)
        finally:
            process.kill()


def described(servers: str, line: str, capfd: pytest.CaptureFixture[str]) -> Values:
    """The one group of `groups describe --lag`."""
    capfd.readouterr()
    words = with_settings(["groups", "describe", *line.split(), "--lag", "--json"])
    assert main([*words, "--bootstrap-server", servers]) == 0
    (lag,) = json.loads(capfd.readouterr().out)
    found: Values = lag
    return found


def state(partition: int, wanted: str) -> Callable[[Values], bool]:
    return lambda lag: bool(lag["partitions"][partition]["state"] == wanted)


@pytest.mark.slow
def test_in_5_a_consumer_that_is_slow_then_fast_then_gone(servers: str, name: str) -> None:
    create(servers, name)
    fill(servers, name, 2_000)
    member, written, read = Member(servers, name, 1), 2_000, 0

    def work(write: int, take: int) -> None:
        nonlocal written, read
        fill(servers, name, write)
        written, read = written + write, min(read + take, written + write)
        member.commit(0, read)

    with watching(servers, f"{name} --stuck-after 60s --count 5000") as watch:
        seen = watch.look()["partitions"][0]
        assert (seen["offset"], seen["records"], seen["records_exact"]) == (None, 2_000, True)
        seen = watch.until(state(0, "falling behind"), lambda: work(30, 3))
        partition = seen["partitions"][0]
        assert partition["write_rate"] > partition["read_rate"] > 0 < partition["trend"]
        assert partition["catch_up_seconds"] is None
        assert partition["seconds_from"] == "record" and partition["seconds"] > 0
        assert seen["slowest_member"]["member"] == partition["member"]
        assert partition["member"].startswith("reader")
        seen = watch.until(state(0, "catching up"), lambda: work(0, 10))
        partition = seen["partitions"][0]
        assert partition["catch_up_seconds"] == pytest.approx(
            partition["records"] / -partition["trend"], rel=0.01
        )
        seen = watch.until(state(0, "caught up"), lambda: work(0, written))
        assert (seen["lag"]["records"], seen["lag"]["seconds"]) == (0, 0.0)
        fill(servers, name, 5)
        watch.until(lambda lag: bool(lag["lag"]["records"] == 5), lambda: None)
        member.close()
        seen = watch.until(state(0, "stopped"), lambda: None)
        assert (seen["lag"]["records"], seen["slowest_member"]) == (5, None)


@pytest.mark.slow
def test_in_5_a_stuck_partition_beside_one_that_is_read(servers: str, name: str) -> None:
    """One record cannot be processed: the member goes on with its other partition."""
    create(servers, name, 2)
    for partition in range(2):
        fill(servers, name, 50, partition)
    member, read = Member(servers, name, 2), 10
    for partition in range(2):
        member.commit(partition, read)

    def work() -> None:
        nonlocal read
        read += 1
        fill(servers, name, 1, 0)
        member.commit(0, read)

    with watching(servers, f"{name} --stuck-after 3s") as watch:
        seen = watch.until(state(1, "stuck"), work)
        moving, stuck = seen["partitions"]
        assert moving["state"] in ("steady", "catching up", "falling behind")
        assert stuck["reason"].startswith("the committed offset has stayed at 10 for ")
        assert "look at the record at that offset" in stuck["reason"]
        assert (stuck["records"], stuck["records_exact"]) == (40, True)
        assert seen["lag"]["state"] == "stuck"
        member.commit(1, 11)
        watch.until(lambda lag: not state(1, "stuck")(lag), work)
    member.close()


def test_in_5_markers_and_aborted_records_are_no_lag(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(servers, name)
    with SyncProducer(servers, transactional_id=name) as producer:
        for _ in range(3):
            with producer.transaction():
                producer.send(name, b"kept", partition=0)
        producer.begin_transaction()
        for _ in range(4):
            producer.send(name, b"dropped", partition=0)
        producer.flush()
        producer.abort_transaction()
    commit(servers, name, 0)  # six offsets of three transactions, then four records and a marker
    for level, records in (("read_uncommitted", 7), ("read_committed", 3)):
        (seen,) = described(servers, f"{name} --for 0s --isolation-level {level}", capfd)[
            "partitions"
        ]
        assert (seen["end_offset"], seen["records"], seen["records_exact"]) == (11, records, True)
    # Everything is read but the last marker, or the aborted records.
    commit(servers, name, 10)
    (seen,) = described(servers, name, capfd)["partitions"]
    assert (seen["state"], seen["records"]) == ("caught up", 0)
    assert "transaction markers" in seen["reason"]
    commit(servers, name, 6)
    (seen,) = described(servers, f"{name} --isolation-level read_committed", capfd)["partitions"]
    assert (seen["state"], seen["records"]) == ("caught up", 0)


@pytest.mark.slow
def test_in_5_gaps_left_by_compaction_are_no_lag(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(
        servers, name,
        cleanup_policy="compact", max_compaction_lag_ms=1, segment_ms=1,
        min_cleanable_dirty_ratio="0.01",
    )  # fmt: skip
    for _ in range(20):
        fill(servers, name, 5, key=b"always the same")
    commit(servers, name, 0)
    seen: Values = {}

    def is_compacted() -> bool:
        (partition,) = described(servers, f"{name} --for 0s", capfd)["partitions"]
        seen.update(partition)
        return bool(partition["records"] < 50)

    wait_until(is_compacted)
    assert seen["end_offset"] == 100 and seen["records_exact"] is True
    (bound,) = described(servers, f"{name} --for 0s --count 1", capfd)["partitions"]
    is_compacted()  # the cleaner may have removed more in the meantime
    assert bound["records"] >= seen["records"]


def test_in_5_the_age_is_that_of_the_first_unread_record(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(servers, name, 2)
    now_ms = int(time.time() * 1000)
    for age_s in (7_200, 3_600, 60):
        fill(servers, name, 1, timestamp_ms=now_ms - age_s * 1000)
    commit(servers, name, 1)
    lag = described(servers, f"{name} --for 0s", capfd)
    seen = lag["partitions"][0]
    assert (seen["state"], seen["records"], seen["seconds_from"]) == ("stopped", 2, "record")
    assert 3_600 <= seen["seconds"] < 3_600 + PATIENCE_S
    assert lag["lag"]["seconds"] == seen["seconds"]


def test_in_5_a_long_way_is_dated_but_not_counted(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(servers, name)
    with SyncProducer(servers) as producer:
        for _ in range(3_000):
            producer.send(name, bytes(100), partition=0)
    commit(servers, name, 0)
    (seen,) = described(servers, f"{name} --for 0s --count 1000", capfd)["partitions"]
    assert (seen["records"], seen["records_exact"], seen["seconds_from"]) == (3000, False, "record")
    (seen,) = described(servers, f"{name} --for 0s --count 3000", capfd)["partitions"]
    assert (seen["records"], seen["records_exact"]) == (3_000, True)


def test_in_5_the_table_and_a_group_that_is_not(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(servers, name)
    fill(servers, name, 3)
    commit(servers, name, 1)
    capfd.readouterr()
    words = with_settings(["groups", "describe", name, "gone", "--lag", "--for", "0s"])
    assert main([*words, "--bootstrap-server", servers]) == 1
    output, errors = capfd.readouterr()
    empty, heading, row, line = output.splitlines()
    assert empty == "" and heading.split()[:6] == [
        "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "RECORDS",
    ]  # fmt: skip
    assert row.split()[:6] == [name, name, "0", "1", "3", "2"]
    assert row.endswith("no member of the group has the partition")
    assert line.startswith(f"{name}: stopped, 2 records behind, oldest waiting for ")
    assert errors.startswith("barnabas groups describe: ") and "'gone' does not exist" in errors


def test_a_missing_group_fails_the_watch(
    servers: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The exit code of `groups watch --once` tells a script that a group is missing."""
    create(servers, name)
    commit(servers, name, 0)
    words = with_settings(["groups", "watch", name, "--once", "--bootstrap-server", servers])
    assert main(words) == 0
    assert main([*words, "gone"]) == 1
    assert "gone: the group does not exist\n" in capfd.readouterr().out


@pytest.mark.slow
def test_in_5_the_lag_is_served_for_prometheus(servers: str, name: str) -> None:
    create(servers, name)
    fill(servers, name, 3)
    commit(servers, name, 1)
    port = free_port()
    words = with_settings(["groups", "watch", name, "--metrics-port", str(port)])
    page: dict[str, float] = {}

    def get(path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=5) as answer:
                return str(answer.read(), "utf-8")
        except OSError:
            return ""

    def is_served() -> bool:
        page.update(samples(get("/metrics")))
        return bool(page)

    with subprocess.Popen([COMMAND, *words, "--bootstrap-server", servers]) as process:
        try:
            wait_until(is_served)
            labels = f'group="{name}",topic="{name}",partition="0"'
            assert page[f"barnabas_group_lag_records{{{labels}}}"] == 2
            assert page[f"barnabas_group_lag_seconds{{{labels}}}"] > 0
            assert page[f'barnabas_group_partition_state{{{labels},state="stopped"}}'] == 1
            assert not any(key.startswith("barnabas_group_lag_trend") for key in page)
            assert get("/readyz") == "ready\n"
        finally:
            process.terminate()


def test_in_5_records_that_may_not_be_read_are_not_guessed(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The user may see the topic `secret`, but not read it; the other topic is still counted."""
    config = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with barnabas.Broker(config=config) as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics(["open", "secret"])
            offsets = dict.fromkeys([TopicPartition("open", 0), TopicPartition("secret", 0)], 1)
            for topic in ("open", "secret"):
                fill(servers, topic, 3)
            admin.alter_group_offsets(name, offsets)
        words = ["acls", "add", "--user", "ANONYMOUS", "--operation", "describe"]
        assert main([*words, "--topic", "secret", "--bootstrap-server", servers]) == 0
        lag = described(servers, f"{name} --for 0s", capfd)
    readable, secret = lag["partitions"]
    assert (readable["records"], readable["records_exact"]) == (2, True)
    assert (secret["records"], secret["records_exact"]) == (2, False)
    assert secret["seconds_from"] == "bound"
    assert "secret" in lag["not_counted_because"]


@pytest.mark.slow
def test_in_5_a_watcher_waits_for_brokers_and_for_new_topics(name: str) -> None:
    """It says once that nobody answers; then it goes on, with a topic that was created again."""
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        create(servers, name)
        fill(servers, name, 5)
        commit(servers, name, 2)
        with watching(servers, name) as watch:
            assert watch.look()["lag"]["records"] == 3
            broker.stop()
            assert b"retrying" in watch.complaint()
            broker.start()
            with SyncAdmin(servers) as admin:
                admin.delete_topics(name)
            create(servers, name)
            commit(servers, name, 0)
            fill(servers, name, 1)

            def is_new(lag: Values) -> bool:
                return bool(lag["lag"]["records"] == 1 and lag["lag"]["records_exact"])

            watch.until(is_new, lambda: None)
