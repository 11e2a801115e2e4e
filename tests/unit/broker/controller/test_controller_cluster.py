"""One controller for several brokers: its election, its requests, and what outlasts a failure.

Real runners over one store with a session each, and real requests between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.broker.controller.request_backlog import MERGED_AT
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    LeaderAndIsr,
    UpdateMetadata,
)
from barnabas.cluster.image import NO_LEADER
from barnabas.cluster.store import (
    Create,
    Delete,
    Operation,
    OutcomeUnknown,
    Set,
)
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    NotController,
    TopicAlreadyExists,
)
from tests.kit.broker.brokers import (
    T0,
    Brokers,
    SomeBroker,
    alive,
    assigned,
    delete_topic,
    made,
    scenario,
)
from tests.kit.waiting import until

# --- requests to brokers ---------------------------------------------------------------------


def test_every_broker_gets_its_replicas_and_then_all_metadata() -> None:
    """ZK-3, ZK-4, TP-1: a topic is there on the controller when create returns, then elsewhere."""

    async def play(them: Brokers) -> None:
        for each in them.all.values():
            each.received.clear()
        created = await them[1].runner.create_topic(assigned(2, 3))
        assert them[1].image.topics["t"] == created
        await until(lambda: all("t" in each.image.topics for each in them.all.values()))
        for broker in (them[2], them[3]):
            assert [type(each) for each in broker.received] == [LeaderAndIsr, UpdateMetadata]
            assert broker.hosted[T0].leader == 2
            assert broker.hosted[T0].isr == (2, 3)
        assert [type(each) for each in them[1].received] == [UpdateMetadata]
        assert {each.image.controller_id for each in them.all.values()} == {1}
        assert [each.runner.controller_id for each in them.all.values()] == [1, 1, 1]

    scenario(play)


def test_only_the_controller_creates_and_any_broker_auto_creates() -> None:
    """TP-6: a client that asks any broker for a topic gets it."""

    async def play(them: Brokers) -> None:
        runner = them[2].runner
        with pytest.raises(NotController):
            await runner.create_topic(NewTopic("t"))
        with pytest.raises(NotController):
            await delete_topic(runner, "t")
        with pytest.raises(NotController):
            await runner.create_partitions("t", 2)
        with pytest.raises(NotController):
            await runner.alter_partitions(2, them[2].epochs[-1], [])
        (topic, other) = await runner.auto_create_topics([assigned(3, 1), NewTopic("u", 2, 3)])
        assert them[2].image.topics == {"t": topic, "u": other}
        (again,) = await runner.auto_create_topics([assigned(3, 1)])
        assert isinstance(again, TopicAlreadyExists)
        both = await asyncio.gather(
            them[3].runner.auto_create_topics([NewTopic("v")]),
            runner.auto_create_topics([NewTopic("v")]),
        )
        assert any(not isinstance(each, TopicAlreadyExists) for (each,) in both)
        await until(lambda: all("v" in each.image.topics for each in them.all.values()))

    scenario(play)


def test_requests_that_cannot_be_sent_wait_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async def play(them: Brokers) -> None:
        await them[3].hang_up()
        them[3].received.clear()
        for number in range(5):
            await them[1].runner.create_topic(assigned(3, 1, name=f"t{number}"))
        await until(lambda: "t4" in them[2].image.topics)
        assert not them[3].received
        await until(lambda: "broker 3: resending LeaderAndIsr" in caplog.text)
        await them[3].listen()
        await until(lambda: "t4" in them[3].image.topics)
        assert [type(each) for each in them[3].received] == [LeaderAndIsr, UpdateMetadata] * 5
        names = [
            each.partitions[0].topic_partition.topic
            for each in them[3].received
            if isinstance(each, LeaderAndIsr)
        ]
        assert names == [f"t{number}" for number in range(5)]
        assert caplog.text.count("broker 3: resending LeaderAndIsr") == 1
        assert "broker 3 is responding again" in caplog.text

    scenario(play)


def test_requests_that_gather_for_a_broker_are_merged() -> None:
    """ZK-4: it is registered, but cannot be reached: its backlog does not grow without end."""

    async def play(them: Brokers) -> None:
        runner = them[1].runner
        await made(them, assigned(3, 1, name="old"))
        await them[3].hang_up()
        them[3].received.clear()
        for number in range(100):
            await runner.create_topic(assigned(3, 1, name=f"t{number}"))
        deletions = [
            asyncio.ensure_future(delete_topic(runner, name)) for name in ("old", "t7", "t99")
        ]
        for number in range(10, 30):
            await runner.create_partitions(f"t{number}", 2, [[3, 1]])
        await them[3].listen()
        await asyncio.gather(*deletions)
        names = {f"t{number}" for number in range(99)} - {"t7"}
        await until(lambda: them[3].image.topics.keys() == names)
        await until(lambda: {name.topic for name in them[3].hosted} == names)
        await until(lambda: len(them[3].hosted) == len(names) + 20)
        assert len(them[3].received) <= MERGED_AT

    scenario(play)


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    async def play(them: Brokers) -> None:
        them[2].is_deaf = True
        await them[1].runner.create_topic(assigned(2, 1))
        await asyncio.sleep(0.3)
        assert T0 not in them[2].hosted
        them[2].is_deaf = False
        await until(lambda: T0 in them[2].hosted)

    settings = {"controller.socket.timeout.ms": "200"}
    scenario(play, 2, **settings)


# --- brokers that go and come ----------------------------------------------------------------


def test_a_broker_that_fails_is_replaced_and_sent_everything_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-10, ZK-2: one line reports what its failure meant."""
    caplog.set_level("INFO")

    async def play(them: Brokers) -> None:
        await made(them, NewTopic("t", assignment={0: [3, 2], 1: [3, 1], 2: [1, 2]}))
        await made(them, assigned(3, name="u"))
        await them[3].die()
        await until(lambda: 3 not in them[2].image.brokers)
        partitions = them[2].image.topics["t"].partitions
        assert [each.leader for each in partitions.values()] == [2, 1, 1]
        assert [each.isr for each in partitions.values()] == [(2,), (1,), (1, 2)]
        waiting = them[2].image.topics["u"].partitions[0]
        assert (waiting.leader, waiting.isr) == (NO_LEADER, (3,))
        assert (
            "broker 3 has failed: partitions with a new leader: 2, with none: 1" in caplog.text
        ), caplog.text
        back = await them.start(3)
        await until(lambda: len(back.hosted) == 3 and "t" in back.image.topics)
        assert sorted(each.leader for each in back.hosted.values()) == [1, 2, 3]
        assert "broker 3 registered; live brokers: 3" in caplog.text

    scenario(play)


def test_a_registration_that_is_another_one_was_a_death(caplog: pytest.LogCaptureFixture) -> None:
    """KIP-903: though its absence was not noticed."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1))
        before = them[2].epochs[-1]
        them[2].session.expire()
        them[2].session.reconnect()
        await until(lambda: len(them[2].epochs) == 2)
        assert them[2].epochs[-1] > before
        await until(lambda: them[1].image.brokers[2].epoch == them[2].epochs[-1])
        partition = await them.state("t")
        assert (partition.leader, partition.isr) == (1, (1,))
        await until(lambda: them[2].hosted[T0].leader == 1)

    scenario(play)


def test_a_registration_that_was_replaced_unseen_is_sent_everything_again() -> None:
    """KIP-903: gone and come between two looks; nothing that was meant for the old one counts."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1))
        path = layout.broker_path(2)
        node = await them.store.read(path)
        assert node is not None
        them[2].received.clear()
        await them[2].session.commit(
            [Delete(path), Create(path, ephemeral=True), Set(path, node.data)]
        )
        again = await them.store.read(path)
        assert again is not None
        them[2].epochs.append(again.czxid)
        await until(lambda: them[1].image.topics["t"].partitions[0].leader == 1)
        await until(
            lambda: [type(each) for each in them[2].received] == [UpdateMetadata, LeaderAndIsr]
        )
        await made(them, assigned(2, 1, name="u"))

    scenario(play, 2)


def test_who_finds_its_id_taken_waits_for_the_end_of_the_other_session() -> None:
    """ZK-2: it may be its own earlier life's, which goes; up to a tick of ZooKeeper's late."""

    async def play(them: Brokers) -> None:
        settings = {"zookeeper.session.timeout.ms": "300"}
        again = SomeBroker(them.store.session(), 2, **settings)
        starting = asyncio.ensure_future(again.start())
        await asyncio.sleep(0.6)
        assert not starting.done()
        await them[2].die()
        await starting
        await again.die()

    scenario(play, 2)


def test_who_waits_for_its_id_over_the_end_of_its_own_session_is_registered_in_the_next() -> None:
    """ZK-2, ZK-5: it knows its registration for its own, and may be elected like any other."""

    async def play(them: Brokers) -> None:
        earlier = them[2]
        starting = asyncio.ensure_future(them.start(2))
        await until(lambda: them[2] is not earlier)
        await asyncio.sleep(0.2)
        them[2].session.expire()
        them[2].session.reconnect()
        await asyncio.sleep(0)
        await earlier.die()
        await starting
        await them[1].die()
        await until(lambda: them[2].runner.is_active)
        assert len(them[2].epochs) == 1

    scenario(play, 2)


# --- who is controller -----------------------------------------------------------------------


def test_when_the_controller_dies_another_one_takes_over() -> None:
    """ZK-3: in a higher epoch, with all that was decided; what the dead one led has leaders."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 2, 3))
        await them[1].die()
        await until(
            lambda: all(
                each.image.controller_epoch == 2 and 1 not in each.image.brokers
                for each in alive(them)
            )
        )
        partition = await them.state("t")
        assert (partition.leader, partition.isr) == (2, (2, 3))
        assert partition.leader_epoch > 0
        (controller,) = [each for each in alive(them) if each.runner.is_active]
        await made(them, assigned(3, 2, name="u"), by=controller.id)
        back = await them.start(1)
        await until(lambda: set(back.image.topics) == {"t", "u"})
        assert not back.runner.is_active
        assert back.runner.known_partitions == {T0}

    scenario(play)


def test_a_controller_whose_session_expires_serves_again_as_a_broker_and_later_as_controller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ZK-3: nothing of the old session counts."""

    async def play(them: Brokers) -> None:
        creation = asyncio.ensure_future(them[1].runner.create_topic(assigned(1, 2)))
        await asyncio.sleep(0)  # the topic is written, and the round is due
        them[1].session.expire()
        with pytest.raises(NotController):
            await creation
        await until(lambda: them[2].runner.is_active)
        assert not them[1].runner.is_active
        assert "controller resigned" in caplog.text
        them[1].session.reconnect()
        await until(lambda: len(them[1].epochs) == 2)
        await until(lambda: 1 in them[2].image.brokers)
        await until(lambda: them[1].runner.controller_id == 2)
        await them[2].die()
        await until(lambda: them[1].runner.is_active)
        await until(lambda: them[1].image.controller_epoch == 3)
        await them[1].runner.create_topic(assigned(1, name="u"))

    scenario(play, 2)


def test_a_controller_that_a_broker_refuses_decides_nothing_more_in_its_epoch() -> None:
    """ZK-3, ZK-5: the broker knows a later one; this one may have missed its own end."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 2))
        them[2].view.update(them[2].image._replace(controller_epoch=2))
        them[2].received.clear()
        await them[1].runner.create_topic(assigned(2, 1, name="u"))
        await until(lambda: "u" in them[2].image.topics)
        assert {each.controller_epoch for each in them[2].received} == {2}

    scenario(play, 2)


def test_removing_the_node_of_the_controller_has_another_one_elected() -> None:
    """As operators do with Kafka."""

    async def play(them: Brokers) -> None:
        for epoch in (2, 3):
            await them.store.commit([Delete(layout.CONTROLLER)])
            await until(
                lambda epoch=epoch: (
                    {  # type: ignore[misc]
                        each.image.controller_epoch for each in them.all.values()
                    }
                    == {epoch}
                )
            )
        assert sum(each.runner.is_active for each in them.all.values()) == 1

    scenario(play)


def test_a_state_that_was_written_elsewhere_is_read_before_anything_is_decided(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It stays controller, but reads everything; nothing was committed on what it assumed."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1))
        state = layout.StateNode(2, 7, (2,), 1)
        await them.store.commit([Set(layout.state_path(*T0), layout.encode_state(state))])
        with pytest.raises(NotController):
            await them[1].runner.elect_leaders([T0], True)
            await them[1].runner.controlled_shutdown(2, them[2].epochs[-1])
        await until(lambda: them[1].runner.is_active)
        await until(lambda: them[1].image.topics["t"].partitions[0].leader_epoch >= 7)
        assert them[1].image.controller_epoch == 1
        assert "reloading its state" in caplog.text

    scenario(play, 2)


async def _write_isr(them: Brokers, *isr: int, topic: str = "t") -> None:
    """As the leader below inter.broker.protocol.version 2.7 does: by its own hand."""
    before = await them.state(topic)
    state = layout.state_of(before._replace(isr=isr))
    written = Set(layout.state_path(topic, 0), layout.encode_state(state), before.partition_epoch)
    await them.store.commit([written])


def test_an_isr_that_its_leader_has_written_is_decided_on_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-9, RE-10: it is not announced yet; the controller goes on, in the same term."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1, 3))
        await made(them, assigned(2, 1, 3, name="u"))
        await _write_isr(them, 2, 3)
        await _write_isr(them, 2, 1, topic="u")
        assert await them[1].runner.controlled_shutdown(2, them[2].epochs[-1]) == []
        for topic, isr in (("t", (3,)), ("u", (1,))):
            state = await them.state(topic)
            assert (state.leader, state.isr) == (isr[0], isr)
            assert them[1].runner.image.topics[topic].partitions[0] == state
        await _write_isr(them, 1, 3, topic="u")
        await delete_topic(them[1].runner, "u")
        await _write_isr(them, 3, 1)
        await them[3].die()
        await until(lambda: them[1].image.topics["t"].partitions[0].leader == 1)
        assert (await them.state("t")).isr == (1,)
        assert "resigned" not in caplog.text

    scenario(play)


def test_who_fails_leaves_an_isr_into_which_its_leader_has_taken_it_unannounced() -> None:
    """RE-9: the controller takes it for out of sync already, and it may lead once it is back."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1, 3))
        await _write_isr(them, 2, 1)
        await isr_notifications.announce(them.store, [T0])
        await until(lambda: them[1].runner.image.topics["t"].partitions[0].isr == (2, 1))
        await _write_isr(them, 2, 1, 3)
        await them[3].die()
        await until(lambda: 3 not in them[1].runner.image.brokers)
        assert (await them.state("t")).isr == (2, 1)

    scenario(play)


def test_every_broker_gets_the_isrs_that_were_announced(caplog: pytest.LogCaptureFixture) -> None:
    """RE-9: by a leader below 2.7, whatever the controller's own version is."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1, 3))
        for each in them.all.values():
            each.received.clear()
        await _write_isr(them, 2, 3)
        await isr_notifications.announce(them.store, [T0])
        await until(
            lambda: all(
                each.image.topics["t"].partitions[0].isr == (2, 3) for each in them.all.values()
            )
        )
        assert {type(each) for one in them.all.values() for each in one.received} == {
            UpdateMetadata
        }
        await until(lambda: not them.store.tree.nodes[layout.ISR_CHANGES].children)
        assert "resigned" not in caplog.text

    scenario(play)


def test_a_new_controller_reads_and_removes_what_was_announced_before() -> None:
    """RE-9, ZK-3"""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        await them[1].die()
        await _write_isr(them, 2)
        await isr_notifications.announce(them.store, [T0])
        await until(lambda: them[3].image.topics["t"].partitions[0].isr == (2,))
        await until(lambda: not them.store.tree.nodes[layout.ISR_CHANGES].children)

    scenario(play)


def test_who_is_overtaken_again_and_again_reads_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It does not go on for ever, and stays controller."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 1, 3))
        commit, store = them[1].store.commit, them[1].store
        overtaken = 0

        async def slow(operations: Sequence[Operation]) -> list[str | int]:
            nonlocal overtaken
            if overtaken < 7 and any(each.path == layout.state_path(*T0) for each in operations):
                overtaken += 1
                await _write_isr(them, 2, 1 + 2 * (overtaken % 2))
            return await commit(operations)

        store.commit = slow  # type: ignore[method-assign]
        with pytest.raises(NotController):
            await them[1].runner.controlled_shutdown(2, them[2].epochs[-1])
        assert overtaken == 5
        await until(lambda: not _not_controller(them[1].runner))
        assert "reloading its state" in caplog.text
        assert await them[1].runner.controlled_shutdown(2, them[2].epochs[-1]) == []
        assert them[1].runner.image.controller_epoch == 1

    scenario(play)


@pytest.mark.parametrize("happens", [True, False])
def test_a_commit_whose_answer_is_lost_may_have_happened_or_not(
    happens: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is read before anything else is decided, in the same epoch."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 2, 3))
        runner = them[1].runner
        lose_answer(them[1], layout.state_path(*T0), happens)
        with pytest.raises(NotController):
            await runner.controlled_shutdown(2, them[2].epochs[-1])
        await until(lambda: runner.is_active)
        await until(lambda: not _not_controller(runner))
        assert runner.image.controller_epoch == 1
        assert runner.image.topics["t"].partitions[0].isr == ((1, 3) if happens else (1, 2, 3))
        assert runner.image.topics["t"].partitions[0] == await them.state("t")
        assert await runner.controlled_shutdown(2, them[2].epochs[-1]) == []
        assert (await them.state("t")).isr == (1, 3)
        assert "reloading its state" in caplog.text

    scenario(play)


@pytest.mark.parametrize("path", [layout.CONTROLLER, layout.broker_path(2)])
@pytest.mark.parametrize("happens", [True, False])
def test_a_broker_whose_first_steps_are_not_answered_looks_what_came_of_them(
    path: str, happens: bool
) -> None:
    """ZK-2, ZK-3"""

    async def play(them: Brokers) -> None:
        them[2].session.expire()
        lose_answer(them[2], path, happens)
        if path == layout.CONTROLLER:
            await them[1].die()
        them[2].session.reconnect()
        await until(lambda: len(them[2].epochs) == 2)
        if path == layout.CONTROLLER:
            await until(lambda: them[2].image.controller_epoch == 2)
            assert them[2].runner.is_active
        else:
            await until(lambda: them[1].image.brokers[2].epoch == them[2].epochs[-1])
        node = await them.store.read(layout.broker_path(2))
        assert node is not None and node.czxid == them[2].epochs[-1]

    scenario(play, 2)


def lose_answer(broker: SomeBroker, path: str, happens: bool) -> None:
    """The next commit that writes this node does, or does not, and its outcome is unknown."""
    commit = broker.session.commit
    left = [1]

    async def cut(operations: Sequence[Operation]) -> list[str | int]:
        if left and any(each.path == path for each in operations):
            left.clear()
            if happens:
                await commit(operations)
            raise OutcomeUnknown(path, "the connection broke")
        return await commit(operations)

    broker.session.commit = cut  # type: ignore[method-assign]


def _not_controller(runner: ControllerRunner) -> bool:
    try:
        return runner.image is None
    except NotController:
        return True


def test_other_defaults_for_all_topics_are_obeyed_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-11: a partition without a leader gets one as soon as an unclean one is allowed."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        await them[3].die()
        await until(lambda: them[1].image.topics["t"].partitions[0].isr == (2,))
        await them[2].die()
        await until(lambda: them[1].image.topics["t"].partitions[0].leader == NO_LEADER)
        back = await them.start(3)
        await until(lambda: T0 in back.hosted)
        assert back.hosted[T0].leader == NO_LEADER
        changed = them[1].config.with_dynamic({}, {"unclean.leader.election.enable": "true"})
        them[1].runner.configure(changed)
        await until(lambda: back.hosted[T0].leader == 3)
        assert "records may be lost" in caplog.text

    scenario(play)
