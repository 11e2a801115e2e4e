"""A broker's metrics in the format of Prometheus: how they are written, and what they say of a
broker alone, of a leader, of a follower, of the controller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Broker, Cluster
from barnabas.broker.server import Server
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import IsrAnswer, LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.controller.topics import NewTopic
from barnabas.errors import InvalidUpdateVersion
from barnabas.metrics import Family, Registry, Sample
from barnabas.net.metrics_page import page, text
from barnabas.types import TopicPartition
from tests.kit.broker.following import NAME, led, run, running, topic
from tests.kit.broker.loops import inside, replicas_of
from tests.kit.broker.metric_pages import page_of, samples
from tests.kit.broker.replicated import Follower, Shared, fill, parts_of
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import PATIENCE_S, RawClient, batch
from tests.kit.waiting import until, wait_until

REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
UNCLEAN = "kafka_controller_controllerstats_uncleanleaderelections_total"
LAG = "kafka_server_fetcherlagmetrics_consumerlag"

KAFKAS = {
    "kafka.server:type=ReplicaManager,name=": (
        "UnderReplicatedPartitions", "UnderMinIsrPartitionCount", "OfflineReplicaCount",
        "PartitionCount", "LeaderCount",
        "IsrShrinksPerSec", "IsrExpandsPerSec", "FailedIsrUpdatesPerSec",
    ),
    "kafka.controller:type=KafkaController,name=": (
        "ActiveControllerCount", "OfflinePartitionsCount", "PreferredReplicaImbalanceCount",
        "GlobalTopicCount", "GlobalPartitionCount", "ActiveBrokerCount", "ControllerState",
    ),
    "kafka.server:type=KafkaServer,name=": ("BrokerState",),
    "kafka.cluster:type=Partition,name=": ("ReplicasCount",),
    "kafka.controller:type=ControllerStats,name=": ("UncleanLeaderElectionsPerSec",),
}  # fmt: skip
"""MBeans of Kafka 3.9."""

PREFIXES = (REPLICAS, CONTROLLER, UNCLEAN, LAG)


def samples_of(server: Server) -> dict[str, float]:
    """On the broker's own loop: those that this page is about."""
    found = samples(page_of(server.metrics))
    return {name: found[name] for name in found if name.startswith(PREFIXES)}


def samples_alone(broker: Broker) -> dict[str, float]:
    server = broker.server
    assert server is not None
    return inside(broker, lambda: samples_of(server))


# --- the format ----------------------------------------------------------------------------------


def test_numbers_are_written_as_prometheus_text() -> None:
    """RE-14: numbers as the JMX exporter writes them, with a point."""
    lag = (("topic", "t"), ("partition", "0"))
    families = [
        Family("queue", "gauge", "What waits", [Sample(3)]),
        Family("errors_total", "counter", "What failed", [Sample(True)]),
        Family("lag", "gauge", "How far behind", [Sample(2.5, lag), Sample(1e15)]),
        Family(
            "ms",
            "summary",
            "How long",
            [Sample(2.5, (("quantile", "0.5"),)), Sample(9, (), "_count")],
        ),
        Family("nothing", "gauge", "There is none", []),
    ]
    assert text(families) == (
        "# HELP queue What waits\n"
        "# TYPE queue gauge\n"
        "queue 3.0\n"
        "# HELP errors_total What failed\n"
        "# TYPE errors_total counter\n"
        "errors_total 1.0\n"
        "# HELP lag How far behind\n"
        "# TYPE lag gauge\n"
        'lag{topic="t",partition="0"} 2.5\n'
        "lag 1000000000000000.0\n"
        "# HELP ms How long\n"
        "# TYPE ms summary\n"
        'ms{quantile="0.5"} 2.5\n'
        "ms_count 9.0\n"
        "# HELP nothing There is none\n"
        "# TYPE nothing gauge\n"
    )


def test_what_would_end_a_line_or_a_label_is_escaped() -> None:
    odd = (("path", 'C:\\"new"\nline'),)
    printed = text([Family("m", "gauge", 'a\\b\n"c"', [Sample(0, odd)])])
    assert printed == (
        '# HELP m a\\\\b\\n"c"\n# TYPE m gauge\nm{path="C:\\\\\\"new\\"\\nline"} 0.0\n'
    )


def test_a_long_page_gives_way_and_a_family_that_fails_costs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """IN-3: ten thousand partitions must not hold up a request, nor a mistake hide the rest."""
    registry = Registry()
    turns = 0

    def fail() -> list[Family]:
        raise KeyError("a mistake")

    registry.declare(lambda: [Family("long", "gauge", "Many", [Sample(1)] * 5_000)])
    registry.declare(fail)
    registry.gauge("last", "The last one", lambda: 1)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scene() -> bytes:
        other = asyncio.ensure_future(others())
        made = await page(registry)
        other.cancel()
        return made

    made = asyncio.run(scene()).decode()
    assert turns >= 10
    assert made.count("\nlong 1.0") == 5_000
    assert made.endswith("# HELP last The last one\n# TYPE last gauge\nlast 1.0\n")
    assert "a mistake" in caplog.text


# --- names ---------------------------------------------------------------------------------------


def _exported(bean: str) -> tuple[str, str]:
    """What rules of the JMX exporter's kafka-2_0_0.yml make of an MBean: name and type.

    pattern: kafka.(\\w+)<type=(.+), name=(.+)PerSec\\w*><>Count    name: kafka_$1_$2_$3_total
    pattern: kafka.(\\w+)<type=(.+), name=(.+)><>Value             name: kafka_$1_$2_$3
    and its summaries of histograms
    lowercaseOutputName: true
    """
    rate = re.fullmatch(r"kafka\.(\w+):type=(.+),name=(.+)PerSec\w*", bean)
    if rate is not None:
        return "kafka_{}_{}_{}_total".format(*rate.groups()).lower(), "counter"
    value = re.fullmatch(r"kafka\.(\w+):type=(.+),name=(.+)", bean)
    assert value is not None
    if bean.endswith("TimeMs"):  # a histogram, of which the rules make what a summary is
        return "kafka_{}_{}_{}".format(*value.groups()).lower(), "summary"
    return "kafka_{}_{}_{}".format(*value.groups()).lower(), "gauge"


def test_the_names_are_those_that_the_jmx_exporter_gives_to_kafkas(node: Broker) -> None:
    """RE-14: and the MBean is in the help, for who looks for that."""
    server = node.server
    assert server is not None
    made = inside(node, lambda: page_of(server.metrics))
    helps = re.findall(r"^# HELP (\w+) .+ \((kafka\S+)\)$", made, re.MULTILINE)
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", made, re.MULTILINE))
    assert len(types) == made.count("# TYPE "), "each name is declared once"
    beans = {f"{prefix}{name}" for prefix, names in KAFKAS.items() for name in names}
    assert beans <= {bean for _, bean in helps}
    for name, bean in helps:
        assert (name, types[name]) == _exported(bean)


# --- a broker alone ------------------------------------------------------------------------------


def test_a_broker_alone_lacks_nothing() -> None:
    """RE-14"""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        before = samples_alone(broker)
        create(client, "t", 3)
        create(client, "u", 2)
        after = samples_alone(broker)
    assert {name: value for name, value in before.items() if value} == {
        f"{CONTROLLER}activecontrollercount": 1,
        f"{CONTROLLER}activebrokercount": 1,
    }
    assert {name: value for name, value in after.items() if value} == {
        f"{REPLICAS}partitioncount": 5,
        f"{REPLICAS}leadercount": 5,
        f"{CONTROLLER}activecontrollercount": 1,
        f"{CONTROLLER}activebrokercount": 1,
        f"{CONTROLLER}globaltopiccount": 2,
        f"{CONTROLLER}globalpartitioncount": 5,
    }


def test_a_log_directory_that_failed(tmp_path: Path) -> None:
    """RE-14: what is out of reach on a disk is out of reach for everybody, at one replica."""
    directories = [tmp_path / "a", tmp_path / "b"]
    config = {"log.dirs": ",".join(map(str, directories))}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 6)
        replicas = replicas_of(broker)
        failed = OSError("gone")
        inside(
            broker,
            lambda: parts_of(broker).partitions.failures.on_error(directories[1], failed),
        )
        lost = len(replicas.offline)
        assert 0 < lost < 6
        offline = f"{CONTROLLER}offlinepartitionscount"
        wait_until(lambda: samples_alone(broker)[offline] == lost)
        now = samples_alone(broker)
        assert now[f"{REPLICAS}offlinereplicacount"] == lost
        assert now[f"{REPLICAS}partitioncount"] == 6
        assert now[f"{REPLICAS}leadercount"] == 6 - lost


# --- a leader ------------------------------------------------------------------------------------


@pytest.fixture
def shared(node: Broker, client: RawClient, request: pytest.FixtureRequest) -> Iterator[Shared]:
    """A partition that broker 0 leads and broker 1 follows; led no more when the test is over."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    create(client, name)
    found = Shared(node, name, topic_id_of(client, name))
    found.change_role()
    yield found
    found.change_role(leader=1)


def _of_isrs(broker: Broker) -> tuple[float, float]:
    now = samples_alone(broker)
    return now[f"{REPLICAS}underreplicatedpartitions"], now[f"{REPLICAS}underminisrpartitioncount"]


def test_partitions_that_lack_replicas_in_sync(node: Broker, shared: Shared) -> None:
    """RE-14: counted by their leaders alone."""
    assert _of_isrs(node) == (0, 0)
    shared.change_role(isr=(0,), is_new_epoch=False)
    assert _of_isrs(node) == (1, 0)
    topic, minimum = shared.name.topic, {"min.insync.replicas": "2"}
    inside(node, lambda: replicas_of(node).update_topic_config(topic, minimum))
    assert _of_isrs(node) == (1, 1)
    shared.change_role(leader=1, isr=(1,))
    assert _of_isrs(node) == (0, 0)
    shared.change_role(isr=(0,))
    assert _of_isrs(node) == (1, 1)
    shared.change_role()
    assert _of_isrs(node) == (0, 0)


def test_in_3_the_number_of_replicas_of_what_is_led_here(node: Broker, shared: Shared) -> None:
    """IN-3: boards list a cluster's topics by it."""
    server = node.server
    assert server is not None
    topic, partition = shared.name
    key = f'kafka_cluster_partition_replicascount{{topic="{topic}",partition="{partition}"}}'
    assert samples(inside(node, lambda: page_of(server.metrics)))[key] == 2
    shared.change_role(leader=1)
    assert key not in samples(inside(node, lambda: page_of(server.metrics)))


def test_a_replica_that_is_being_made_is_not_missed(node: Broker, shared: Shared) -> None:
    """RE-14, RE-13: a partition that is moved has all that it is to have, as in Kafka."""

    def moved(isr: tuple[int, ...], adding: tuple[int, ...]) -> None:
        shared.partition_epoch += 1
        image = PartitionImage(
            0, shared.leader_epoch, isr, (0, 1, 2), shared.partition_epoch, 1, adding=adding
        )
        state = PartitionState(shared.name, shared.topic_id, image, {}, is_new=False)
        request = LeaderAndIsr(0, 1, (state,))
        inside(node, lambda: parts_of(node).partitions.role_changes.apply_leader_and_isr(request))

    moved((0, 1), adding=(2,))
    assert _of_isrs(node) == (0, 0)
    moved((0,), adding=(2,))
    assert _of_isrs(node) == (1, 0)
    moved((0, 1), adding=())
    assert _of_isrs(node) == (1, 0)


def _of_updates(broker: Broker) -> tuple[float, float, float]:
    now = samples_alone(broker)
    names = ("isrshrinks_total", "isrexpands_total", "failedisrupdates_total")
    shrinks, expands, failed = (now[f"{REPLICAS}{name}"] for name in names)
    return shrinks, expands, failed


def test_what_leaders_had_agreed_to_and_refused(
    node: Broker, client: RawClient, shared: Shared
) -> None:
    """RE-14, RE-8: counted when the controller has answered; what is out of date counts nothing."""
    shrinks, expands, failed = _of_updates(node)
    fill(client, shared.name.topic, batch(b"a"))
    later_ms = SystemClock().monotonic_ms() + 31_000
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    assert len(shared.proposals) == 1
    assert _of_updates(node) == (shrinks, expands, failed)

    shared.agree()
    assert _of_updates(node) == (shrinks + 1, expands, failed)
    refusal = IsrAnswer(InvalidUpdateVersion.code)

    with RawClient(node.bootstrap_servers) as raw:
        Follower(raw, shared).fetch(1)
    shared.agree()
    assert shared.replica.partition.isr == (0, 1)
    assert _of_updates(node) == (shrinks + 1, expands + 1, failed)

    fill(client, shared.name.topic, batch(b"b"))
    inside(node, lambda: replicas_of(node).check_isr(later_ms + 31_000))
    shared.answer(refusal)
    assert _of_updates(node) == (shrinks + 1, expands + 1, failed + 1)


# --- a follower ----------------------------------------------------------------------------------


def test_the_lag_of_a_follower_is_reported_by_partition(tmp_path: Path) -> None:
    """RE-14: under the name of Kafka's thread, with the fetcher's number and the leader's id."""

    async def test() -> None:
        settings = {"replica.fetch.max.bytes": "1000", "replica.fetch.response.max.bytes": "1000"}
        async with running(tmp_path, 1) as one, running(tmp_path, 2, settings) as two:
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            for _ in range(300):
                one.append(NAME, b"x" * 800)
            two.hears(whole, one, two)
            key = f'{LAG}{{clientId="ReplicaFetcherThread-0-1",topic="t",partition="0"}}'

            def lag() -> float:
                found = samples_of(two.server)
                assert [name for name in found if name.startswith(LAG)] == [key]
                # Before the first answer it knows of nothing that it lacks.
                assert found[key] in (0, 300 - two.end(NAME))
                return found[key]

            await until(lambda: lag() > 0)
            await until(lambda: two.end(NAME) == 300 and lag() == 0)
            two.fetchers.on_unfollowing(two.replica(NAME))
            assert not [name for name in samples_of(two.server) if name.startswith(LAG)]

    run(test)


# --- the controller, and all of them -------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the first controller."""
    config = {"controlled.shutdown.retry.backoff.ms": "50"}
    with Cluster(3, config=config) as made:
        yield made


def _play(cluster: Cluster, scene: Callable[[], Awaitable[None]]) -> None:
    """On the loop of the brokers, within bounds."""
    cluster.thread.run(asyncio.wait_for(scene(), 2 * PATIENCE_S))


def _total(cluster: Cluster, name: str) -> float:
    return sum(samples_of(server)[name] for server in cluster.servers)


def test_what_only_the_controller_knows(cluster: Cluster) -> None:
    """RE-11, RE-14: offline partitions and unclean elections; 0 on all others."""
    moved = TopicPartition("t", 0)

    async def begin() -> None:
        assignment = {0: [2, 3], 1: [3, 1]}
        await cluster.server(1).node.controller.create_topic(NewTopic("t", assignment=assignment))
        for server in cluster.servers:
            await until(lambda server=server: "t" in server.node.image.topics)  # type: ignore[misc]
        await until(lambda: samples_of(cluster.server(2))[f"{REPLICAS}leadercount"] == 1)
        await until(lambda: samples_of(cluster.server(3))[f"{REPLICAS}partitioncount"] == 2)
        assert _total(cluster, f"{CONTROLLER}activecontrollercount") == 1
        for name, at_all, here in (
            (f"{CONTROLLER}globalpartitioncount", 2, 2),
            (f"{CONTROLLER}activebrokercount", 3, 3),
            (f"{CONTROLLER}offlinepartitionscount", 0, 0),
            (f"{REPLICAS}partitioncount", 4, 1),
            (f"{REPLICAS}leadercount", 2, 0),
            (f"{REPLICAS}underreplicatedpartitions", 0, 0),
        ):
            assert (name, _total(cluster, name)) == (name, at_all)
            assert (name, samples_of(cluster.server(1))[name]) == (name, here)

    async def one_is_away() -> None:
        await until(lambda: _total(cluster, f"{REPLICAS}underreplicatedpartitions") == 2)
        assert samples_of(cluster.server(1))[f"{REPLICAS}underreplicatedpartitions"] == 1

    async def two_are_away() -> None:
        await until(
            lambda: samples_of(cluster.server(1))[f"{CONTROLLER}offlinepartitionscount"] == 1
        )

    async def elect() -> None:
        node = cluster.server(1).node
        assert samples_of(cluster.server(1))[UNCLEAN] == 0
        await until(lambda: 3 in node.controller.image.brokers)
        outcomes = await node.controller.elect_leaders([moved], unclean=True)
        assert outcomes == {moved: None}
        now = samples_of(cluster.server(1))
        assert (now[UNCLEAN], now[f"{CONTROLLER}offlinepartitionscount"]) == (1, 0)
        assert samples_of(cluster.server(3))[UNCLEAN] == 0
        # Other defaults for all topics: the controller elects again, and goes on counting.
        node.dynamic_config.apply(node.config.with_dynamic({}, {"min.insync.replicas": "2"}))
        await node.controller.create_topic(NewTopic("u", assignment={0: [1]}))
        now = samples_of(cluster.server(1))
        assert (now[UNCLEAN], now[f"{CONTROLLER}globalpartitioncount"]) == (1, 3)

    _play(cluster, begin)
    cluster.stop_broker(3)
    _play(cluster, one_is_away)
    cluster.stop_broker(2)
    _play(cluster, two_are_away)
    cluster.start_broker(3)
    _play(cluster, elect)
