"""What a controller of several brokers is asked for, and what it does about replicas that are lost.

Real runners over one store with a session each, and real requests between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    IsrMember,
    IsrProposal,
    LeaderAndIsr,
    StopReplica,
)
from barnabas.cluster.image import NO_LEADER
from barnabas.cluster.store import BadVersion, Check, Delete, Operation
from barnabas.controller.controller import LogEnd
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    NONE,
    BrokerIdNotRegistered,
    KafkaStorageError,
    RequestTimedOut,
    StaleBrokerEpoch,
)
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import (
    T0,
    Brokers,
    SomeBroker,
    assigned,
    delete_topic,
    made,
    scenario,
)
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

# --- deletion --------------------------------------------------------------------------------


def test_a_topic_goes_when_every_replica_of_it_has_gone() -> None:
    """ZK-4: the nodes stay until all brokers have confirmed it."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 2, 3))
        await them[3].hang_up()
        deletion = asyncio.ensure_future(delete_topic(them[1].runner, "t"))
        await until(lambda: T0 not in them[2].hosted)
        await asyncio.sleep(0.05)
        assert not deletion.done()
        assert await them.store.read(layout.topic_path("t")) is not None
        await them[3].listen()
        await asyncio.wait_for(deletion, PATIENCE_S)
        assert await them.store.read(layout.topic_path("t")) is None
        assert await them.store.read(layout.delete_topic_path("t")) is None
        assert T0 not in them[3].hosted
        assert not any("t" in each.image.topics for each in them.all.values())
        await made(them, assigned(3, 2))

    scenario(play)


def test_a_topic_with_a_replica_on_a_dead_broker_goes_when_that_is_back() -> None:
    """ZK-4, as in Kafka; the controller by then goes on with it."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 3))
        await them[3].die()
        await until(lambda: 3 not in them[1].image.brokers)
        with pytest.raises(RequestTimedOut, match="failed broker"):
            await delete_topic(them[1].runner, "t")
        assert await them.store.read(layout.topic_path("t")) is not None
        await them[1].die()
        await until(lambda: them[2].image.controller_epoch == 2)
        await them.start(1)
        assert await them.store.read(layout.topic_path("t")) is not None
        back = await them.start(3)
        await until(lambda: any(isinstance(each, StopReplica) for each in back.received))
        async with asyncio.timeout(PATIENCE_S):
            while await them.store.read(layout.topic_path("t")) is not None:
                await asyncio.sleep(0.01)
        assert not [path for path in them.store.tree.nodes if "/t" in path[-3:]]

    scenario(play)


# --- log directories -------------------------------------------------------------------------


def test_a_replica_that_a_broker_cannot_open_is_led_by_another_one() -> None:
    """ST-10: its answer to LeaderAndIsr shows it."""

    async def play(them: Brokers) -> None:
        them[2].codes[T0] = KafkaStorageError.code
        await made(them, assigned(2, 3))
        await until(lambda: them[3].image.topics["t"].partitions[0].leader == 3)
        partition = them[1].image.topics["t"].partitions[0]
        assert (partition.isr, partition.offline_replicas) == ((3,), (2,))
        # It learns of that: a damaged log may begin again now (ST-8).
        await until(lambda: them[2].roles_of(T0) == [(2, (2, 3)), (3, (3,))])

    scenario(play)


def test_a_directory_that_fails_on_a_broker_that_is_not_the_controller() -> None:
    """ST-10, KIP-112: announced by a node, asked by the controller."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        them[2].codes[T0] = KafkaStorageError.code
        await them[2].runner.replicas_offline([T0])
        await until(lambda: them[3].image.topics["t"].partitions[0].leader == 3)
        assert them[1].image.topics["t"].partitions[0].offline_replicas == (2,)
        node = await them.store.read("/log_dir_event_notification")
        assert node is not None and not node.children

    scenario(play)


def test_a_replica_that_begins_again_is_in_reach_again() -> None:
    """ST-8: a damaged log is set aside once another replica leads, and may join the ISR then."""

    async def play(them: Brokers) -> None:
        them[3].codes[T0] = KafkaStorageError.code
        await made(them, assigned(2, 3))
        runner = them[1].runner
        await until(lambda: them[2].image.topics["t"].partitions[0].offline_replicas == (3,))
        del them[3].codes[T0]
        await them[3].runner.replicas_offline([])  # whatever makes the controller ask again
        await until(lambda: them[2].image.topics["t"].partitions[0].offline_replicas == ())
        topic = runner.image.topics["t"]
        partition = topic.partitions[0]
        members = tuple(IsrMember(n, runner.image.brokers[n].epoch) for n in (2, 3))
        proposal = IsrProposal(
            T0, topic.topic_id, partition.leader_epoch, members, partition.partition_epoch
        )
        answers = await runner.alter_partitions(2, members[0].broker_epoch, [proposal])
        assert (answers[T0].error_code, answers[T0].isr) == (0, (2, 3))

    scenario(play)


def test_the_last_answer_counts_when_a_round_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """ST-8: two answers of a broker that come while the controller writes."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3, name="other"))
        runner = them[1].runner
        may_commit = asyncio.Event()
        commit = them[1].session.commit

        async def held(operations: Sequence[Operation]) -> list[str | int]:
            if isinstance(operations[0], Check):  # so it is the controller that writes
                await may_commit.wait()
            return await commit(operations)

        name = TopicPartition("other", 0)
        monkeypatch.setattr(them[1].session, "commit", held)
        (request,) = (each for each in them[3].received if isinstance(each, LeaderAndIsr))
        answered = runner._election.term().on_answer
        answered(3, request, {name: KafkaStorageError.code})
        await asyncio.sleep(0.05)  # that is being written now
        answered(3, request, {name: NONE})
        may_commit.set()
        await until(lambda: runner.image.topics["other"].partitions[0].isr == (2,))
        await runner._election.term().events.whole_round()
        assert runner.image.topics["other"].partitions[0].offline_replicas == ()

    scenario(play)


def test_what_a_broker_had_lost_before_it_went_is_not_said_of_its_next_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ST-10: one round processes both, and the disk is repaired when the broker comes back."""

    async def play(them: Brokers) -> None:
        events = them[1].runner._election.term().events
        may_commit = asyncio.Event()
        commit = them[1].session.commit

        async def held(operations: Sequence[Operation]) -> list[str | int]:
            if isinstance(operations[0], Check):  # so it is the controller that writes
                await may_commit.wait()
            return await commit(operations)

        await them[2].hang_up()
        await them[1].runner.create_topic(assigned(3, 2))
        await them[1].runner.create_topic(assigned(1, name="other"))
        monkeypatch.setattr(them[1].session, "commit", held)
        move = them[1].runner.reassign({TopicPartition("other", 0): (3,)})
        moving = asyncio.ensure_future(move)
        them[2].codes[T0] = KafkaStorageError.code
        await them[2].listen()
        await until(lambda: events.replica_reports)
        await them[2].die()
        await until(lambda: layout.BROKER_IDS in events.changed_paths)
        may_commit.set()
        await asyncio.wait_for(moving, PATIENCE_S)
        await until(lambda: 2 not in them[1].image.brokers)
        await events.whole_round()
        await them.start(2)
        await until(lambda: T0 in them[2].hosted)
        assert them[2].hosted[T0].isr == (3,)
        assert them[1].image.topics["t"].partitions[0].offline_replicas == ()

    scenario(play)


# --- what is asked of a controller -----------------------------------------------------------


def test_a_leader_proposes_and_the_answer_is_what_is_written() -> None:
    """RE-4: AlterPartition."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        partition = them[1].image.topics["t"].partitions[0]
        topic_id = them[1].image.topics["t"].topic_id
        epochs = {n: each.epoch for n, each in them[1].runner.image.brokers.items()}
        proposal = IsrProposal(
            T0,
            topic_id,
            partition.leader_epoch,
            (IsrMember(2, epochs[2]),),
            partition.partition_epoch,
        )
        stale = await them[1].runner.alter_partitions(2, 1, [proposal])
        assert stale[T0].error_code == StaleBrokerEpoch.code
        answers = await them[1].runner.alter_partitions(2, epochs[2], [proposal])
        answer = answers[T0]
        assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (2,), 1)
        assert (await them.state("t")).isr == (2,)
        await until(lambda: them[3].image.topics["t"].partitions[0].isr == (2,))

    scenario(play)


def test_a_broker_that_is_to_stop_is_relieved() -> None:
    """Controlled shutdown: leaderships move before it goes."""

    async def play(them: Brokers) -> None:
        await made(them, NewTopic("t", assignment={0: [2, 3], 1: [3, 2], 2: [2, 1]}))
        runner = them[1].runner
        with pytest.raises(BrokerIdNotRegistered):
            await runner.controlled_shutdown(7, 1)
        with pytest.raises(StaleBrokerEpoch):
            await runner.controlled_shutdown(2, 1)
        assert await runner.controlled_shutdown(2, them[2].epochs[-1]) == []
        partitions = runner.image.topics["t"].partitions
        assert [each.leader for each in partitions.values()] == [3, 3, 1]
        assert all(2 not in each.isr for each in partitions.values())

    scenario(play)


def test_leaders_come_home_when_asked_and_by_themselves() -> None:
    """RE-13, KIP-460"""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        await them[2].die()
        await until(lambda: 2 not in them[1].image.brokers)
        back = await them.start(2)
        await until(lambda: T0 in back.hosted)
        runner = them[1].runner

        async def in_sync_again() -> None:
            topic = runner.image.topics["t"]
            partition = topic.partitions[0]
            members = tuple(IsrMember(n, runner.image.brokers[n].epoch) for n in (3, 2))
            proposal = IsrProposal(
                T0, topic.topic_id, partition.leader_epoch, members, partition.partition_epoch
            )
            answers = await runner.alter_partitions(3, members[0].broker_epoch, [proposal])
            assert answers[T0].error_code == 0

        await in_sync_again()
        await until(lambda: them[1].image.topics["t"].partitions[0].leader == 2)
        assert (await them.state("t")).leader == 2

    settings = {"leader.imbalance.check.interval.seconds": "1"}
    scenario(play, **settings)


def test_a_move_goes_on_under_the_next_controller() -> None:
    """KIP-455: what was begun stands in the topic's node."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        outcome = await them[1].runner.reassign({T0: (1, 3)})
        assert outcome == {T0: None}
        moving = them[1].runner.reassignments(None)
        assert {name: (each.adding, each.removing) for name, each in moving.items()} == {
            T0: ((1,), (2,))
        }
        assert them[1].runner.reassignments([TopicPartition("t", 5)]) == {}
        await them.store.commit([Delete(layout.CONTROLLER)])
        await until(lambda: {each.image.controller_epoch for each in them.all.values()} == {2})
        (controller,) = [each for each in them.all.values() if each.runner.is_active]
        runner = controller.runner
        assert runner.reassignments([T0])[T0].adding == (1,)
        topic = runner.image.topics["t"]
        partition = topic.partitions[0]
        members = tuple(IsrMember(n, runner.image.brokers[n].epoch) for n in (2, 3, 1))
        proposal = IsrProposal(
            T0, topic.topic_id, partition.leader_epoch, members, partition.partition_epoch
        )
        await runner.alter_partitions(2, members[0].broker_epoch, [proposal])
        assert runner.reassignments(None) == {}
        after = runner.image.topics["t"].partitions[0]
        assert (after.replicas, set(after.isr)) == ((1, 3), {1, 3})
        await until(lambda: T0 not in them[2].hosted)
        while (await them.state("t")).replicas != (1, 3):
            await asyncio.sleep(0)  # once the broker has confirmed that its log is gone

    scenario(play)


def test_a_topic_that_grew_while_it_was_moved_is_not_written_over() -> None:
    """The topic's node is written on the version that was read."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        await them[1].runner.create_partitions("t", 3)
        await them[1].runner.reassign({T0: (1, 3)})
        node = await them.store.read(layout.topic_path("t"))
        assert node is not None
        assert len(layout.decode_topic("t", node.data).replicas) == 3
        with pytest.raises(BadVersion):
            await them.store.commit([Check(layout.topic_path("t"), 1)])

    scenario(play)


def test_no_two_brokers_get_the_same_producer_ids() -> None:
    async def play(them: Brokers) -> None:
        blocks = await asyncio.gather(
            *(each.runner.allocate_producer_id_block() for each in them.all.values() for _ in "abc")
        )
        assert sorted(blocks) == [(n * 1000, n * 1000 + 999) for n in range(9)]

    scenario(play)


# --- logs that may lack their end ------------------------------------------------------------


def test_the_replica_whose_log_ends_last_leads_where_the_isr_cannot_be_trusted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-11, KIP-966: all are asked, and until all have answered there is no leader."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3, 1, min_insync_replicas="2"))
        for broker_id in (3, 1):  # first they leave the ISR, and so it is the last one
            topic = them[1].runner.image.topics["t"]
            partition = topic.partitions[0]
            epochs = {n: each.epoch for n, each in them[1].runner.image.brokers.items()}
            isr = tuple(n for n in partition.isr if n != broker_id)
            members = tuple(IsrMember(n, epochs[n]) for n in isr)
            proposal = IsrProposal(
                T0, topic.topic_id, partition.leader_epoch, members, partition.partition_epoch
            )
            await them[1].runner.alter_partitions(2, epochs[2], [proposal])
        assert (await them.state("t")).isr == (2,)
        await them[2].die()
        await until(lambda: 2 not in them[1].image.brokers)
        back = SomeBroker(them.store.session(), 2)
        back.may_have_lost = True
        them.all[2] = back
        back.ends[T0] = LogEnd(0, 10)
        them[1].ends[T0] = LogEnd(0, 12)
        await back.start()
        await until(lambda: "until the log end offset of every replica is known" in caplog.text)
        await asyncio.sleep(0.3)
        assert (await them.state("t")).leader == NO_LEADER
        them[3].ends[T0] = LogEnd(0, 14)
        await until(lambda: them[1].runner.image.topics["t"].partitions[0].leader == 3)
        assert (await them.state("t")).isr == (3,)

    scenario(play)
