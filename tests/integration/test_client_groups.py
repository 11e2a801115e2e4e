"""Our consumer in groups: against our broker, and against Kafka itself."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    GroupMetadata,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    SyncConsumer,
    TopicPartition,
)
from barnabas.client.consumer.assignors import ASSIGNORS
from barnabas.client.consumer.group_protocol import GroupMember
from barnabas.client.errors import CommitFailed, NoOffsetForPartition
from barnabas.errors import BarnabasError, FencedInstanceId, InvalidGroupId, UnknownMemberId
from tests.kit.processes.broker_process import BrokerProcess, broker_process

pytestmark = pytest.mark.secured

PATIENCE_S = 120.0
QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 30_000,
    "metadata_max_age_ms": 500,
}


class Recorder(RebalanceListener):
    """Records the calls that it gets."""

    def __init__(self) -> None:
        self.events: list[tuple[str, set[int]]] = []

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("revoked", {each.partition for each in partitions}))

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("assigned", {each.partition for each in partitions}))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("lost", {each.partition for each in partitions}))


def name(stem: str) -> str:
    """Of a topic and its group, that no other run of a test has."""
    return f"{stem}-{uuid4().hex[:8]}"


async def make(servers: str, topic: str, partitions: int = 4, count: int = 0) -> None:
    """A topic with the numbers from 0, dealt to its partitions in turn."""
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(topic, partitions)])
    await fill(servers, topic, count, partitions)


async def fill(servers: str, topic: str, count: int, partitions: int = 4) -> None:
    async with Producer(servers) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=number % partitions)


@asynccontextmanager
async def joined(
    servers: str,
    topic: str,
    group: str | None = None,
    listener: RebalanceListener | None = None,
    **options: Any,
) -> AsyncIterator[Consumer]:
    async with Consumer(servers, **{**QUICK, "group_id": group or topic, **options}) as consumer:
        consumer.subscribe([topic], listener)
        yield consumer


async def poll_until(done: Callable[[], bool], *consumers: Consumer) -> list[list[int]]:
    """Let all poll until it is `done`; the numbers that each one got."""
    got: list[list[int]] = [[] for _ in consumers]

    async def poll(consumer: Consumer, into: list[int]) -> None:
        while not done():
            into += [int(record.value or b"-1") for record in await consumer.poll(100)]

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*map(poll, consumers, got))
    return got


async def numbers(consumer: Consumer, count: int) -> list[int]:
    """So many numbers, in the order in which they come."""
    got: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(got) < count:
            got += [int(record.value or b"-1") for record in await consumer.poll(200)]
    return got


def share(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


def test_a_group_is_a_queue_and_several_are_publish_subscribe(servers: str) -> None:
    """CO-3: three members share 4 partitions, a fifth of them idles; another group gets all."""
    topic = name("queue")

    async def run() -> None:
        await make(servers, topic)
        async with AsyncExitStack() as stack:
            members = [await stack.enter_async_context(joined(servers, topic)) for _ in range(5)]
            other = await stack.enter_async_context(joined(servers, topic, f"{topic}-2"))
            await poll_until(
                lambda: sorted(share(*members)) == [0, 1, 1, 1, 1] and share(other) == [4],
                *members,
                other,
            )
            got: list[list[int]] = []
            await fill(servers, topic, 400)

            async def read(consumer: Consumer) -> None:
                into: list[int] = []
                got.append(into)
                while sum(map(len, got)) < 800:
                    into += [int(r.value or b"-1") for r in await consumer.poll(100)]

            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*map(read, [other, *members]))
            assert sorted(got[0]) == list(range(400)), "the other group has everything"
            shared = [number for into in got[1:] for number in into]
            assert sorted(shared) == list(range(400)), "the members together, once"

    asyncio.run(run())


def test_a_group_goes_on_where_it_has_committed(servers: str) -> None:
    """CO-4: what is committed is the last processed offset + 1; the rest comes again."""
    topic = name("commit")

    async def run() -> None:
        await make(servers, topic, 1, 10)
        partition = TopicPartition(topic, 0)
        manual = {"enable_auto_commit": False}
        async with joined(servers, topic, **manual) as consumer:
            assert await consumer.committed(partition) == {partition: None}
            assert await numbers(consumer, 10) == list(range(10))
            await consumer.commit_sync({partition: 4})
        async with joined(servers, topic, **manual) as consumer:
            assert await numbers(consumer, 6) == list(range(4, 10))
            noted = OffsetAndMetadata(7, "a note")
            outcomes: list[object] = []
            for at in (5, 6, noted):
                consumer.commit_async({partition: at}, lambda *outcome: outcomes.append(outcome))
            await consumer.commit_sync({})
            assert outcomes == [
                ({partition: OffsetAndMetadata(5)}, None),
                ({partition: OffsetAndMetadata(6)}, None),
                ({partition: noted}, None),
            ]
            assert await consumer.committed(partition) == {partition: noted}
        async with joined(servers, topic, **manual) as consumer:
            assert await numbers(consumer, 3) == [7, 8, 9]
            await consumer.commit_sync()
        async with joined(servers, topic, **manual) as consumer:
            await poll_until(lambda: share(consumer) == [1], consumer)
            assert await consumer.position(partition) == 10

    asyncio.run(run())


def test_auto_commit_in_poll_and_on_close(servers: str) -> None:
    """CO-4: what an earlier poll gave is committed by a later one, or by `close`."""
    topic = name("auto")
    interval_ms = 10_000  # a commit before the first fetch would hold the position before it

    async def run() -> None:
        await make(servers, topic, 1, 10)
        partition = TopicPartition(topic, 0)
        async with Admin(servers) as admin:
            async with joined(
                servers, topic, auto_commit_interval_ms=interval_ms, max_poll_records=4
            ) as consumer:
                assert len(await numbers(consumer, 4)) == 4
                assert await admin.list_group_offsets(topic) == {}, "no one has processed them yet"
                await asyncio.sleep((interval_ms + 50) / 1_000)
                await consumer.poll(100)
                async with asyncio.timeout(PATIENCE_S):
                    while (await admin.list_group_offsets(topic)).get(partition) != (4, "", 0):
                        await asyncio.sleep(0.02)
            assert (await admin.list_group_offsets(topic))[partition].offset == 8, "4, then close"
            async with Consumer(servers, group_id=topic, **QUICK) as consumer:
                consumer.assign([partition])
                assert await numbers(consumer, 2) == [8, 9]
            assert (await admin.list_group_offsets(topic))[partition].offset == 10, "CO-2: assigned"

    asyncio.run(run())


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 3)])
def test_a_group_without_offsets_begins_by_the_reset(
    servers: str, reset: str, expected: int
) -> None:
    """CO-5"""
    topic = name("reset")

    async def run() -> None:
        await make(servers, topic, 1, 3)
        async with joined(servers, topic, auto_offset_reset=reset) as consumer:
            await poll_until(lambda: share(consumer) == [1], consumer)
            await consumer.seek_to_beginning()
            assert await consumer.position(TopicPartition(topic, 0)) == 0
        async with joined(servers, f"{topic}", f"{topic}-2", auto_offset_reset=reset) as consumer:
            while not consumer.assignment():
                await consumer.poll(0)
            assert await consumer.position(TopicPartition(topic, 0)) == expected

    asyncio.run(run())


def test_none_raises_where_there_is_no_offset(servers: str) -> None:
    """CO-5"""
    topic = name("none")

    async def run() -> None:
        await make(servers, topic, 1, 3)
        async with joined(servers, topic, auto_offset_reset="none") as consumer:
            with pytest.raises(NoOffsetForPartition, match=r"auto\.offset\.reset is none"):
                await poll_until(lambda: False, consumer)
            consumer.seek(TopicPartition(topic, 0), 1)
            assert await numbers(consumer, 2) == [1, 2]

    asyncio.run(run())


def test_a_listener_is_called_before_and_after(servers: str) -> None:
    """CO-2, AS-1: a member joins and is closed; what it had read so far can still be committed."""
    topic = name("listener")

    class Careful(Recorder):
        consumer: Consumer

        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:  # type: ignore[override]
            super().on_partitions_revoked(partitions)
            await self.consumer.commit_sync()

    async def run() -> None:
        await make(servers, topic, 2, 20)
        first, second = Careful(), Recorder()
        async with joined(servers, topic, listener=first, enable_auto_commit=False) as one:
            first.consumer = one
            await numbers(one, 20)
            async with joined(servers, topic, listener=second, enable_auto_commit=False) as two:
                got = await poll_until(lambda: share(one, two) == [1, 1], one, two)
                assert got == [[], []], "nothing comes twice: it was committed when it was revoked"
                (taken,) = {each.partition for each in two.assignment()}
                kept = {0, 1} - {taken}
            await poll_until(lambda: share(one) == [2], one)
        assert first.events == [
            ("assigned", {0, 1}),
            ("revoked", {0, 1}),
            ("assigned", kept),
            ("revoked", kept),
            ("assigned", {0, 1}),
            ("revoked", {0, 1}),
        ]
        assert second.events == [("assigned", {taken}), ("revoked", {taken})]

    asyncio.run(run())


def test_who_does_not_poll_in_time_loses_everything(servers: str) -> None:
    """CO-2: max.poll.interval.ms; the group goes on, and late commits are refused."""
    topic = name("slow")

    async def run() -> None:
        await make(servers, topic, 2, 20)
        listener = Recorder()
        manual = {"enable_auto_commit": False}
        async with (
            joined(servers, topic, listener=listener, max_poll_interval_ms=1_000, **manual) as slow,
            joined(servers, topic, **manual) as quick,
        ):
            await numbers(slow, 20)
            got = await poll_until(lambda: share(quick) == [2], quick)
            with pytest.raises(CommitFailed, match=r"max\.poll\.interval\.ms"):
                await slow.commit_sync()
            got = [[*got[0], *(await numbers(quick, 20 - len(got[0])))]]
            assert sorted(got[0]) == list(map(int, range(20))), "nothing was committed"
            await poll_until(lambda: share(slow, quick) == [1, 1], slow, quick)
            assert listener.events[:2] == [("assigned", {0, 1}), ("lost", {0, 1})]

    asyncio.run(run())


def test_a_long_poll_is_no_silence(servers: str) -> None:
    """CO-1, CO-2: who waits inside of `poll` for longer than max.poll.interval.ms is alive."""
    topic = name("patient")

    async def run() -> None:
        await make(servers, topic, 1)
        listener = Recorder()
        async with joined(
            servers, topic, listener=listener, max_poll_interval_ms=3_000
        ) as consumer:
            await poll_until(lambda: share(consumer) == [1], consumer)
            assert await consumer.poll(6_000) == []
            assert listener.events == [("assigned", {0})]

    asyncio.run(run())


def test_whose_listener_hangs_leaves_the_group(servers: str) -> None:
    """CO-2, KIP-62: what a listener does counts against max.poll.interval.ms, inside of `poll`."""
    topic = name("hanging")
    goes_on = asyncio.Event()

    class Hanging(Recorder):
        async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            await super().on_partitions_assigned(partitions)
            await goes_on.wait()

    async def run() -> None:
        await make(servers, topic, 2)
        listener = Hanging()
        async with (
            joined(servers, topic, listener=listener, max_poll_interval_ms=1_000) as hanging,
            joined(servers, topic) as other,
        ):
            polls = asyncio.create_task(hanging.poll(60_000))
            while not listener.events:
                await asyncio.sleep(0.05)
            await poll_until(lambda: share(other) == [2], other)
            assert not polls.done()
            goes_on.set()
            await poll_until(lambda: len(listener.events) > 2 and share(other) == [1], other)
            assert [each for each, _ in listener.events[:3]] == ["assigned", "lost", "assigned"]
            polls.cancel()

    asyncio.run(run())


def test_two_reasons_at_once_to_end_a_wait_are_as_good_as_one(servers: str) -> None:
    """CO-3: as after a pause of the process, when a heartbeat and a commit are refused together."""
    topic = name("twice")
    unexpected: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, each: unexpected.append(each))
        await make(servers, topic, 1)
        async with joined(servers, topic) as consumer:
            await poll_until(lambda: share(consumer) == [1], consumer)
            polls = asyncio.create_task(consumer.poll(60_000))
            while consumer._nap is None:
                await asyncio.sleep(0.05)
            consumer._wake()
            asyncio.get_running_loop().call_soon(consumer._wake)  # when the wait is about to end
            async with Producer(servers) as producer:
                await producer.send(topic, b"1")
            async with asyncio.timeout(PATIENCE_S):
                assert [record.value for record in await polls] == [b"1"]
            assert share(consumer) == [1]

    asyncio.run(run())
    assert unexpected == []


def test_a_static_member_that_restarts_causes_no_rebalance(servers: str) -> None:
    """AS-1, KIP-345: its partitions wait for it; a twin fences it."""
    topic = name("static")

    async def run() -> None:
        await make(servers, topic, 2)
        listener = Recorder()
        async with joined(servers, topic, listener=listener) as other:
            async with joined(servers, topic, group_instance_id="blue") as blue:
                await poll_until(lambda: share(other, blue) == [1, 1], other, blue)
                had, before = blue.assignment(), blue.group_metadata()
            events = list(listener.events)
            async with joined(servers, topic, group_instance_id="blue") as blue:
                await poll_until(lambda: share(blue) == [1], other, blue)
                now = blue.group_metadata()
                assert (blue.assignment(), now.generation) == (had, before.generation)
                assert now.member_id != before.member_id and now.instance_id == "blue"
                assert listener.events == events
                async with joined(servers, topic, group_instance_id="blue") as twin:
                    await poll_until(lambda: share(twin) == [1], other, twin)
                    with pytest.raises(FencedInstanceId):
                        await poll_until(lambda: False, blue)
                    for again in (blue.poll, lambda: blue.commit_sync({had[0]: 0})):  # final
                        with pytest.raises(FencedInstanceId, match="close this one"):
                            await again()

    asyncio.run(run())


def test_partitions_and_topics_that_come_later(servers: str) -> None:
    """AS-1, CO-2, TP-8: a topic grows, another one begins to match; internal ones never do."""
    stem = name("pattern")

    async def run() -> None:
        await make(servers, f"{stem}-a", 1)
        async with Admin(servers) as admin, Consumer(servers, group_id=stem, **QUICK) as consumer:
            consumer.subscribe(re.compile(f"__.*|{stem}-."))
            await poll_until(lambda: share(consumer) == [1], consumer)
            await admin.create_partitions(f"{stem}-a", 3)
            await poll_until(lambda: share(consumer) == [3], consumer)
            await admin.create_topics([NewTopic(f"{stem}-b", 2), NewTopic(f"{stem}-long", 2)])
            await poll_until(lambda: share(consumer) == [5], consumer)
            assert consumer.subscription() == [f"{stem}-a", f"{stem}-b"]
            assert "__consumer_offsets" in await admin.list_topics()
            consumer.subscribe([f"{stem}-b"])
            await poll_until(lambda: share(consumer) == [2], consumer)
            await consumer.unsubscribe()
            assert (consumer.assignment(), consumer.subscription()) == ([], [])
            assert (await admin.describe_groups([stem]))[stem].state == "Empty"

    asyncio.run(run())


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_leader_assigns_by_what_the_members_voted_for(servers: str, assignor: str) -> None:
    """AS-2 to AS-6: through the group as the function says."""
    topic = name(assignor)

    async def run() -> None:
        await make(servers, topic, 7)
        options = {"partition_assignment_strategy": [assignor, "range"]}
        async with AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(joined(servers, topic, **options)) for _ in range(3)
            ]
            await poll_until(lambda: sorted(share(*members)) == [2, 2, 3], *members)
            async with Admin(servers) as admin:
                group = (await admin.describe_groups([topic]))[topic]
            assert (group.assignor, group.state) == (assignor, "Stable")
            given = {each.member_id: list(each.partitions) for each in group.members}
            if assignor in ("range", "roundrobin"):
                asked = [GroupMember(each, (topic,)) for each in given]
                assert given == ASSIGNORS[assignor].assign({topic: 7}, asked)
            before = [set(member.assignment()) for member in members[:2]]
            await members[2].close()
            await poll_until(lambda: sorted(share(*members[:2])) == [3, 4], *members[:2])
            if assignor == "sticky":
                for had, member in zip(before, members[:2], strict=True):
                    assert had <= set(member.assignment()), "AS-4: nothing moved that need not"

    asyncio.run(run())


def test_leaving_while_joining(servers: str) -> None:
    """CO-2: closed with its join unanswered, a member is gone and does not hold up the others."""
    topic = name("hasty")

    async def run() -> None:
        await make(servers, topic, 2)
        async with joined(servers, topic) as steady:
            await poll_until(lambda: share(steady) == [2], steady)
            hasty = Consumer(servers, **{**QUICK, "group_id": topic})
            await hasty.start()
            hasty.subscribe([topic])
            for _ in range(10):  # its join waits for the other one, who does not poll
                await hasty.poll(20)
            await hasty.close()
            await poll_until(lambda: share(steady) == [2] and not hasty.assignment(), steady)
            async with Admin(servers) as admin:
                assert len((await admin.describe_groups([topic]))[topic].members) == 1

    asyncio.run(run())


def test_what_needs_a_group_and_what_excludes_it(servers: str) -> None:
    """CO-2: wrong use is refused with what to do about it."""

    async def run() -> None:
        async with Consumer(servers) as consumer:
            with pytest.raises(InvalidGroupId, match=r"give it a group\.id"):
                consumer.subscribe(["t"])
            with pytest.raises(InvalidGroupId):
                await consumer.commit_sync()
        async with Consumer(servers, group_id=name("wrong")) as consumer:
            with pytest.raises(TypeError, match=r"\['t'\], or to a pattern"):
                consumer.subscribe("t")
            with pytest.raises(ValueError, match="nothing to subscribe to"):
                consumer.subscribe([])
            consumer.subscribe(["t"])
            with pytest.raises(ValueError, match="unsubscribe"):
                consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(CommitFailed, match="not polled yet"):
                await consumer.commit_sync({TopicPartition("t", 0): 1})
            await consumer.unsubscribe()
            consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(ValueError, match="by hand"):
                consumer.subscribe(["t"])
            await consumer.unsubscribe()

    asyncio.run(run())


def test_a_commit_by_a_stranger_is_refused(servers: str) -> None:
    """CO-4: offsets of a group with members are its members' to change."""
    topic = name("stranger")

    async def run() -> None:
        await make(servers, topic, 1)
        partition = TopicPartition(topic, 0)
        async with joined(servers, topic) as member:
            await poll_until(lambda: share(member) == [1], member)
            assert member.group_metadata().group_id == topic
            async with Consumer(servers, group_id=topic) as stranger:
                stranger.assign([partition])
                assert stranger.group_metadata() == GroupMetadata(topic)
                with pytest.raises((CommitFailed, UnknownMemberId)):
                    await stranger.commit_sync({partition: 3})

    asyncio.run(run())


def test_the_blocking_consumer_calls_its_listener_in_its_own_thread(servers: str) -> None:
    """CO-2: so a listener may use the consumer; its errors come out of `poll`."""
    topic = name("sync")
    asyncio.run(make(servers, topic, 2, 20))
    threads: set[threading.Thread] = set()
    committed: list[BarnabasError | None] = []

    class Committing(RebalanceListener):
        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            threads.add(threading.current_thread())
            assert all(each is None for each in consumer.committed(*partitions).values())
            consumer.seek(TopicPartition(topic, 1), 5)

        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            threads.add(threading.current_thread())
            consumer.commit_sync()
            raise RuntimeError("enough")

    consumer = SyncConsumer(servers, **{**QUICK, "group_id": topic, "enable_auto_commit": False})
    try:
        consumer.subscribe([topic], Committing())
        got: list[int] = []
        while len(got) < 15:
            got += [int(record.value or b"-1") for record in consumer.poll(100)]
        assert sorted(got) == sorted([*range(0, 20, 2), *range(11, 20, 2)])
        consumer.commit_async(when_done=lambda offsets, error: committed.append(error))
        consumer.commit_sync({})
        assert committed == [None]
        with pytest.raises(RuntimeError, match="enough"):
            consumer.unsubscribe()
    finally:
        consumer.close()
    assert threads == {threading.current_thread()}
    with SyncConsumer(servers, group_id=topic) as reader:
        names = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert [each and each.offset for each in reader.committed(*names).values()] == [10, 10]


def test_members_live_through_a_restart_of_their_broker(tmp_path: Path) -> None:
    """CO-4: the coordinator is found again; the group is the same, and nothing comes twice."""
    topic = name("restart")

    async def run(broker: BrokerProcess) -> None:
        servers = broker.bootstrap_servers
        await make(servers, topic, 2, 20)
        async with joined(servers, topic) as one, joined(servers, topic) as two:
            got = await poll_until(lambda: share(one, two) == [1, 1], one, two)
            count = sum(map(len, got))
            while count < 20:
                for consumer in (one, two):
                    count += len(await consumer.poll(100))
            assert count == 20
            await one.commit_sync()
            await two.commit_sync()
            before = [consumer.group_metadata() for consumer in (one, two)]
            broker.stop()
            broker.start()
            await fill(servers, topic, 20, 2)
            count = 0
            async with asyncio.timeout(PATIENCE_S):
                while count < 20:
                    for consumer in (one, two):
                        count += len(await consumer.poll(100))
            assert count == 20
            await one.commit_sync()
            await two.commit_sync()
            assert [consumer.group_metadata() for consumer in (one, two)] == before

    with broker_process(tmp_path, "group.initial.rebalance.delay.ms=0") as broker:
        asyncio.run(run(broker))
