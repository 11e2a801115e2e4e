"""SP-3, DL-1: what tasks stage is in the topic once, also if they fail, retry or are replaced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.types import BinaryType, IntegerType, StructType

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.errors import UnknownPartition
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer
from barnabas.errors import BarnabasError, ConfigError, ProducerFenced
from barnabas.protocol.api import END_TXN, TXN_OFFSET_COMMIT
from barnabas.types import TopicPartition
from pyspark_barnabas.exactly_once import commit_job, drop_staging_topic, transactional_id_of
from pyspark_barnabas.rows import Columns
from pyspark_barnabas.stager import stage
from pyspark_barnabas.staging import StagedBatch, StagingLost, staging_topic
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.clients.kafka_process import kafka_broker
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.answer_proxy import Fate, behind_a_proxy
from tests.kit.processes.cluster_load import committed_values
from tests.kit.raw_client import NO_TIDYING
from tests.kit.waiting import wait_until
from tests.pipeline.micro_batches import end, options_of, query_of, task


@pytest.fixture(
    scope="module",
    params=["barnabas", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.foreign])],
)
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker of ours, and a real Kafka's."""
    if request.param == "barnabas":
        with barnabas.Broker(config=NO_TIDYING) as broker:
            yield broker.bootstrap_servers
        return
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as servers:
        yield servers


def create(servers: str, topic: str, partitions: int = 1) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])


def test_sp_3_a_batch_is_there_once_however_often_it_runs(servers: str) -> None:
    """With other tasks, after tasks that failed or ran twice, after a commit not answered."""
    create(servers, "once", 3)
    options = options_of(servers, topic="once")
    task(options, numbered(0, 40))  # failed in the end
    staged = [task(options, numbered(0, 50)), task(options, numbered(50, 100))]
    task(options, numbered(50, 100))  # ran a second time, elsewhere
    assert end(options, 0, *staged)
    assert not end(options, 0, *staged)
    again = [task(options, numbered(at, at + 25)) for at in range(0, 100, 25)]
    assert not end(options, 0, *again), "another number of tasks"
    assert end(options, 1, task(options, numbered(100, 130)))
    assert sorted(committed_values(servers, "once", 3)) == sorted(numbered(0, 130))


def test_rows_of_a_key_keep_their_order_and_go_where_kafka_puts_them(servers: str) -> None:
    create(servers, "keyed", 3)
    create(servers, "plain", 3)
    keys: list[bytes | None] = [b"k%d" % (number % 7) for number in range(200)]
    small = {"kafka.batch.size": "200", "kafka.compression.type": "zstd"}
    options = options_of(servers, topic="keyed", **small)
    staged = task(options, numbered(0, 200), keys)
    assert len(staged) > 20
    assert end(options, 0, staged)
    for partition in range(3):
        name = TopicPartition("keyed", partition)
        with SyncConsumer(servers) as consumer:
            consumer.assign([name])
            consumer.seek(name, 0)
            found = []
            while len(found) < consumer.end_offsets([name])[name] - 1:  # and a marker
                found += [(record.key, int(record.value or b"")) for record in consumer.poll(1000)]
        for key in {key for key, _ in found}:
            numbers = [number for other, number in found if other == key]
            assert numbers == sorted(numbers)


def test_rows_with_headers_and_of_several_topics_keep_their_order(servers: str) -> None:
    """Those without headers go as columns, the others record by record."""
    for topic in ("of-a", "of-b"):
        create(servers, topic, 2)
    options = options_of(servers, topic="unused", **{"kafka.batch.size": "300"})._replace(
        topic=None
    )
    names = ["value", "topic", "partition", "headers"]
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    schema = StructType()
    for name in names:
        schema = schema.add(name, BinaryType())  # only their places matter here
    parts = []
    for first, cell in ((0, None), (90, [("h", b"1")]), (180, None)):
        some = range(first, first + 90)
        columns = [
            pa.array([b"%d" % number for number in some], pa.binary()),
            pa.array([f"of-{'ab'[number % 2]}" for number in some]),
            pa.array([1] * 90, pa.int32()),
            pa.array([cell] * 90, pa.list_(header)),
        ]
        parts.append(pa.RecordBatch.from_arrays(columns, names=names))
    staged: list[StagedBatch] = []
    for part in parts:  # a task each: of one they would be one table
        place = transactional_id_of(options, query_of(options))
        staged += asyncio.run(stage(options, Columns.of(schema), place, iter([part])))
    assert end(options, 0, staged)
    assert committed_values(servers, "of-a", 2) == numbered(0, 270)[::2]
    assert committed_values(servers, "of-b", 2) == numbered(0, 270)[1::2]


def test_what_is_committed_is_not_kept_in_the_staging_topic(servers: str) -> None:
    create(servers, "cleared")
    options = options_of(servers, topic="cleared")
    place = staging_topic(transactional_id_of(options, query_of(options)))
    for batch in range(9):
        end(options, batch, task(options, numbered(0, 10)))
    names = [TopicPartition(place, number) for number in range(8)]
    with SyncConsumer(servers) as consumer:
        assert consumer.beginning_offsets(names) == consumer.end_offsets(names)


def test_what_is_lost_of_the_staging_topic_commits_nothing(servers: str) -> None:
    create(servers, "lost")
    options = options_of(servers, topic="lost")
    staged = task(options, numbered(0, 10))
    moved = [staged[0]._replace(offset=staged[0].offset + 1)]
    with pytest.raises(StagingLost, match="has no batch at 1"):
        end(options, 0, moved)
    with pytest.raises(StagingLost, match="but 9 were staged"):
        end(options, 0, [staged[0]._replace(rows=9)])
    assert committed_values(servers, "lost", 1) == []
    assert end(options, 0, staged)
    assert committed_values(servers, "lost", 1) == numbered(0, 10)


def test_what_is_no_replay_is_refused(servers: str) -> None:
    create(servers, "refused")
    given = {"topic": "refused", "kafka.transactional.id": "shared"}
    options = options_of(servers, **given)
    with pytest.raises(NotExactlyOnce, match="exactlyOnceBegins=4"):
        end(options, 4, task(options, numbered(0, 10)))
    begins = options_of(servers, **given, exactlyOnceBegins="4")
    assert end(begins, 4, task(options, numbered(0, 10)))
    with pytest.raises(NotExactlyOnce, match="belongs to query of-refused"):
        end(options, 5, task(options, numbered(0, 10)), query="another")
    with pytest.raises(NotExactlyOnce, match="batch 4 is committed already"):
        end(options, 3, task(options, numbered(0, 10)))
    with pytest.raises(NotExactlyOnce, match="with 10 rows and now has 9"):
        end(options, 4, task(options, numbered(0, 9)))
    assert committed_values(servers, "refused", 1) == numbered(0, 10)


def test_a_commit_whose_answer_is_lost_is_found_by_the_replay() -> None:
    with behind_a_proxy() as proxy:
        options = options_of(proxy.servers, topic="in-doubt", **{"kafka.max.block.ms": "2000"})
        staged = task(options, numbered(0, 10))
        proxy.rule = lambda key: Fate.CUT if key == END_TXN.key else Fate.PASS
        with pytest.raises(BarnabasError):
            end(options, 0, staged)
        proxy.rule = lambda key: Fate.PASS
        assert not end(options, 0, task(options, numbered(0, 10)))
        assert sorted(committed_values(proxy.servers, "in-doubt", 1)) == sorted(numbered(0, 10))


def test_a_transaction_that_took_too_long_is_an_error_and_runs_again() -> None:
    """The broker aborts it; the replay finds no token and writes all of it."""
    config = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "100"}
    with behind_a_proxy(**config) as proxy:
        options = options_of(
            proxy.servers, topic="late", **{"kafka.transaction.timeout.ms": "1000"}
        )
        proxy.before_request = lambda key: time.sleep(3) if key == END_TXN.key else None
        with pytest.raises(ProducerFenced):
            end(options, 0, task(options, numbered(0, 10)))
        proxy.before_request = lambda key: None
        assert committed_values(proxy.servers, "late", 1) == []
        assert end(options, 0, task(options, numbered(0, 10)))
        assert committed_values(proxy.servers, "late", 1) == numbered(0, 10)


def test_a_timeout_that_the_broker_does_not_allow_says_so() -> None:
    with barnabas.Broker(config={"transaction.max.timeout.ms": "5000"}) as broker:
        options = options_of(broker.bootstrap_servers, topic="patient")
        staged = task(options, numbered(0, 10))
        with pytest.raises(ConfigError, match=r"kafka\.transaction\.timeout\.ms=900000"):
            end(options, 0, staged)
        given = {"kafka.transaction.timeout.ms": "5000"}
        assert end(options_of(broker.bootstrap_servers, topic="patient", **given), 0, staged)


def test_of_two_drivers_the_older_is_fenced() -> None:
    """The checkpoint was copied, or the old driver only seemed to be dead."""
    with behind_a_proxy() as proxy:
        options = options_of(proxy.servers, topic="two")
        older, younger = task(options, numbered(0, 10)), task(options, numbered(0, 10))
        is_held, failures = threading.Event(), []

        def hold_one(key: int) -> Fate:
            if key == TXN_OFFSET_COMMIT.key and not is_held.is_set():
                is_held.set()
                return Fate.HOLD
            return Fate.PASS

        def run_the_older() -> None:
            try:
                end(options, 0, older)
            except BarnabasError as error:
                failures.append(error)

        proxy.rule = hold_one
        thread = threading.Thread(target=run_the_older)
        thread.start()
        assert is_held.wait(30)
        assert end(options, 0, younger)
        proxy.may_go.set()
        thread.join(30)
        assert [type(failure) for failure in failures] == [ProducerFenced]
        assert committed_values(proxy.servers, "two", 1) == numbered(0, 10)


def test_a_batch_job_is_one_transaction(servers: str) -> None:
    create(servers, "job", 2)
    options = options_of(servers, topic="job")
    asyncio.run(commit_job(options, query_of(options), task(options, numbered(0, 20))))
    assert sorted(committed_values(servers, "job", 2)) == sorted(numbered(0, 20))
    with SyncAdmin(servers) as admin:
        assert (
            staging_topic(transactional_id_of(options, query_of(options)))
            not in admin.list_topics()
        )


def test_a_batch_job_that_failed_leaves_nothing(servers: str) -> None:
    create(servers, "failed")
    options = options_of(servers, topic="failed")
    staged_in = staging_topic(transactional_id_of(options, query_of(options)))
    task(options, numbered(0, 20))
    with SyncAdmin(servers) as admin:
        assert staged_in in admin.list_topics()
        asyncio.run(drop_staging_topic(options, staged_in))
        wait_until(lambda: staged_in not in admin.list_topics())
    assert committed_values(servers, "failed", 1) == []


def test_a_partition_that_is_not_there_is_named(servers: str) -> None:
    create(servers, "narrow")
    options = options_of(servers, topic="narrow")
    schema = StructType().add("value", BinaryType()).add("partition", IntegerType())
    row = pa.RecordBatch.from_arrays(
        [pa.array([b"v"], pa.binary()), pa.array([3], pa.int32())], names=["value", "partition"]
    )
    with pytest.raises(UnknownPartition, match=r"narrow.* has partitions 0 to 0, not 3"):
        asyncio.run(stage(options, Columns.of(schema), "narrow", iter([row])))
