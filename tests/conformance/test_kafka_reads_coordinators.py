"""ST-9, ST-7: Kafka's own DumpLogSegments reads what our coordinators and our cleaner leave.

One broker is made to have groups (alive, empty, deleted), transactions (committed, aborted, open)
and compacted partitions (gaps, tombstones and markers with their delete horizon, empty batches);
it is stopped, and the tool prints every file of it. Its lines are those of `barnabas dump`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.main import main
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.dump_tool import KINDS, Tool, ordered
from tests.kit.waiting import wait_until

WAIT_S = 120.0
SHARDS = 4
OPTIONS = (
    f"offsets.topic.num.partitions={SHARDS}",
    f"transaction.state.log.num.partitions={SHARDS}",
    "group.initial.rebalance.delay.ms=0",
    "log.cleaner.backoff.ms=100",
)
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1500",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "86400000",
}
FIRST_PASS, SECOND_PASS = 60, 80  # offsets behind the records that are to be compacted

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]


def producing(servers: str, transactional_id: str = "") -> Producer:
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "log_level": 0,
    }
    if not transactional_id:
        return Producer(config)
    producer = Producer({**config, "transactional.id": transactional_id})
    producer.init_transactions(WAIT_S)
    return producer


def batch(producer: Producer, topic: str, records: dict[str, bytes | None]) -> None:
    """These records as one batch."""
    for key, value in records.items():
        producer.produce(topic, key=key, value=value, partition=0)
    assert producer.flush(WAIT_S) == 0


def in_transaction(producer: Producer, topic: str, keys: list[str], *, commits: bool) -> None:
    producer.begin_transaction()
    batch(producer, topic, dict.fromkeys(keys, b"by the transaction"))
    if commits:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)


def member(servers: str, group: str, instance_id: str = "") -> Consumer:
    """In the group, with everything that is there read and committed."""
    config = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    static = {"group.instance.id": instance_id} if instance_id else {}
    consumer = Consumer({**config, **static, "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe(["plain"])
    seen = 0

    def reads() -> bool:
        nonlocal seen
        messages = consumer.consume(10, 0.1)
        seen += sum(message.error() is None for message in messages)
        return seen >= 3

    wait_until(reads, WAIT_S)
    consumer.commit(asynchronous=False)
    return consumer


def have_groups(servers: str, admin: AdminClient) -> Consumer:
    """Returns a member that is alive."""
    batch(producing(servers), "plain", {"a": b"1", "b": b"2", "c": b"3"})
    for group in ("empty", "deleted", "grüße"):
        member(servers, group).close()
    [deleted] = admin.delete_consumer_groups(["deleted"]).values()
    deleted.result()
    offset = TopicPartition("plain", 0, 1, "chosen €")
    altered = [ConsumerGroupTopicPartitions("simple", [offset])]
    [done] = admin.alter_consumer_group_offsets(altered).values()
    done.result()
    return member(servers, "alive", "instance-1")


def have_transactions(servers: str, alive: Consumer) -> Producer:
    """Returns the producer of one that is open."""
    producer = producing(servers, "tx-ended")
    in_transaction(producer, "transactional", ["a", "b"], commits=True)
    in_transaction(producer, "transactional", ["c"], commits=False)
    metadata = alive.consumer_group_metadata()
    for offset, commits in ((2, True), (1, False)):
        producer.begin_transaction()
        consumed = [TopicPartition("plain", 0, offset)]
        producer.send_offsets_to_transaction(consumed, metadata, WAIT_S)
        producer.commit_transaction(WAIT_S) if commits else producer.abort_transaction(WAIT_S)
    in_transaction(producing(servers, "tx-fenced"), "transactional", ["d"], commits=True)
    in_transaction(producing(servers, "tx-fenced"), "transactional", ["e"], commits=True)
    opened = producing(servers, "tx-open")
    opened.begin_transaction()
    batch(opened, "transactional", {"f": b"open", "g": b"open"})
    return opened


def have_compacted(servers: str) -> None:
    """Keys written over and over; deleted ones; a producer all of whose records are superseded."""
    plain, early = producing(servers), producing(servers)
    batch(early, "compacted", {f"k{number}": b"early" for number in range(4)})
    for turn in range(6):
        values: dict[str, bytes | None] = {f"k{n}": b"turn %d" % turn for n in range(10)}
        batch(plain, "compacted", values)
    batch(plain, "compacted", {"k3": None, "k7": None, "never-seen": None, "only-once": b"once"})

    transactional = producing(servers, "tx-compacted")
    in_transaction(transactional, "compacted-tx", ["k0", "k1", "gone"], commits=True)
    in_transaction(transactional, "compacted-tx", ["k0", "aborted"], commits=False)
    other = producing(servers, "tx-superseded")
    in_transaction(other, "compacted-tx", ["k0", "k1"], commits=True)
    in_transaction(transactional, "compacted-tx", ["k0", "k1", "k2"], commits=True)
    batch(plain, "compacted-tx", {"gone": None})
    for topic in ("compacted", "compacted-tx"):
        for number in range(60):
            batch(plain, topic, {f"filler-{number % 20}": b"filler " * 12})


def cleaned(data_dir: Path) -> dict[str, int]:
    """How far each partition has been cleaned, as the checkpoint of the cleaner says."""
    path = data_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return {topic: int(offset) for topic, _, offset in map(str.split, lines)}


def have_everything(servers: str, data_dir: Path) -> tuple[Consumer, Producer]:
    """Those who must live until the broker has stopped."""
    admin = AdminClient({"bootstrap.servers": servers})
    created = [NewTopic(topic, 1) for topic in ("plain", "transactional")]
    created += [NewTopic(topic, 1, config=COMPACTED) for topic in ("compacted", "compacted-tx")]
    for done in admin.create_topics(created).values():
        done.result()
    alive = have_groups(servers, admin)
    opened = have_transactions(servers, alive)
    have_compacted(servers)
    names = ("compacted", "compacted-tx")
    wait_until(lambda: all(cleaned(data_dir).get(name, 0) > FIRST_PASS for name in names))
    # Markers get their delete horizon by the pass after that which took their records.
    producer = producing(servers)
    for number in range(20):
        batch(producer, "compacted-tx", {f"later-{number}": b"x" * 150})
    wait_until(lambda: cleaned(data_dir)["compacted-tx"] > SECOND_PASS)
    return alive, opened


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of that broker, stopped in order, its clients still at work."""
    with broker_process(tmp_path_factory.mktemp("broker"), *OPTIONS) as broker:
        clients = have_everything(broker.bootstrap_servers, broker.data_dir)
        assert broker.stop() == 0
        del clients
        return broker.data_dir


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(tmp_path_factory.mktemp("tool"))


Dump = Callable[..., str]


@pytest.fixture
def dump(capfdbinary: pytest.CaptureFixture[bytes]) -> Dump:
    """What `barnabas dump` prints of the files."""

    def run(*words: str | Path) -> str:
        capfdbinary.readouterr()
        main(["dump", *map(str, words)])
        return capfdbinary.readouterr().out.decode()

    return run


def of_topic(logs: Path, topic: str, suffix: str = ".log") -> list[Path]:
    return sorted(path for path in logs.glob(f"{topic}-[0-9]*/*") if path.suffix == suffix)


def compare(tool: Tool, dump: Dump, option: str, files: list[Path], *ours: str) -> str:
    """Everything that both print of these files."""
    said = []
    for path, theirs in zip(files, tool.print(option, files), strict=True):
        printed = dump(*ours, path).encode()
        assert ordered(printed) == ordered(theirs), path
        said.append(theirs.decode())
    assert files
    return "".join(said)


def test_st_9_every_file_has_the_lines_of_kafkas_tool(tool: Tool, logs: Path, dump: Dump) -> None:
    files = sorted(path for path in logs.glob("*/*") if path.suffix in KINDS)
    said = compare(tool, dump, "", files)
    for complaint in ("mismatch", "isvalid: false", "corrupt", "Non-monotonic", "Found"):
        assert complaint not in said
    counts = {kind: sum(path.suffix == kind for path in files) for kind in KINDS}
    assert min(counts.values()) >= 1, counts
    assert "currentTxnFirstOffset: OptionalLong[" in said
    assert re.search(r"version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+", said)
    print(f"{len(files)} files of a broker of ours as DumpLogSegments prints them: {counts}")


def test_st_9_kafka_decodes_the_records_of_the_coordinators(
    tool: Tool, logs: Path, dump: Dump
) -> None:
    """Groups and their offsets, transactions in every state, deletions of either."""
    files = of_topic(logs, "__consumer_offsets")
    groups = compare(tool, dump, "--offsets-decoder", files, "--records")
    assert "Failed" not in groups and "Exception" not in groups
    for name in ("empty", "deleted", "grüße", "simple", "alive"):
        assert f'"group":"{name}"' in groups or f"group={name}" in groups, name
    for word in ("instance-1", "chosen €", "payload: <DELETE>", "COMMIT", "ABORT"):
        assert word in groups, word
    files = of_topic(logs, "__transaction_state")
    transactions = compare(tool, dump, "--transaction-log-decoder", files, "--records")
    for state in ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort"):
        assert f"state={state}" in transactions, state
    lines = (groups + transactions).count("| offset:")
    print(f"{lines} records of our coordinators decoded by DumpLogSegments")


@pytest.mark.parametrize("topic", ["compacted", "compacted-tx"])
def test_st_7_kafka_reads_what_our_cleaner_left(
    tool: Tool, logs: Path, dump: Dump, topic: str
) -> None:
    """Survivors at their offsets, tombstones and markers with the horizon, empty batches."""
    files = of_topic(logs, topic)
    said = compare(tool, dump, "--print-data-log", files, "--records", "--raw")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < offsets[-1] * 2 // 3, "gaps"
    horizons = re.findall(r"isControl: (\w+) deleteHorizonMs: OptionalLong\[", said)
    assert "false" in horizons, "a tombstone waits for its end"
    assert re.search(r"count: 0 ", said), "an empty batch keeps its producer"
    if topic == "compacted-tx":
        assert "true" in horizons, "a marker waits for its end"
        assert "key: aborted" not in said
        assert "endTxnMarker: ABORT" in said
    deep = compare(tool, dump, "--deep-iteration", files, "--deep-iteration")
    assert "isvalid: false" not in deep
    batches = said.count("baseOffset:")
    print(f"{batches} batches that our cleaner left, as DumpLogSegments prints them: {topic}")


def test_st_7_nothing_is_found_by_verification(logs: Path) -> None:
    partitions = sorted(str(path) for path in logs.iterdir() if path.is_dir())
    assert main(["dump", "--verify", "--records", *partitions]) == 0
