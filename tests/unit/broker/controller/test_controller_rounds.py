"""What comes to the controller beside creation and deletion: growth, lost directories, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import NO_LEADER
from barnabas.cluster.layout import TopicNode
from barnabas.cluster.store import Create, Operation, Set
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaError,
    PolicyViolation,
    ReassignmentInProgress,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import delete_topic
from tests.kit.broker.controller_host import BROKER, Host, run, runner_of


class CountingStore(EmbeddedStore):
    """Remembers what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[list[Operation]] = []

    async def commit(self, operations):  # type: ignore[no-untyped-def]
        self.commits.append(list(operations))
        return await super().commit(operations)


# --- growth ----------------------------------------------------------------------------------


def test_a_topic_grows_and_the_rest_of_it_stays(caplog: pytest.LogCaptureFixture) -> None:
    """TP-5: new partitions are led when the call returns; a warning is logged about keys."""

    async def scenario(host: Host) -> None:
        before = await host.runner.create_topic(NewTopic("t", partitions=2))
        host.received.clear()
        grown = await host.runner.create_partitions("t", 5)
        assert [type(request) for request in host.received] == [LeaderAndIsr, UpdateMetadata]
        leader_and_isr = host.received[0]
        assert isinstance(leader_and_isr, LeaderAndIsr)
        assert [each.topic_partition.partition for each in leader_and_isr.partitions] == [2, 3, 4]
        assert all(each.is_new for each in leader_and_isr.partitions)
        assert host.image.topics["t"] == grown
        assert grown.topic_id == before.topic_id
        assert {n: grown.partitions[n] for n in before.partitions} == before.partitions
        assert host.hosted == {TopicPartition("t", n): 0 for n in range(5)}
        node = await host.store.read("/brokers/topics/t")
        assert node is not None and node.version == 1
        assert layout.decode_topic("t", node.data) == TopicNode(
            before.topic_id, dict.fromkeys(range(5), (0,))
        )
        assert (
            "topic t now has 5 partitions (previously 2): a key may map to a different"
            in caplog.text
        )
        await delete_topic(host.runner, "t")
        assert not host.hosted
        assert not [path for path in host.paths() if "topics/t" in path]

    run(scenario)


@pytest.mark.parametrize(
    ("topic", "total", "assignment", "error"),
    [
        ("t", 2, None, InvalidPartitions),
        ("t", 1, None, InvalidPartitions),
        ("t", 0, None, InvalidPartitions),
        ("t", -1, None, InvalidPartitions),
        ("none", 3, None, UnknownTopicOrPartition),
        ("t", 20_000, None, PolicyViolation),
        ("t", 3, [[5]], InvalidReplicaAssignment),
        ("t", 3, [[0, 0]], InvalidReplicaAssignment),
        ("t", 3, [[]], InvalidReplicaAssignment),
        ("t", 3, [], InvalidReplicaAssignment),
        ("t", 3, [[0], [0]], InvalidReplicaAssignment),
        ("going", 3, None, InvalidTopic),
        ("moving", 3, None, ReassignmentInProgress),
        ("wide", 3, None, InvalidReplicationFactor),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_growth_that_cannot_be(
    topic: str,
    total: int,
    assignment: list[list[int]] | None,
    error: type[KafkaError],
    validate_only: bool,
) -> None:
    """TP-5: refused with Kafka's error, and nothing is written."""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t", partitions=2))
        moving = TopicNode(b"\1" * 16, {0: (0, 1)}, adding={0: (1,)})
        await host.store.commit(
            [
                Create("/brokers/topics/moving", layout.encode_topic_node(moving)),
                Create("/brokers/topics/wide", layout.encode_topic(b"\2" * 16, {0: [0, 1]})),
            ]
        )
        # A deletion that is not carried out, as when a replica cannot be reached.
        await host.runner.create_topic(NewTopic("going"))
        host.lost = {TopicPartition("going", 0)}
        await host.runner.replicas_offline([*host.lost])
        with pytest.raises(RequestTimedOut):
            await delete_topic(host.runner, "going")
        before = {path: node.data for path, node in host.store.tree.nodes.items()}
        with pytest.raises(error):
            await host.runner.create_partitions(
                topic, total, assignment, validate_only=validate_only
            )
        assert {path: node.data for path, node in host.store.tree.nodes.items()} == before

    run(scenario)


def test_validation_of_growth_says_where_it_would_be() -> None:
    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t"))
        before = host.paths()
        shown = await host.runner.create_partitions("t", 3, [[0], [0]], validate_only=True)
        assert [each.replicas for each in shown.partitions.values()] == [(0,), (0,), (0,)]
        assert host.paths() == before
        assert len(host.image.topics["t"].partitions) == 1

    run(scenario)


def test_one_of_several_who_enlarge_a_topic_succeeds(tmp_path: Path) -> None:
    """TP-5: to the same size only one; to different sizes in any order, each sees the truth."""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t"))
        outcomes = await asyncio.gather(
            *(host.runner.create_partitions("t", 4) for _ in range(5)), return_exceptions=True
        )
        assert sum(isinstance(each, InvalidPartitions) for each in outcomes) == 4
        await asyncio.gather(
            *(host.runner.create_partitions("t", n) for n in (9, 7, 5, 6)), return_exceptions=True
        )
        assert sorted(host.image.topics["t"].partitions) == list(range(9))
        assert host.hosted == {TopicPartition("t", n): 0 for n in range(9)}

    run(scenario, lambda: EmbeddedStore.open(tmp_path))


def test_growth_written_by_others_is_seen_too() -> None:
    async def scenario(host: Host) -> None:
        topic = await host.runner.create_topic(NewTopic("t"))
        for total in (2, 4):  # the watch is set again
            data = layout.encode_topic(topic.topic_id, {n: [0] for n in range(total)})
            await host.store.commit([Set("/brokers/topics/t", data)])
            for _ in range(50):
                if len(host.hosted) == total:
                    break
                await asyncio.sleep(0.01)
            assert host.hosted == {TopicPartition("t", n): 0 for n in range(total)}

    run(scenario)


def test_a_crash_in_the_middle_of_growth_is_taken_up(tmp_path: Path) -> None:
    """The topic's node is written, the new partitions have no state yet."""

    async def before(host: Host) -> None:
        topic = await host.runner.create_topic(NewTopic("t"))
        await host.runner.stop()
        data = layout.encode_topic(topic.topic_id, {0: [0], 1: [0]})
        await host.store.commit([Set("/brokers/topics/t", data)])

    async def after(host: Host) -> None:
        assert host.hosted == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 0}

    run(before, lambda: EmbeddedStore.open(tmp_path))
    run(after, lambda: EmbeddedStore.open(tmp_path))


# --- many at once ----------------------------------------------------------------------------


def test_all_topics_of_a_request_are_one_commit() -> None:
    """And one more that gives them their leaders; each gets its own answer."""

    async def scenario() -> None:
        store = CountingStore()
        host = Host(store)
        await host.runner.start(BROKER)
        await host.runner.create_topic(NewTopic("there"))
        store.commits.clear()
        wanted = [NewTopic(f"t{n}", configs={"retention.ms": str(n)}) for n in range(50)]
        outcomes = await host.runner.create_topics(
            [*wanted, NewTopic("there"), NewTopic("a.b"), NewTopic("a_b")]
        )
        assert len(store.commits) == 2
        assert [getattr(each, "name", None) for each in outcomes[:50]] == [t.name for t in wanted]
        assert isinstance(outcomes[50], TopicAlreadyExists)
        assert getattr(outcomes[51], "name", None) == "a.b"
        assert isinstance(outcomes[52], InvalidTopic), "it collides with the one before it"
        assert host.image.topics["t7"].config == {"retention.ms": "7"}
        store.commits.clear()
        failures = await host.runner.delete_topics([*(t.name for t in wanted), "no-such-topic"])
        assert len(store.commits) == 3  # the requests, no leaders, their nodes are removed
        assert failures[:50] == [None] * 50
        assert isinstance(failures[50], UnknownTopicOrPartition)
        await host.runner.stop()
        await store.close()

    asyncio.run(scenario())


def test_if_another_was_faster_the_rest_is_made_all_the_same(tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        names = [f"t{n}" for n in range(10)]
        first, second = await asyncio.gather(
            host.runner.create_topics([NewTopic(name) for name in names[:6]]),
            host.runner.create_topics([NewTopic(name) for name in names[4:]]),
        )
        assert not any(isinstance(each, KafkaError) for each in first)
        assert [isinstance(each, TopicAlreadyExists) for each in second] == [True] * 2 + [False] * 4
        assert sorted(host.image.topics) == names
        outcomes = await asyncio.gather(
            host.runner.delete_topics(names[:6]), host.runner.delete_topics(names[4:])
        )
        assert all(error is None for each in outcomes for error in each)
        assert not host.image.topics

    run(scenario, lambda: EmbeddedStore.open(tmp_path))


# --- directories that fail -------------------------------------------------------------------


def test_a_partition_whose_only_replica_is_lost_has_no_leader(tmp_path: Path) -> None:
    """The ISR is kept, the epoch rises; the next start, with the disk repaired, leads it again."""
    lost = [TopicPartition("t", 1), TopicPartition("u", 0)]

    async def before(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t", partitions=2))
        await host.runner.create_topic(NewTopic("u"))
        host.received.clear()
        host.lost = {*lost}
        await host.runner.replicas_offline([*lost, TopicPartition("gone", 3)])
        assert [type(request) for request in host.received] == [LeaderAndIsr, UpdateMetadata]
        for name in lost:
            partition = host.image.topics[name.topic].partitions[name.partition]
            assert (partition.leader, partition.leader_epoch) == (NO_LEADER, 1)
            assert (partition.isr, partition.offline_replicas) == ((0,), (0,))
            node = await host.store.read(layout.state_path(*name))
            assert node is not None and node.version == 1
            assert layout.decode_state(*name, node.data).leader == NO_LEADER
        kept = host.image.topics["t"].partitions[0]
        assert (kept.leader, kept.leader_epoch, kept.offline_replicas) == (0, 0, ())
        await host.runner.replicas_offline(lost)  # reported twice, nothing more happens
        again = await host.store.read(layout.state_path(*lost[0]))
        assert again is not None and again.version == 1

    async def after(host: Host) -> None:
        assert host.hosted == {
            TopicPartition("t", 0): 0,
            TopicPartition("t", 1): 2,
            TopicPartition("u", 0): 2,
        }
        for topic in host.image.topics.values():
            for partition in topic.partitions.values():
                assert (partition.leader, partition.offline_replicas) == (0, ())

    run(before, lambda: EmbeddedStore.open(tmp_path))
    run(after, lambda: EmbeddedStore.open(tmp_path))


def test_a_topic_with_a_lost_part_goes_when_that_is_back(tmp_path: Path) -> None:
    async def before(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t", partitions=2))
        host.lost = {TopicPartition("t", 1)}
        await host.runner.replicas_offline([*host.lost])
        with pytest.raises(
            RequestTimedOut, match="the deletion completes when that is available again"
        ):
            await delete_topic(host.runner, "t")
        assert "t" not in host.image.topics
        assert "/admin/delete_topics/t" in host.paths()
        with pytest.raises(TopicAlreadyExists):
            await host.runner.create_topic(NewTopic("t"))
        host.received.clear()
        await host.runner.create_topic(NewTopic("other"))
        assert not [request for request in host.received if isinstance(request, StopReplica)]

    async def after(host: Host) -> None:
        assert list(host.image.topics) == ["other"]
        assert not [path for path in host.paths() if "/t/" in f"{path}/"]
        assert [type(request) for request in host.received][-1] is StopReplica

    run(before, lambda: EmbeddedStore.open(tmp_path))
    run(after, lambda: EmbeddedStore.open(tmp_path))


def test_a_directory_that_fails_during_the_start(tmp_path: Path) -> None:
    async def before(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t", partitions=40))

    async def after() -> None:
        host = Host(EmbeddedStore.open(tmp_path))
        reporting = []

        async def deliver(request: ControlRequest) -> dict[TopicPartition, int] | None:
            codes = await host._deliver(request)
            if isinstance(request, LeaderAndIsr) and not reporting:
                host.lost = {TopicPartition("t", 1)}
                lost = host.runner.replicas_offline([*host.lost])
                reporting.append(asyncio.get_running_loop().create_task(lost))
            return codes

        host.runner = runner_of(host.store, host.view, deliver)
        await host.runner.start(BROKER)
        await asyncio.wait_for(reporting[0], 60)
        partitions = host.image.topics["t"].partitions
        assert [n for n, each in partitions.items() if each.leader == NO_LEADER] == [1]
        await host.runner.stop()
        await host.store.close()

    run(before, lambda: EmbeddedStore.open(tmp_path))
    asyncio.run(after())


def test_a_request_that_a_disk_refuses_does_not_say_that_its_replicas_are_back() -> None:
    """ST-10: which of them are hosted is not known then."""

    async def scenario() -> None:
        host = Host(EmbeddedStore())

        async def deliver(request: ControlRequest) -> None:
            await host._deliver(request)
            if isinstance(request, LeaderAndIsr) and host.lost:
                raise OSError(5, "EIO")

        host.runner = runner_of(host.store, host.view, deliver)
        await host.runner.start(BROKER)
        await host.runner.create_topic(NewTopic("t"))
        name = TopicPartition("t", 0)
        host.lost = {name}
        await host.runner.replicas_offline([name])
        partition = host.image.topics["t"].partitions[0]
        assert (partition.leader, partition.offline_replicas) == (NO_LEADER, (0,))
        await host.runner.stop()
        await host.store.close()

    asyncio.run(scenario())


# --- settings, epochs, ids -------------------------------------------------------------------


def test_changed_settings_reach_the_image_and_every_broker() -> None:
    async def scenario(host: Host) -> None:
        created = await host.runner.create_topic(NewTopic("t", configs={"retention.ms": "5"}))
        data = layout.encode_config({"retention.ms": "7", "segment.bytes": "1000"})
        await host.store.commit([Set("/config/topics/t", data)])
        host.received.clear()
        await host.runner.topic_config_changed("t")
        assert [type(request) for request in host.received] == [UpdateMetadata]
        changed = host.image.topics["t"]
        assert changed.config == {"retention.ms": "7", "segment.bytes": "1000"}
        assert changed == created._replace(config=changed.config)
        await host.runner.topic_config_changed("no-such-topic")

    run(scenario)


def test_a_partition_without_a_state_begins_above_the_epochs_of_its_log() -> None:
    """ZK-6: an old epoch assigned again would cut the epoch history."""
    epochs = {TopicPartition("t", 1): 41}

    async def scenario() -> None:
        store = EmbeddedStore()
        host = Host(store)
        host.runner = runner_of(store, host.view, host._deliver, lambda name: epochs.get(name, -1))
        await store.commit(
            [
                Create("/brokers"),
                Create("/brokers/topics"),
                Create("/brokers/topics/t", layout.encode_topic(b"\1" * 16, {0: [0], 1: [0]})),
            ]
        )
        await host.runner.start(BROKER)
        assert host.hosted == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 42}
        request = host.received[0]
        assert isinstance(request, LeaderAndIsr)
        assert [each.is_new for each in request.partitions] == [True, False]
        await host.runner.stop()
        await store.close()

    asyncio.run(scenario())


def test_topics_of_an_old_broker_get_ids_for_life(tmp_path: Path) -> None:
    """KIP-516: Kafka before 2.8 gave none."""
    ids: list[dict[str, bytes]] = []

    async def prepare() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/brokers"), Create("/brokers/topics")])
        for name in ("a", "b"):
            data = b'{"version":1,"partitions":{"0":[0]}}'
            await store.commit([Create(f"/brokers/topics/{name}", data)])
        await store.close()

    async def look(host: Host) -> None:
        ids.append({name: topic.topic_id for name, topic in host.image.topics.items()})
        assert {host.image.topic_names[each] for each in ids[-1].values()} == {"a", "b"}

    asyncio.run(prepare())
    run(look, lambda: EmbeddedStore.open(tmp_path))
    run(look, lambda: EmbeddedStore.open(tmp_path))
    assert ids[0] == ids[1]
    assert bytes(16) not in ids[0].values()


def test_what_it_knows_of_can_be_asked() -> None:
    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t", partitions=2))
        elsewhere = layout.encode_topic(b"\1" * 16, {0: [7]})
        await host.store.commit([Create("/brokers/topics/elsewhere", elsewhere)])
        await host.runner.create_topic(NewTopic("u"))
        assert host.runner.known_partitions == {
            TopicPartition("t", 0),
            TopicPartition("t", 1),
            TopicPartition("u", 0),
        }

    run(scenario)
