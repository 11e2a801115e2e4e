"""`format("barnabas")` and the JVM's `format("kafka")` read the same rows (SP-1).

Both read the same topics of one broker under the same options, ours with the Python of these tests,
the connector in an environment of its own. What they see is compared to the byte, schema included;
where the connector refuses, ours has to. Logs with gaps, log starts above zero, transactions and
old message formats are a real Kafka's, served by our broker.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.testing.embedded.broker import Broker
from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import (
    CODECS,
    EARLIEST,
    TIMEOUT_SECONDS,
    Change,
    Resource,
    Sent,
)
from tests.kit.secured.suite import spark_settings

pytestmark = [pytest.mark.foreign, pytest.mark.slow, pytest.mark.timeout(900)]

JOB = Path(__file__).with_name("spark_reading_job.py")
NOW_MS = 1_700_000_000_000

KAFKAS_TOPICS = (
    "codec-mixed",
    "compact",
    "compact-gone",
    "compact-txn",
    "delrec",
    "delrec-all",
    "delrec-segs",
    "legacy-v0",
    "legacy-v1",
    "legacy-v1-append",
    "records-edge",
    "segs",
    "time-append",
    "time-create",
    "txn",
    "txn-open",
)
CONFIG = {
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "log.retention.check.interval.ms": "200",
}
"""Kafka's records are of 2023 and shall not be tidied up; a topic that is to lose some says so."""


OURS, THEIRS = 0, 1
NO_IDS = {"topicIds": "false"}


class Reader:
    """A Spark session in a process of its own."""

    def __init__(self, python: Path | str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [python, JOB, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def wait_until_ready(self) -> None:
        self._answer()

    def ask(self, options: Mapping[str, str], checkpoint: Path | None, **how: bool) -> None:
        where = None if checkpoint is None else str(checkpoint)
        self._say({"options": dict(options), "checkpoint": where, **how})

    def wait_until_paused(self) -> None:
        assert self._answer() == {"paused": True}

    def go_on(self) -> None:
        self._say({})

    def seen(self) -> dict[str, Any]:
        return self._answer()

    def close(self) -> None:
        self._process.communicate(timeout=180)

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the Spark session ended"
        answer: dict[str, Any] = json.loads(line)
        return answer


class Both:
    """Ours and the connector, reading the same side by side."""

    def __init__(self, broker: Broker, ours: Reader, theirs: Reader) -> None:
        self.broker = broker
        self._readers = (ours, theirs)

    def read(self, directory: Path | None = None, **options: object) -> list[dict[str, Any]]:
        """The rows that both saw, in order; `directory`: of a stream's checkpoints, None: a batch.

        How a stream's trigger shares its rows out is its own affair; that it has them is not.
        """
        ours, theirs = self.answers(directory, **options)
        assert "error" not in theirs, theirs["error"]
        assert "error" not in ours, ours["error"]
        if directory is not None:
            ours["rows"].sort()
            theirs["rows"].sort()
        assert ours == theirs
        rows: list[dict[str, Any]] = [json.loads(row) for row in ours["rows"]]
        return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))

    def refuse(self, directory: Path | None = None, **options: object) -> tuple[str, str]:
        """What both of them said instead of reading."""
        ours, theirs = self.answers(directory, **options)
        assert "error" in theirs, "the connector reads this"
        assert "error" in ours, "the connector refuses this"
        return ours["error"], theirs["error"]

    def answers(self, directory: Path | None = None, **options: object) -> list[dict[str, Any]]:
        given = self._given(options)
        for number, reader in enumerate(self._readers):
            reader.ask(given, None if directory is None else directory / str(number))
        return [reader.seen() for reader in self._readers]

    def by(self, which: int, checkpoint: Path, **options: object) -> dict[str, Any]:
        """What one of them answers, which goes on from whatever checkpoint that is."""
        reader = self._readers[which]
        reader.ask(self._given(options), checkpoint)
        return reader.seen()

    def interrupted(
        self, directory: Path, event: Callable[[], None], *, ends: bool, **options: object
    ) -> list[dict[str, Any]]:
        """What a stream of each answers when `event` happens behind its first micro-batch."""
        for number, reader in enumerate(self._readers):
            reader.ask(self._given(options), directory / str(number), pauses=True, ends=ends)
        for reader in self._readers:
            reader.wait_until_paused()
        event()
        for reader in self._readers:
            reader.go_on()
        return [reader.seen() for reader in self._readers]

    def _given(self, options: Mapping[str, object]) -> dict[str, str]:
        given = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in options.items()
        }
        given["kafka.bootstrap.servers"] = self.broker.bootstrap_servers
        given["kafkaConsumer.pollTimeoutMs"] = "120000"
        return {**spark_settings(), **given}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    foreign.require_java()
    logs = foreign.require_shared() / "fixtures" / "kafka-3.9" / "single" / "logs.tar.gz"
    jars, python = foreign.require_spark_connector(), foreign.require_connector_python()
    directory = tmp_path_factory.mktemp("kafkas")
    lay_out(directory, logs)
    ours, theirs = Reader(sys.executable, "barnabas"), Reader(python, "kafka", str(jars))
    with barnabas.Broker(directory, config=CONFIG) as broker:
        ours.wait_until_ready()
        theirs.wait_until_ready()
        yield Both(broker, ours, theirs)
        ours.close()
        theirs.close()


def lay_out(directory: Path, archive: Path) -> None:
    """A directory of our broker that holds the first partition of each of `KAFKAS_TOPICS`."""
    with barnabas.Broker(directory, config=CONFIG) as broker:
        for topic in KAFKAS_TOPICS:
            confluent_client.create_topic(broker.bootstrap_servers, topic, 1, {})
    for topic in KAFKAS_TOPICS:
        for file in (directory / f"{topic}-0").iterdir():
            if file.name != "partition.metadata":  # it has the topic's id: ours
                file.unlink()
    with tarfile.open(archive) as tar:
        for member in tar:
            parent = Path(member.name).parent.name
            name = Path(member.name).name
            if parent.removesuffix("-0") in KAFKAS_TOPICS and name != "partition.metadata":
                content = tar.extractfile(member)
                assert content is not None
                (directory / parent / name).write_bytes(content.read())
            elif name == "log-start-offset-checkpoint":
                content = tar.extractfile(member)
                assert content is not None
                (directory / name).write_bytes(content.read())


class Stamped(NamedTuple):
    """A topic of two partitions whose records are a second apart, one codec after another."""

    topic: str
    count: int

    @classmethod
    def sent(cls, broker: Broker, topic: str) -> Stamped:
        servers = broker.bootstrap_servers
        confluent_client.create_topic(servers, topic, 2, {})
        for number, codec in enumerate(CODECS):
            records = [
                Sent(step % 2, b"%d" % step, b"v" * step, (("codec", codec.encode()),), at_ms(step))
                for step in range(20 * number, 20 * number + 20)
            ]
            confluent_client.produce(servers, topic, records, codec=codec)
        return cls(topic, 20 * len(CODECS))


def at_ms(step: int) -> int:
    return NOW_MS + 1000 * step


@pytest.fixture(scope="module")
def stamped(both: Both) -> Stamped:
    return Stamped.sent(both.broker, "stamped")


def test_a_real_kafkas_logs(both: Both, tmp_path: Path) -> None:
    """Gaps by compaction and markers, log starts above zero, aborted data, old formats."""
    options: dict[str, object] = {"subscribe": ",".join(KAFKAS_TOPICS), "includeHeaders": "true"}
    batch = both.read(**options)
    assert {row["topic"] for row in batch} == {*KAFKAS_TOPICS} - {"delrec-all"}
    # In several micro-batches of each topic.
    ends = {row["topic"]: row["offset"] + 1 for row in batch}
    half = sum(ends.values()) // 2
    stream = both.read(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger=half, **options)
    assert stream == batch
    both.read(**options, **{"kafka.isolation.level": "read_committed"})


@pytest.mark.parametrize(
    "ends_with", [pytest.param("commit", marks=pytest.mark.soak), "abort", "nothing"]
)
def test_pr_7_committed_records_of_transactions(both: Both, tmp_path: Path, ends_with: str) -> None:
    """Aborted ones are passed over, at the end of the log, too; an open one ends what is read."""
    topic = f"transactions-{ends_with}"
    confluent_client.create_topic(both.broker.bootstrap_servers, topic, 2, {})
    committed, opened = transact(both.broker.bootstrap_servers, topic, ends_with)
    for level, expected in (
        ("read_committed", committed),
        ("read_uncommitted", list(range(len(rounds(ends_with)) * 4))),
    ):
        options: dict[str, object] = {"subscribe": topic, "kafka.isolation.level": level}
        options["startingOffsets"] = "earliest"
        batch = both.read(**options)
        assert sorted(int(bytes.fromhex(row["value"])) for row in batch) == expected
        assert both.read(tmp_path / level, **options, maxOffsetsPerTrigger=23) == batch
        assert both.read(**options, minPartitions=6) == batch
    del opened
    print(
        f"{len(committed)} records of committed transactions, read alike by Spark with both sources"
    )


def rounds(ends_with: str) -> list[str]:
    """How each of the transactions ends."""
    return [*(["commit", "abort", "abort", "commit", "commit", "abort"] * 3), "commit", ends_with]


def transact(servers: str, topic: str, ends_with: str) -> tuple[list[int], Producer]:
    """Two records into each partition by each transaction; what was committed, and the producer."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(TIMEOUT_SECONDS)
    committed = []
    for turn, ending in enumerate(rounds(ends_with)):
        numbers = range(4 * turn, 4 * turn + 4)
        producer.begin_transaction()
        for number in numbers:
            producer.produce(topic, b"%d" % number, partition=number % 2)
        assert producer.flush(TIMEOUT_SECONDS) == 0
        if ending == "commit":
            producer.commit_transaction(TIMEOUT_SECONDS)
            committed += numbers
        elif ending == "abort":
            producer.abort_transaction(TIMEOUT_SECONDS)
    return committed, producer


def test_ranges_that_begin_and_end_in_gaps(both: Both) -> None:
    """Offsets 0 to 69 of `compact` are gone; nothing is there between its keys and the filler."""
    for start, end in ((0, 5), (0, 72), (71, 73), (82, 150), (83, 190)):
        options = {"startingOffsets": {"compact": {"0": start}}}
        both.read(subscribe="compact", minPartitions=4, failOnDataLoss="false",
                  endingOffsets={"compact": {"0": min(end, 184)}}, **options)  # fmt: skip


def test_every_codec_and_headers(both: Both, stamped: Stamped) -> None:
    rows = both.read(subscribe=stamped.topic, includeHeaders="true", startingOffsets="earliest")
    assert len(rows) == stamped.count
    assert {row["headers"][0]["value"] for row in rows} == {
        c.encode().hex().upper() for c in CODECS
    }


def test_offsets_of_a_range(both: Both, stamped: Stamped) -> None:
    starts, ends = {"0": 7, "1": -2}, {"0": -1, "1": 30}
    rows = both.read(
        subscribe=stamped.topic,
        startingOffsets={stamped.topic: starts},
        endingOffsets={stamped.topic: ends},
    )
    assert len(rows) == 43 + 30


def test_offsets_by_timestamp(both: Both, stamped: Stamped) -> None:
    topic = stamped.topic
    by_partition = {topic: {"0": at_ms(11), "1": at_ms(50)}}
    assert len(both.read(subscribe=topic, startingOffsetsByTimestamp=by_partition)) == 44 + 25
    assert len(both.read(subscribe=topic, endingOffsetsByTimestamp=by_partition)) == 6 + 25
    middle = {"startingTimestamp": str(at_ms(10)), "endingTimestamp": str(at_ms(90) + 1)}
    assert len(both.read(subscribe=topic, **middle)) == 81
    everything = {"endingTimestamp": str(at_ms(1000))}
    assert len(both.read(subscribe=topic, **everything)) == stamped.count


def test_a_timestamp_that_no_record_reaches(both: Both, stamped: Stamped, tmp_path: Path) -> None:
    late = {"subscribe": stamped.topic, "startingTimestamp": str(at_ms(1000))}
    both.refuse(**late)
    both.refuse(tmp_path / "refused", **late)
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert both.read(**late, **latest) == []
    assert both.read(tmp_path / "latest", **late, **latest) == []


@pytest.mark.parametrize("strategy", ["earliest", "none"])
def test_a_strategy_that_is_none(both: Both, stamped: Stamped, strategy: str) -> None:
    both.refuse(
        subscribe=stamped.topic,
        startingTimestamp=str(NOW_MS),
        startingOffsetsByTimestampStrategy=strategy,
    )


def test_what_is_below_the_logs_start(both: Both) -> None:
    """`delrec` starts at offset 10."""
    lost = {"subscribe": "delrec", "startingOffsets": {"delrec": {"0": 3}}}
    ours, theirs = both.refuse(**lost)
    assert "failOnDataLoss" in ours
    assert "failOnDataLoss" in theirs
    assert [row["offset"] for row in both.read(**lost, failOnDataLoss="false")][:1] == [10]


@pytest.mark.parametrize(
    ("ends", "fails"),
    [
        pytest.param(True, "true", id="available-now-fails"),
        pytest.param(False, "false", id="running-goes-on"),
        pytest.param(True, "false", id="available-now-goes-on", marks=pytest.mark.soak),
        pytest.param(False, "true", id="running-fails", marks=pytest.mark.soak),
    ],
)
def test_retention_under_a_query(both: Both, tmp_path: Path, ends: bool, fails: str) -> None:
    """Records that the second micro-batch would begin with are gone when it is planned, or, with
    availableNow, when its tasks run. The connector keeps its consumers, and may hold some records
    that it fetched before they were deleted: a batch, for fetches are small here."""
    topic = Losing.sent(both.broker, f"losing-{ends}-{fails}".lower())
    ours, theirs = both.interrupted(
        tmp_path,
        topic.lose,
        ends=ends,
        subscribe=topic.name,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="10",
        failOnDataLoss=fails,
        **{"kafka.max.partition.fetch.bytes": "100", "kafka.max.poll.records": "10"},
    )
    if fails == "true":
        assert "failOnDataLoss" in theirs["error"]
        assert "failOnDataLoss" in ours["error"]
        return
    seen = [[json.loads(row)["offset"] for row in answer["rows"]] for answer in (ours, theirs)]
    assert seen[0] == [*range(10), *range(topic.log_start, 100)]
    held = set(seen[1]) - set(seen[0])
    assert sorted(set(seen[1]) - held) == seen[0]
    assert held <= set(range(10, 30))


class Losing(NamedTuple):
    """A topic of one partition, of whose records the older half is deleted when asked for."""

    servers: str
    name: str

    @classmethod
    def sent(cls, broker: Broker, name: str) -> Losing:
        servers = broker.bootstrap_servers
        # A batch fills a segment.
        configs = {"retention.ms": "-1", "segment.bytes": "600"}
        confluent_client.create_topic(servers, name, 1, configs)
        now_ms = time.time_ns() // 1_000_000
        for start in range(0, 100, 10):
            timestamp_ms = NOW_MS if start < 50 else now_ms
            records = [Sent(0, None, b"v" * 30, (), timestamp_ms) for _ in range(10)]
            confluent_client.produce(servers, name, records)
        return cls(servers, name)

    def lose(self) -> None:
        hour = Change("SET", "retention.ms", "3600000")
        confluent_client.change_configs(self.servers, Resource("topic", self.name), [hour])
        deadline = time.monotonic() + 120
        while self.log_start < 50:
            assert time.monotonic() < deadline, "retention deletes what is older than an hour"
            time.sleep(0.1)

    @property
    def log_start(self) -> int:
        earliest = confluent_client.offset(self.servers, self.name, EARLIEST)
        assert earliest is not None
        return earliest


def test_what_is_wrong_with_the_options(both: Both, stamped: Stamped) -> None:
    topic = stamped.topic
    both.refuse()
    both.refuse(subscribe=topic, subscribePattern=topic)
    both.refuse(subscribe=topic, startingOffsets="latest")
    both.refuse(subscribe=topic, endingOffsets="earliest")
    both.refuse(subscribe=topic, startingOffsets={topic: {"0": 1}})
    both.refuse(subscribe=topic, startingOffsets="{")
    both.refuse(subscribe=topic, minPartitions="0")
    both.refuse(subscribe=topic, failOnDataLoss="perhaps")


def test_a_stream_begins_with_what_comes(both: Both, stamped: Stamped, tmp_path: Path) -> None:
    """The default of a stream is `latest`; what comes while it rests is its own."""
    topic = "coming"
    confluent_client.create_topic(both.broker.bootstrap_servers, topic, 1, {})
    send(both, topic, 0, 5)
    assert both.read(tmp_path, subscribe=topic) == []
    send(both, topic, 0, 3)
    assert [row["offset"] for row in both.read(tmp_path, subscribe=topic)] == [5, 6, 7]


def test_a_partition_that_is_added_is_read_from_its_beginning(both: Both, tmp_path: Path) -> None:
    topic = "growing"
    servers = both.broker.bootstrap_servers
    confluent_client.create_topic(servers, topic, 1, {})
    send(both, topic, 0, 4)
    assert both.read(tmp_path, subscribe=topic) == []
    confluent_client.create_partitions(servers, topic, 3)
    send(both, topic, 2, 6)
    send(both, topic, 0, 1)
    places = [(row["partition"], row["offset"]) for row in both.read(tmp_path, subscribe=topic)]
    assert places == [(0, 4), *((2, offset) for offset in range(6))]


def test_a_query_moves_to_ours_and_back(both: Both, tmp_path: Path) -> None:
    """With one checkpoint, each row once; the way back needs topicIds=false for a batch, since the
    connector refuses an offset with ids in it (decision 19)."""
    topic, servers = "moving", both.broker.bootstrap_servers
    confluent_client.create_topic(servers, topic, 2, {})
    given = {"subscribe": topic, "startingOffsets": "earliest"}
    read: list[tuple[int, int]] = []
    for turn, (which, ids) in enumerate([(THEIRS, {}), (OURS, NO_IDS), (THEIRS, {}), (OURS, {})]):
        for partition in (0, 1):
            send(both, topic, partition, turn + partition + 1)
        answer = both.by(which, tmp_path, **given, **ids)
        rows = [json.loads(row) for row in answer["rows"]]
        assert len(rows) == 2 * turn + 3
        read += [(row["partition"], row["offset"]) for row in rows]
    assert sorted(read) == [(0, at) for at in range(10)] + [(1, at) for at in range(14)]
    send(both, topic, 0, 1)
    refused = both.by(THEIRS, tmp_path, **given)
    assert '"@ids"' in refused["error"]
    assert len(both.by(OURS, tmp_path, **given, **NO_IDS)["rows"]) == 1
    send(both, topic, 0, 2)
    assert len(both.by(THEIRS, tmp_path, **given)["rows"]) == 2


def test_a_batch_that_the_connector_planned_is_the_connectors(both: Both, tmp_path: Path) -> None:
    """Where its first batch begins stands in no offset of it: ours refuses, and says what to do."""
    topic, servers = "planned", both.broker.bootstrap_servers
    confluent_client.create_topic(servers, topic, 1, {})
    send(both, topic, 0, 4)
    given = {"subscribe": topic, "startingOffsets": "earliest"}
    assert len(both.by(THEIRS, tmp_path, **given)["rows"]) == 4
    (tmp_path / "commits" / "0").unlink()
    (tmp_path / "commits" / ".0.crc").unlink()
    refused = both.by(OURS, tmp_path, **given)
    assert "has no start for planned-0" in refused["error"]
    assert "Let it finish the batch" in refused["error"]
    assert len(both.by(THEIRS, tmp_path, **given)["rows"]) == 4
    assert both.by(OURS, tmp_path, **given)["rows"] == []


def test_many_small_topics(both: Both, tmp_path: Path) -> None:
    servers = both.broker.bootstrap_servers
    for number in range(50):
        confluent_client.create_topic(servers, f"small-{number}", 1, {})
    for number in range(0, 50, 2):
        send(both, f"small-{number}", 0, number % 5 + 1)
    pattern = {"subscribePattern": "small-.*", "startingOffsets": "earliest"}
    rows = both.read(**pattern)
    assert len({row["topic"] for row in rows}) == 25
    assert len(rows) == sum(number % 5 + 1 for number in range(0, 50, 2))
    assert both.read(tmp_path, **pattern, maxOffsetsPerTrigger=40) == rows
    assert len(both.read(subscribePattern="small-4.?")) < len(rows)
    assert both.read(assign={"small-2": [0], "small-3": [0]}) == [
        row for row in rows if row["topic"] == "small-2"
    ]


def send(both: Both, topic: str, partition: int, count: int) -> None:
    records = [Sent(partition, None, b"%d" % number) for number in range(count)]
    confluent_client.produce(both.broker.bootstrap_servers, topic, records)
