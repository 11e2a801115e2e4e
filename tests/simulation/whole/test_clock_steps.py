"""A broker whose wall clock is set while it serves: whole, under virtual time (ST-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest

from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.clock_jumps import LASTING_MS
from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin.transaction_admin import TransactionDescription
from barnabas.errors import ProducerFenced
from simulation.whole.brokers import Brokers, MachineRoom, SimBroker
from simulation.whole.loop import within
from simulation.whole.seams import client_seams

TOPIC, GROUP = "stepped", "members"
HOUR_MS = 3_600_000
MONTH_MS = 30 * 24 * HOUR_MS
ROUNDS = {
    "log.retention.check.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "1000",
    "offsets.retention.check.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class Stage:
    """One broker whose clock somebody sets, and its clients, whose clocks go right."""

    def __init__(self, room: MachineRoom, config: Mapping[str, str]) -> None:
        self.room = room
        replicated_once = {
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        }
        self._brokers = Brokers(room, (1,), {**ROUNDS, **replicated_once, **config})

    @property
    def broker(self) -> SimBroker:
        return self._brokers[1]

    @property
    def replica(self) -> Replica:
        assert self.broker.server is not None
        return self.broker.server.node.replicas.replica_of((TOPIC, 0))

    def group(self) -> Any:
        assert self.broker.server is not None
        (shard,) = self.broker.server.node.groups.ready
        return shard.machine.groups[GROUP]

    def committed(self) -> dict[tuple[str, int], Any]:
        assert self.broker.server is not None
        (shard,) = self.broker.server.node.groups.ready
        found = shard.machine.offsets.groups.get(GROUP)
        return {} if found is None else found.committed

    async def start(self) -> None:
        await self._brokers.start()

    async def client(self, name: str, work: Callable[..., Awaitable[Any]]) -> Any:
        return await within(300_000, self.room.network.process(name).call(work()))

    def settings(self, name: str) -> dict[str, Any]:
        return {
            "seams": client_seams(self.room.loop, self.room.seed, name),
            "request_timeout_ms": 2000,
        }

    @property
    def servers(self) -> list[str]:
        return self._brokers.bootstrap_servers

    async def write(self, *timestamps_ms: int | None) -> list[int]:
        """A record for each; the times that they got."""

        async def work() -> list[int]:
            found = []
            async with Producer(
                self.servers, enable_idempotence=True, **self.settings("writer")
            ) as producer:
                for timestamp_ms in timestamps_ms:
                    sent = await producer.send(TOPIC, value=b"x" * 300, timestamp_ms=timestamp_ms)
                    found.append((await sent).timestamp_ms)
            return found

        found: list[int] = await self.client("writer", work)
        return found

    async def wrong(self, by_ms: int, for_s: float = 6.0) -> None:
        """The wall clock is wrong for a while, and then corrected."""
        self.broker.clock.step(by_ms)
        await asyncio.sleep(for_s)
        self.broker.clock.step(-by_ms)


@pytest.fixture
def room() -> Iterator[MachineRoom]:
    made = MachineRoom.of(12, max_virtual_ms=3_000_000)
    yield made
    assert made.loop.findings == []
    made.loop.close()


def play(room: MachineRoom, story: Callable[[Stage], Awaitable[None]], **settings: str) -> None:
    stage = Stage(room, {name.replace("_", "."): value for name, value in settings.items()})

    async def whole() -> None:
        await stage.start()
        await story(stage)

    room.loop.run(within(2_000_000, whole()))


RETENTION_MS = 120_000


def test_a_month_ahead_for_six_seconds_deletes_nothing(room: MachineRoom) -> None:
    """ST-6: neither then, nor later, when records grow old as they would have."""

    async def story(stage: Stage) -> None:
        await stage.write(*[None] * 8)
        log = stage.replica.log
        assert len(log.segments) > 2
        before = log.segments
        await stage.wrong(MONTH_MS)
        await asyncio.sleep(60)
        assert (log.log_start_offset, log.log_end_offset) == (0, 8)
        assert log.segments == before
        assert len(log.producers) == 1, "nor is a producer forgotten"
        await asyncio.sleep(RETENTION_MS / 1000 - 50)
        assert log.log_start_offset == 8, "by the right time, they are old now"

    play(room, story, log_retention_ms=str(RETENTION_MS), log_segment_bytes="1000")


def test_a_month_behind_keeps_nothing_for_longer(room: MachineRoom) -> None:
    """ST-6: what is old by the right time goes then."""

    async def story(stage: Stage) -> None:
        await stage.write(*[None] * 8)
        await stage.wrong(-MONTH_MS)
        await asyncio.sleep(RETENTION_MS / 1000 + 10)
        assert stage.replica.log.log_start_offset == 8

    play(room, story, log_retention_ms=str(RETENTION_MS), log_segment_bytes="1000")


def test_a_new_time_that_lasts_counts(room: MachineRoom) -> None:
    """ST-6: as after a night in which the machine was suspended."""

    async def story(stage: Stage) -> None:
        await stage.write(*[None] * 8)
        stage.broker.clock.step(MONTH_MS)
        await asyncio.sleep(LASTING_MS / 1000 - 5)
        assert stage.replica.log.log_start_offset == 0
        await asyncio.sleep(10)
        assert stage.replica.log.log_start_offset == 8

    play(room, story, log_segment_bytes="1000")


def test_what_is_too_large_goes_whatever_the_time_is(room: MachineRoom) -> None:
    """ST-6: retention by size asks no clock, and a full disk does not wait."""

    async def story(stage: Stage) -> None:
        stage.broker.clock.step(MONTH_MS)
        await stage.write(*[None] * 8)
        await asyncio.sleep(5)
        assert 0 < stage.replica.log.log_start_offset < 8

    play(room, story, log_retention_bytes="1000", log_segment_bytes="1000")


def test_append_times_follow_the_wall_clock_backwards(room: MachineRoom) -> None:
    """ST-6: after a correction, and not only forwards."""

    async def story(stage: Stage) -> None:
        (first,) = await stage.write(None)
        stage.broker.clock.step(HOUR_MS)
        (ahead,) = await stage.write(None)
        stage.broker.clock.step(-2 * HOUR_MS)
        (behind,) = await stage.write(None)
        assert HOUR_MS <= ahead - first < HOUR_MS + 60_000
        assert HOUR_MS - 60_000 < first - behind <= HOUR_MS

    play(room, story, log_message_timestamp_type="LogAppendTime")


def consumer_of(stage: Stage, name: str) -> Consumer:
    consumer = Consumer(
        stage.servers,
        group_id=GROUP,
        auto_offset_reset="earliest",
        session_timeout_ms=8000,
        heartbeat_interval_ms=1000,
        **stage.settings(name),
    )
    consumer.subscribe([TOPIC])
    return consumer


def test_members_stay_and_sessions_end_whatever_is_set(room: MachineRoom) -> None:
    """ST-6, GC-2: sessions run on the monotonic clock."""

    async def story(stage: Stage) -> None:
        await stage.write(None)

        async def member() -> None:
            consumer = consumer_of(stage, "member")
            await consumer.start()
            while True:
                if await consumer.poll(500):
                    await consumer.commit_sync()

        life = room.network.process("member")
        life.start(member())
        await asyncio.sleep(15)
        generation = stage.group().generation
        assert len(stage.group().members) == 1 and stage.committed()
        for by_ms in (MONTH_MS, -MONTH_MS - HOUR_MS, HOUR_MS):
            stage.broker.clock.step(by_ms)
            await asyncio.sleep(4)
            assert stage.group().generation == generation
            assert len(stage.group().members) == 1 and stage.committed()
        life.kill()
        stage.broker.clock.step(-HOUR_MS)
        await asyncio.sleep(6)
        assert len(stage.group().members) == 1
        await asyncio.sleep(5)
        assert not stage.group().members, "its session is over, an hour before it began"

    play(room, story)


def test_committed_offsets_are_kept(room: MachineRoom) -> None:
    """ST-6, GC-3: their week is not over because the calendar is wrong."""

    async def story(stage: Stage) -> None:
        await stage.write(None)

        async def work() -> None:
            async with consumer_of(stage, "member") as consumer:
                while not await consumer.poll(500):
                    pass
                await consumer.commit_sync()

        await stage.client("member", work)
        await stage.wrong(MONTH_MS)
        await asyncio.sleep(10)
        assert stage.committed()
        stage.broker.clock.step(MONTH_MS)
        await asyncio.sleep(LASTING_MS / 1000 + 5)
        assert not stage.committed()

    play(room, story)


def test_transactions_last_as_long_as_their_producers_allow(room: MachineRoom) -> None:
    """ST-6, PR-7: by the monotonic clock alone."""

    async def story(stage: Stage) -> None:
        async def work() -> None:
            async with Producer(
                stage.servers,
                transactional_id="tx",
                transaction_timeout_ms=20_000,
                **stage.settings("tx"),
            ) as producer:
                await producer.init_transactions()
                for by_ms in (MONTH_MS, -MONTH_MS - HOUR_MS):
                    producer.begin_transaction()
                    await (await producer.send(TOPIC, value=b"x"))
                    stage.broker.clock.step(by_ms)
                    await asyncio.sleep(8)
                    await producer.commit_transaction()
                producer.begin_transaction()
                await (await producer.send(TOPIC, value=b"late"))
                stage.broker.clock.step(-HOUR_MS)
                await asyncio.sleep(15)
                assert await state(stage) == "Ongoing"
                await asyncio.sleep(10)
                assert await state(stage) == "CompleteAbort"
                with pytest.raises(ProducerFenced):
                    await producer.commit_transaction()

        await stage.client("tx", work)

    play(room, story)


async def state(stage: Stage) -> str:
    async with Admin(stage.servers, **stage.settings("admin")) as admin:
        found: dict[str, TransactionDescription] = await admin.describe_transactions(["tx"])
    return found["tx"].state
