"""The controller's pump over a real embedded store: topics come, go, and survive every crash."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from barnabas.broker.cluster_view import ClusterView
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import JOURNAL_NAME, Journal
from barnabas.cluster.loading import load_configs_of
from barnabas.cluster.store import Check, Create, Delete, Set
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    ConfigError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaError,
    NotController,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import delete_topic
from tests.kit.broker.controller_host import BROKER, Host, run, runner_of
from tests.kit.waiting import until


def test_a_start_leaves_the_tree_of_a_real_broker() -> None:
    """ZK-1, ZK-2, ZK-3"""

    async def scenario(host: Host) -> None:
        assert set(layout.BASE_PATHS) <= host.paths()
        registration = await host.store.read("/brokers/ids/0")
        assert registration is not None
        assert registration.owner == host.store.session_id
        assert registration.version == 1
        assert host.image.brokers[0].epoch == registration.czxid
        controller = await host.store.read("/controller")
        assert controller is not None and controller.owner == host.store.session_id
        assert layout.decode_controller(controller.data) == 0
        epoch = await host.store.read("/controller_epoch")
        assert epoch is not None and (epoch.data, epoch.version) == (b"1", 1)
        assert (host.image.controller_id, host.image.controller_epoch) == (0, 1)
        assert len(host.image.cluster_id or "") == 22

    run(scenario)


def test_a_topic_is_there_when_create_returns() -> None:
    """ZK-4, TP-1, TP-3"""

    async def scenario(host: Host) -> None:
        host.received.clear()
        created = await host.runner.create_topic(
            NewTopic("t", partitions=3, replication_factor=1, configs={"retention.ms": "5"})
        )
        assert [type(request) for request in host.received] == [LeaderAndIsr, UpdateMetadata]
        assert host.image.topics["t"] == created
        assert host.image.topic_names[created.topic_id] == "t"
        assert sorted(created.partitions) == [0, 1, 2]
        assert all(partition.leader == 0 for partition in created.partitions.values())
        assert host.hosted == {TopicPartition("t", n): 0 for n in range(3)}
        state = await host.store.read("/brokers/topics/t/partitions/2/state")
        assert state is not None and state.data == (
            b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
        )
        config = await host.store.read("/config/topics/t")
        assert config is not None
        assert config.data == b'{"version":1,"config":{"retention.ms":"5"}}'

    run(scenario)


def test_deletion_leaves_nothing() -> None:
    """ZK-4"""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("kept"))
        before, hosted = host.paths(), dict(host.hosted)
        await host.runner.create_topic(NewTopic("t", partitions=4))
        host.received.clear()
        await delete_topic(host.runner, "t")
        assert [type(request) for request in host.received] == [UpdateMetadata, StopReplica]
        assert host.paths() == before
        assert host.hosted == hosted
        assert list(host.image.topics) == list(host.runner.image.topics) == ["kept"]
        again = await host.runner.create_topic(NewTopic("t"))
        assert again.partitions[0].leader_epoch == 0

    run(scenario)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("a/b", {}, InvalidTopic),
        ("there", {}, TopicAlreadyExists),
        ("a_b", {}, InvalidTopic),
        ("t", {"partitions": 0}, InvalidPartitions),
        ("t", {"replication_factor": 2}, InvalidReplicationFactor),
        ("t", {"assignment": {0: [5]}}, InvalidReplicaAssignment),
        ("t", {"configs": {"no.such": "1"}}, InvalidConfig),
        ("t", {"configs": {"retention.ms": "soon"}}, InvalidConfig),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_cannot_be_created_leaves_no_trace(
    name: str, arguments: dict[str, object], error: type[KafkaError], validate_only: bool
) -> None:
    """TP-1, TP-5"""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("there"))
        await host.runner.create_topic(NewTopic("a.b"))
        before = host.paths()
        with pytest.raises(error):
            await host.runner.create_topic(NewTopic(name, **arguments), validate_only=validate_only)  # type: ignore[arg-type]
        assert host.paths() == before

    run(scenario)


def test_validation_alone_makes_nothing() -> None:
    async def scenario(host: Host) -> None:
        before = host.paths()
        shown = await host.runner.create_topic(NewTopic("t", partitions=2), validate_only=True)
        assert [each.replicas for each in shown.partitions.values()] == [(0,), (0,)]
        assert host.paths() == before

    run(scenario)


def test_a_given_assignment_is_taken() -> None:
    async def scenario(host: Host) -> None:
        created = await host.runner.create_topic(NewTopic("t", assignment={0: [0], 1: [0]}))
        assert len(created.partitions) == 2

    run(scenario)


def test_many_at_once(tmp_path: Path) -> None:
    """One round processes what many have written; one name is created once."""

    async def scenario(host: Host) -> None:
        names = [f"t{number}" for number in range(20)] * 2
        outcomes = await asyncio.gather(
            *(host.runner.create_topic(NewTopic(name)) for name in names), return_exceptions=True
        )
        assert sum(isinstance(each, TopicAlreadyExists) for each in outcomes) == 20
        assert len(host.image.topics) == 20
        await asyncio.gather(*(delete_topic(host.runner, name) for name in names[:20]))
        assert not host.image.topics
        assert not host.hosted

    run(scenario, lambda: EmbeddedStore.open(tmp_path))


def test_who_comes_during_a_round_waits_for_the_next(tmp_path: Path) -> None:
    """At whatever step the round is: a topic is there when its creation returns."""

    async def scenario(host: Host) -> None:
        async def create_after(steps: int) -> None:
            for _ in range(steps):
                await asyncio.sleep(0)
            created = await host.runner.create_topic(NewTopic(f"t{steps}"))
            assert host.hosted[TopicPartition(created.name, 0)] == 0

        for number in range(10):
            await host.runner.create_topic(NewTopic(f"old{number}"))
        deletions = [delete_topic(host.runner, f"old{number}") for number in range(10)]
        for deletion in deletions:  # each is a round of two commits
            creations = [create_after(steps) for steps in range(1, 40, 2)]
            await asyncio.gather(deletion, *creations)
            for steps in range(1, 40, 2):
                await delete_topic(host.runner, f"t{steps}")
        assert not host.hosted

    run(scenario, lambda: EmbeddedStore.open(tmp_path))


def test_deleting_twice_at_once_is_deleting() -> None:
    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t"))
        await asyncio.gather(delete_topic(host.runner, "t"), delete_topic(host.runner, "t"))
        with pytest.raises(UnknownTopicOrPartition):
            await delete_topic(host.runner, "t")

    run(scenario)


def test_what_others_write_is_seen_too() -> None:
    """A topic node made by hand (or by another broker) gets its leaders by the same watch."""

    async def scenario(host: Host) -> None:
        data = layout.encode_topic(b"\1" * 16, {0: [0]})
        await host.store.commit([Create("/brokers/topics/by-hand", data)])
        for _ in range(50):
            if "by-hand" in host.image.topics:
                break
            await asyncio.sleep(0.01)
        assert host.hosted == {TopicPartition("by-hand", 0): 0}

    run(scenario)


def test_producer_ids_are_never_handed_out_twice() -> None:
    async def scenario(host: Host) -> None:
        blocks = await asyncio.gather(*(host.runner.allocate_producer_id_block() for _ in range(5)))
        assert sorted(blocks) == [(n * 1000, n * 1000 + 999) for n in range(5)]
        node = await host.store.read("/latest_producer_id_block")
        assert node is not None and node.data == (
            b'{"version":1,"broker":0,"block_start":"4000","block_end":"4999"}'
        )

    run(scenario)


def test_a_restart_takes_up_everything(tmp_path: Path) -> None:
    """Leader epochs stay when a lone broker restarts; the controller's own epoch grows."""
    first_ids: list[str | None] = []

    async def before(host: Host) -> None:
        await host.runner.create_topic(
            NewTopic("a", partitions=2, configs={"segment.bytes": "1000"})
        )
        await host.runner.create_topic(NewTopic("b"))
        first_ids.append(host.image.cluster_id)

    async def after(host: Host) -> None:
        assert host.hosted == {
            TopicPartition("a", 0): 0,
            TopicPartition("a", 1): 0,
            TopicPartition("b", 0): 0,
        }
        assert [type(request) for request in host.received] == [LeaderAndIsr, UpdateMetadata]
        assert host.image.cluster_id == first_ids[0]
        assert host.image.controller_epoch == 2
        assert host.image.topics["a"].config == {"segment.bytes": "1000"}
        assert await load_configs_of(host.store, ["a", "b"]) == {
            "a": {"segment.bytes": "1000"},
            "b": {},
        }

    run(before, lambda: EmbeddedStore.open(tmp_path))
    run(after, lambda: EmbeddedStore.open(tmp_path))


def test_a_crash_after_any_commit_is_taken_up_by_the_next_start(tmp_path: Path) -> None:
    """A topic is led as a whole or not there, a deletion once requested is completed (ZK-4)."""
    written = tmp_path / "written"
    written.mkdir()

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("kept", partitions=2))
        await host.runner.create_topic(NewTopic("gone", partitions=2))
        await delete_topic(host.runner, "gone")

    run(scenario, lambda: EmbeddedStore.open(written))
    journal = Journal(written)
    commits = len(journal.frames)
    journal.close()
    seen = set()
    for survived in range(commits + 1):
        crashed = tmp_path / f"crashed-{survived}"
        crashed.mkdir()
        copy = Journal(crashed)
        again = Journal(written)
        for frame in again.frames[:survived]:
            copy.append(frame)
        again.close()
        copy.close()

        async def check(host: Host) -> None:
            topics = host.image.topics
            seen.add(tuple(sorted(topics)))
            for topic in topics.values():
                assert len(topic.partitions) == 2
                assert all(partition.leader == 0 for partition in topic.partitions.values())
            assert set(host.hosted) == {
                TopicPartition(name, number) for name in topics for number in range(2)
            }
            left = {
                path.split("/")[3] for path in host.paths() if path.startswith("/config/topics/")
            }
            assert left == set(topics)
            assert not [path for path in host.paths() if path.startswith("/admin/delete_topics/")]

        run(check, lambda directory=crashed: EmbeddedStore.open(directory))  # type: ignore[misc]
        shutil.rmtree(crashed)
    assert seen == {(), ("kept",), ("gone", "kept")}
    assert (written / JOURNAL_NAME).exists()


def test_the_cluster_id_of_the_data_becomes_that_of_the_metadata() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        host = Host(store)
        assert await host.runner.start(BROKER, "AAECAwQFBgcICQoLDA0ODw") == "AAECAwQFBgcICQoLDA0ODw"
        await host.runner.stop()
        other = Host(store)
        with pytest.raises(ConfigError, match="belongs to cluster"):
            await other.runner.start(BROKER, "_____________________w")
        await store.close()

    asyncio.run(scenario())


def test_two_brokers_with_one_id() -> None:
    """ZK-2: the second refuses to start."""

    async def scenario() -> None:
        store = EmbeddedStore()
        first, second = Host(store), Host(store)
        await first.runner.start(BROKER)
        with pytest.raises(ConfigError, match=r"broker\.id=0 is in use"):
            await second.runner.start(BROKER)
        await first.runner.stop()
        await store.close()

    asyncio.run(scenario())


def test_a_deposed_controller_decides_nothing_any_more(caplog: pytest.LogCaptureFixture) -> None:
    """ZK-3: its commits fail as a whole, and its clients get NOT_CONTROLLER."""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("a"))
        other = host.store.session()
        epoch = await host.store.read("/controller_epoch")
        assert epoch is not None
        creation = asyncio.ensure_future(host.runner.create_topic(NewTopic("b")))
        await asyncio.sleep(0)  # the topic is written
        await other.commit(
            [
                Check("/controller_epoch", epoch.version),
                Set("/controller_epoch", b"9"),
                Delete("/controller"),
                Create("/controller", layout.encode_controller(7, 1), ephemeral=True),
            ]
        )
        with pytest.raises(NotController):
            await creation
        assert "/brokers/topics/b/partitions" not in host.paths()
        assert list(host.image.topics) == ["a"]
        with pytest.raises(NotController):
            await delete_topic(host.runner, "a")
        assert "controller resigned" in caplog.text
        # It is no less a candidate than before.
        await other.close()
        await until(lambda: "b" in host.image.topics)
        assert host.image.controller_epoch == 10
        await delete_topic(host.runner, "a")

    run(scenario)


def test_a_commit_in_another_epoch_is_no_commit(caplog: pytest.LogCaptureFixture) -> None:
    """ZK-3: the fence holds before any broker is notified; then a later epoch begins."""

    async def scenario(host: Host) -> None:
        epoch = await host.store.read("/controller_epoch")
        assert epoch is not None
        await host.store.commit([Set("/controller_epoch", b"9")])
        with pytest.raises(NotController):
            await host.runner.create_topic(NewTopic("b"))
        await until(lambda: "b" in host.image.topics)
        state = await host.store.read("/brokers/topics/b/partitions/0/state")
        assert state is not None
        assert layout.decode_state("b", 0, state.data).controller_epoch == 10

    run(scenario)


def test_a_caller_that_waits_at_the_stop_gets_an_error() -> None:
    async def scenario() -> None:
        host = Host(EmbeddedStore())
        await host.runner.start(BROKER)
        creation = asyncio.ensure_future(host.runner.create_topic(NewTopic("t")))
        await asyncio.sleep(0)
        await host.runner.stop()
        with pytest.raises(NotController):
            await creation
        await host.store.close()

    asyncio.run(scenario())


def test_a_log_that_cannot_be_made_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        store = EmbeddedStore()

        async def deliver(request: ControlRequest) -> None:
            if isinstance(request, LeaderAndIsr):
                raise OSError(28, "No space left on device")

        runner = runner_of(store, ClusterView(0), deliver)
        await runner.start(BROKER)
        await runner.create_topic(NewTopic("a"))
        await runner.create_topic(NewTopic("b"))
        assert "No space left" in caplog.text
        await runner.stop()
        await store.close()

    asyncio.run(scenario())
