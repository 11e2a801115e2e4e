"""A real Kafka's data directory changes hands: imported, served to its own client, written on.

What the Java consumer read from that Kafka just before its stop is what it must read from us.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.clients import confluent_client, java_client
from tests.kit.clients.clients import LATEST, Client, Promise, Sent
from tests.kit.processes.broker_process import COMMAND, BrokerProcess

pytestmark = pytest.mark.foreign

IMPORT_SECONDS = 180
Ranges = list[list[int]]


@pytest.fixture(scope="module")
def theirs(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a broker listens that was started on a copy of Kafka's directory, as a user does it."""
    kafka = shared / "fixtures" / "kafka-3.9"
    # The records are from 2023, and so are the transactions that were left open. What Kafka had
    # compacted stays as it was.
    broker = BrokerProcess(
        tmp_path_factory.mktemp("theirs"),
        "log.cleaner.enable=false",
        "log.retention.ms=-1",
        "offsets.retention.minutes=2147483647",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms=2147483647",
        "transaction.remove.expired.transaction.cleanup.interval.ms=2147483647",
    )
    with tarfile.open(kafka / "single" / "logs.tar.gz") as tar:
        tar.extractall(broker.data_dir.parent)
    (broker.data_dir.parent / "logs").rename(broker.data_dir)
    tree = kafka / "zookeeper" / "single-stopped.json"
    words = [str(COMMAND), "metadata", "import", str(tree), "--dir", str(broker.data_dir)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=IMPORT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Imported "), done.stdout
    broker.start()
    try:
        yield broker.bootstrap_servers
    finally:
        assert broker.stop() == 0
    assert "Traceback" not in broker.log.read_text()


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, dict[str, Ranges]]:
    """By partition and isolation level: the first and last offset of each run of records."""
    path = shared / "fixtures" / "kafka-3.9" / "expected" / "single-read.json"
    read = json.loads(path.read_text())
    return {name: levels for name, levels in read.items() if not name.startswith("_")}


# Java's consumer reads uncommitted records unless configured otherwise, librdkafka's does not.
@pytest.mark.parametrize(
    ("reader", "level"),
    [(java_client.measure, "read_uncommitted"), (confluent_client, "read_committed")],
    ids=["java", "confluent-kafka"],
)
def test_every_partition_reads_as_it_did_from_kafka(
    theirs: str, expected: dict[str, dict[str, Ranges]], reader: Client, level: str
) -> None:
    """ST-1, CO-6, ZK-6: every codec and message format, transactions, gaps of every kind."""
    wanted: dict[str, dict[int, list[int]]] = defaultdict(dict)
    for name, levels in expected.items():
        topic, _, number = name.rpartition("-")
        ranges = levels.get(level, levels["read_uncommitted"])
        offsets = [offset for first, last in ranges for offset in range(first, last + 1)]
        wanted[topic][int(number)] = offsets
    for topic, partitions in wanted.items():
        seen = reader.consume(
            theirs, topic, 1 + max(partitions), sum(map(len, partitions.values()))
        )
        for number, offsets in partitions.items():
            got = [one.offset for one in seen if one.partition == number]
            assert got == offsets, f"{topic}-{number}"
    print(f"{reader.name}: {len(expected)} partitions")


def test_the_log_goes_on_where_kafka_left_it(
    theirs: str, expected: dict[str, dict[str, Ranges]]
) -> None:
    """PR-6, ST-1: by an idempotent producer."""
    [[_, last]] = expected["segs-0"]["read_uncommitted"]
    assert java_client.measure.offset(theirs, "segs", LATEST) == last + 1
    sent = [Sent(0, b"key", b"one more")]
    promise = Promise(-1, is_idempotent=True)
    java_client.measure.produce(theirs, "segs", sent, codec="zstd", promise=promise)
    newest = confluent_client.consume(theirs, "segs", 1, last + 2)[-1]
    assert (newest.offset, newest.value) == (last + 1, b"one more")
