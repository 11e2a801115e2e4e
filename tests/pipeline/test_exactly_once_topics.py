"""SP-3: topics that go or change between the tasks of a micro-batch and its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import barnabas
from barnabas.client import SyncAdmin, TopicPartition
from barnabas.client.admin.admin import NewTopic
from barnabas.errors import BarnabasError, ConfigError, UnknownTopicOrPartition
from pyspark_barnabas.exactly_once import transactional_id_of
from pyspark_barnabas.staging import StagingLost, staging_topic
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.cluster_load import committed_values
from tests.kit.raw_client import NO_TIDYING
from tests.kit.waiting import wait_until
from tests.pipeline.micro_batches import end, options_of, query_of, task

PAST_32_BITS = 2**31 + 5


@pytest.fixture
def admin() -> Iterator[SyncAdmin]:
    """Of a broker with the topic `t`."""
    with (
        barnabas.Broker(config=NO_TIDYING) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
    ):
        admin.create_topics([NewTopic("t", 1)])
        yield admin


@pytest.fixture
def servers(admin: SyncAdmin) -> str:
    (broker,) = admin.describe_cluster().brokers
    return f"{broker.host}:{broker.port}"


def staging_of(servers: str) -> str:
    options = options_of(servers, topic="t")
    return staging_topic(transactional_id_of(options, query_of(options)))


def delete(admin: SyncAdmin, topic: str) -> None:
    admin.delete_topics([topic])
    wait_until(lambda: topic not in admin.list_topics())


def delete_its_records(admin: SyncAdmin, topic: str) -> None:
    admin.delete_records({TopicPartition(topic, number): -1 for number in range(8)})


@pytest.mark.parametrize(("lose", "batch"), [(delete, 0), (delete_its_records, 1)])
def test_sp_3_a_batch_whose_staged_rows_are_gone_runs_again(
    admin: SyncAdmin, servers: str, lose: Callable[[SyncAdmin, str], None], batch: int
) -> None:
    """As the query's restart does it: nothing of it is there before, all of it after."""
    options = options_of(servers, topic="t")
    for before in range(batch):
        assert end(options, before, task(options, numbered(10 * before, 10 * before + 10)))
    values = numbered(10 * batch, 10 * batch + 10)
    staged = task(options, values)
    lose(admin, staging_of(servers))
    for _ in range(2):
        with pytest.raises(StagingLost, match=r"deleted, or have expired"):
            end(options, batch, staged)
    assert committed_values(servers, "t", 1) == numbered(0, 10 * batch)
    assert end(options, batch, task(options, values))
    assert committed_values(servers, "t", 1) == numbered(0, 10 * batch + 10)


def test_sp_3_progress_goes_with_the_staging_topic_and_is_missed(
    admin: SyncAdmin, servers: str
) -> None:
    """The brokers forget the offsets of a topic that is deleted."""
    options = options_of(servers, topic="t")
    assert end(options, 0, task(options, numbered(0, 10)))
    delete(admin, staging_of(servers))
    staged = task(options, numbered(10, 20))
    with pytest.raises(NotExactlyOnce, match="its staging topic was deleted"):
        end(options, 1, staged)
    assert committed_values(servers, "t", 1) == numbered(0, 10)
    begins = options_of(servers, topic="t", exactlyOnceBegins="1")
    assert end(begins, 1, staged)
    assert committed_values(servers, "t", 1) == numbered(0, 20)


def test_a_staging_topic_of_somebody_else_is_named(admin: SyncAdmin, servers: str) -> None:
    topic = staging_of(servers)
    admin.create_topics([NewTopic(topic, 1)])
    options = options_of(servers, topic="t")
    with pytest.raises(ConfigError, match=rf"{topic} has 1 partition,.*Delete it"):
        task(options, numbered(0, 10))
    delete(admin, topic)
    assert end(options, 0, task(options, numbered(0, 10)))


def test_sp_3_a_target_that_is_deleted_is_an_error_and_the_batch_runs_again(
    admin: SyncAdmin, servers: str
) -> None:
    """The driver does not make it, since it knows neither its partitions nor its settings."""
    options = options_of(servers, topic="t")
    staged = task(options, numbered(0, 10))
    delete(admin, "t")
    with pytest.raises(UnknownTopicOrPartition):
        end(options, 0, staged)
    assert "t" not in admin.list_topics()
    admin.create_topics([NewTopic("t", 2)])
    assert end(options, 0, task(options, numbered(0, 10)))
    assert sorted(committed_values(servers, "t", 2)) == numbered(0, 10)


def test_sp_3_a_target_that_is_made_again_gets_the_batch_or_an_error(
    admin: SyncAdmin, servers: str
) -> None:
    """Under the same name it is the same topic to the driver; with fewer partitions it says so."""
    delete(admin, "t")
    admin.create_topics([NewTopic("t", 2)])
    options = options_of(servers, topic="t")
    keys: list[bytes | None] = [b"k%d" % number for number in range(10)]
    staged = task(options, numbered(0, 10), keys)
    assert {each.target.partition for each in staged} == {0, 1}
    delete(admin, "t")
    admin.create_topics([NewTopic("t", 1)])
    with pytest.raises(BarnabasError, match="t"):
        end(options, 0, staged)
    assert committed_values(servers, "t", 1) == []
    assert end(options, 0, task(options, numbered(0, 10), keys))
    assert sorted(committed_values(servers, "t", 1)) == numbered(0, 10)


def test_sp_3_a_target_gets_partitions_between_two_attempts(admin: SyncAdmin, servers: str) -> None:
    """The keys of a replay lie elsewhere; what was committed first counts."""
    options = options_of(servers, topic="t")
    keys: list[bytes | None] = [b"k%d" % number for number in range(20)]
    staged = task(options, numbered(0, 20), keys)
    admin.create_partitions("t", 3)
    assert end(options, 0, staged)
    assert not end(options, 0, task(options, numbered(0, 20), keys))
    assert committed_values(servers, "t", 1) == numbered(0, 20)
    assert end(options, 1, task(options, numbered(20, 40), keys))
    assert sorted(map(int, committed_values(servers, "t", 3))) == list(range(40))


def test_sp_3_batch_numbers_beyond_32_bits(servers: str) -> None:
    """Spark counts with 64."""
    options = options_of(servers, topic="t", exactlyOnceBegins=str(PAST_32_BITS))
    for number in range(2):
        batch, values = PAST_32_BITS + number, numbered(10 * number, 10 * number + 10)
        assert end(options, batch, task(options, values))
        assert not end(options, batch, task(options, values))
    assert committed_values(servers, "t", 1) == numbered(0, 20)
