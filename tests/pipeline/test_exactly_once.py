"""SP-3, DL-1: what tasks stage is in the topic once, whoever fails, retries or is replaced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.types import BinaryType, IntegerType, StructType

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.sync import SyncAdmin, SyncConsumer
from barnabas.errors import BarnabasError, ConfigError, ProducerFenced, TopicAlreadyExists
from barnabas.protocol.api import END_TXN, TXN_OFFSET_COMMIT
from barnabas.types import TopicPartition
from pyspark_barnabas.exactly_once import abort_job, commit_job, transactional_id_of
from pyspark_barnabas.rows import Columns
from pyspark_barnabas.stager import stage
from pyspark_barnabas.staging import StagingLost, staging_topic
from pyspark_barnabas.token import NotExactlyOnce
from tests.conformance.kafka_process import KafkaCluster
from tests.integration.answer_proxy import Fate, behind_a_proxy
from tests.integration.cluster_load import committed_values
from tests.integration.cluster_process import ClusterProcess
from tests.pipeline.micro_batches import end, options_of, query_of, task
from tests.pipeline.topics import numbered
from tests.raw_client import NO_TIDYING
from tests.waiting import wait_until


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
    cluster = ClusterProcess(tmp_path_factory.mktemp("kafka"), 1)
    kafka = KafkaCluster(cluster)
    try:
        cluster.zookeeper.start()
        kafka.start()
        yield cluster.bootstrap_servers
    finally:
        kafka.kill_all()
        cluster.kill_all()


def create(servers: str, topic: str, partitions: int = 1) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])


def is_made(servers: str, topic: str, partitions: int) -> bool:
    """Whether a topic is there again that was deleted just now: a Kafka takes its time."""
    try:
        create(servers, topic, partitions)
    except TopicAlreadyExists:
        return False
    return True


def test_sp_3_a_batch_is_there_once_however_often_it_runs(servers: str) -> None:
    """With other tasks, after tasks that failed or ran twice, after a commit nobody heard of."""
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
    with pytest.raises(StagingLost, match="not the 9 that were staged"):
        end(options, 0, [staged[0]._replace(rows=9)])
    assert committed_values(servers, "lost", 1) == []
    assert end(options, 0, staged)
    assert committed_values(servers, "lost", 1) == numbered(0, 10)


def test_staged_records_that_were_deleted_commit_nothing_and_run_again(servers: str) -> None:
    """By retention, by hand, and with their topic; the replay stages them anew."""
    create(servers, "deleted")
    options = options_of(servers, topic="deleted")
    name = staging_topic(transactional_id_of(options, query_of(options)))
    with SyncAdmin(servers) as admin:
        staged = task(options, numbered(0, 10))
        place = TopicPartition(name, staged[0].staging_partition)
        admin.delete_records({place: staged[0].offset + 10})
        with pytest.raises(StagingLost, match="was deleted"):
            end(options, 0, staged)
        assert end(options, 0, task(options, numbered(0, 10)))
        staged = task(options, numbered(10, 20))
        admin.delete_topics([name])
        wait_until(lambda: name not in admin.list_topics(), 30)
        # Brokers forget what a group has committed of a topic that is deleted.
        with pytest.raises(NotExactlyOnce, match="its staging topic was deleted"):
            end(options, 1, staged)
        begins = options_of(servers, topic="deleted", exactlyOnceBegins="1")
        with pytest.raises(StagingLost):
            end(begins, 1, staged)
        assert name not in admin.list_topics(), "not made by the driver that looked for it"
        assert end(begins, 1, task(options, numbered(10, 20)))
    assert committed_values(servers, "deleted", 1) == numbered(0, 20)


def test_ux_4_a_staging_topic_that_somebody_else_has_made(servers: str) -> None:
    create(servers, "taken")
    options = options_of(servers, topic="taken")
    name = staging_topic(transactional_id_of(options, query_of(options)))
    create(servers, name, 1)
    with pytest.raises(ConfigError, match="has 1 partitions"):
        task(options, numbered(0, 10))


def test_a_target_that_is_deleted_made_again_or_grows(servers: str) -> None:
    """Between staging and commit: nothing is committed, and the replay writes all of it."""
    create(servers, "target", 2)
    options = options_of(servers, topic="target", **{"kafka.max.block.ms": "3000"})
    staged = task(options, numbered(0, 10), [b"%d" % number for number in range(10)])
    with SyncAdmin(servers) as admin:
        admin.delete_topics(["target"])
        wait_until(lambda: is_made(servers, "target", 1), 30)
        with pytest.raises(BarnabasError):
            end(options, 0, staged)
        assert committed_values(servers, "target", 1) == []
        assert end(options, 0, task(options, numbered(0, 10)))
        staged = task(options, numbered(10, 20))
        admin.create_partitions("target", 3)
        assert end(options, 1, staged), "what was staged goes where it was to go"
        assert not end(options, 1, task(options, numbered(10, 20)))
    assert sorted(committed_values(servers, "target", 3)) == sorted(numbered(0, 20))


def test_sp_3_a_checkpoint_that_was_copied_to_a_second_cluster() -> None:
    """SP-3: it knows nothing of the query, or less than the first; neither is passed over."""
    with barnabas.Broker() as first, barnabas.Broker() as second:
        one, other = (options_of(each.bootstrap_servers, topic="t") for each in (first, second))
        for batch in range(2):
            assert end(one, batch, task(one, numbered(10 * batch, 10 * batch + 10)))
        with pytest.raises(NotExactlyOnce, match="nothing is known of"):
            end(other, 2, task(other, numbered(20, 30)))
        for batch in range(3):  # the query began there, too
            assert end(other, batch, task(other, numbered(0, 10)))
        for batch in range(2, 5):
            assert end(one, batch, task(one, numbered(10 * batch, 10 * batch + 10)))
        with pytest.raises(NotExactlyOnce, match="batch 5 comes after batch 2"):
            end(other, 5, task(other, numbered(50, 60)))
        with pytest.raises(NotExactlyOnce, match="batch 2 is committed already"):
            end(other, 1, task(other, numbered(10, 20)))
        assert not end(one, 4, task(one, numbered(40, 50)))
        assert committed_values(first.bootstrap_servers, "t", 1) == numbered(0, 50)
        assert len(committed_values(second.bootstrap_servers, "t", 1)) == 30


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
        asyncio.run(abort_job(options, query_of(options)))
        wait_until(lambda: staged_in not in admin.list_topics(), 30)
    assert committed_values(servers, "failed", 1) == []


def test_a_partition_that_is_not_there_is_named(servers: str) -> None:
    create(servers, "narrow")
    options = options_of(servers, topic="narrow")
    schema = StructType().add("value", BinaryType()).add("partition", IntegerType())
    row = pa.RecordBatch.from_arrays(
        [pa.array([b"v"], pa.binary()), pa.array([3], pa.int32())], names=["value", "partition"]
    )
    with pytest.raises(ConfigError, match="partition 3 of narrow, which has 1"):
        asyncio.run(stage(options, Columns.of(schema), "narrow", iter([row])))
