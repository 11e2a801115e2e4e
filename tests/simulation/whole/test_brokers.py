"""Whole brokers and clients under virtual time: they work, seeds repeat runs, and they survive."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from barnabas.broker.context import Context
from barnabas.broker.handlers.delete_topics import handle
from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.server import Server
from barnabas.client import Consumer, Producer
from barnabas.errors import NotController, UnknownTopicOrPartition
from barnabas.protocol.api import DELETE_TOPICS
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.security.acl import ANONYMOUS
from simulation.whole.brokers import DATA, Brokers, MachineRoom
from simulation.whole.lives import LifeOver
from simulation.whole.loop import within
from simulation.whole.seams import client_seams
from tests.kit.foreign import CHECKOUT
from tests.simulation.whole.turmoil import TOPIC, Turmoil

RECORDS = [b"record %d" % number for number in range(200)]


@pytest.fixture
def room() -> Iterator[MachineRoom]:
    made = MachineRoom.of(7)
    yield made
    assert made.loop.findings == []
    made.loop.close()


async def write(room: MachineRoom, brokers: Brokers, values: list[bytes], name: str = "w") -> None:
    async def work() -> None:
        async with Producer(
            brokers.bootstrap_servers,
            seams=client_seams(room.loop, room.seed, name),
            request_timeout_ms=2000,
        ) as producer:
            for value in values:
                await (await producer.send(TOPIC, value=value))

    await within(120_000, room.network.process(name).call(work()))


async def read(room: MachineRoom, brokers: Brokers, count: int, name: str = "r") -> list[bytes]:
    async def work() -> list[bytes]:
        found: list[bytes] = []
        async with Consumer(
            brokers.bootstrap_servers,
            seams=client_seams(room.loop, room.seed, name),
            group_id=name,
            auto_offset_reset="earliest",
            request_timeout_ms=2000,
        ) as consumer:
            consumer.subscribe([TOPIC])
            while len(found) < count:
                found += [bytes(each.value or b"") for each in await consumer.poll(1000)]
            await consumer.commit_sync()
        return found

    return await within(120_000, room.network.process(name).call(work()))


def play(room: MachineRoom, story: Callable[[], Awaitable[None]]) -> None:
    room.loop.run(within(600_000, story()))


def test_only_the_controller_says_that_a_topic_is_not_there(room: MachineRoom) -> None:
    """TP-4: a broker that has just begun knows of no topic, and is believed if it says so."""
    brokers = Brokers(room)

    async def ask(server: Server) -> int:
        client = ClientConnection("PLAINTEXT", ANONYMOUS, "127.0.0.1", "127.0.0.1")
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        outcome = handle(Context(server.node, client, DELETE_TOPICS, 5, None), request)
        answer = outcome if isinstance(outcome, DeleteTopicsResponse) else await outcome
        return answer.responses[0].error_code

    async def story() -> None:
        await brokers.start()
        for each in brokers.running:
            assert each.server is not None and each.life is not None
            is_controller = each.server.node.controller.is_active
            code = await each.life.call(ask(each.server))
            assert code == (UnknownTopicOrPartition if is_controller else NotController).code
        await brokers.stop()

    play(room, story)


def test_three_brokers_take_records_and_give_them_back(room: MachineRoom) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS)
        assert await read(room, brokers, len(RECORDS)) == RECORDS
        await brokers.stop()
        assert brokers.running == []

    play(room, story)
    assert room.loop.time() < 20


def test_nothing_to_do_costs_nothing(room: MachineRoom) -> None:
    """The brokers' own rounds, of fetches and of heartbeats, are cheap enough to wait hours."""
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:1])
        steps = room.loop.steps
        await asyncio.sleep(120)
        assert room.loop.steps - steps < 120 * 400

    play(room, story)


def test_a_killed_broker_comes_back_with_all_that_it_wrote(room: MachineRoom) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:50])
        for broker_id in (1, 2, 3):
            killed = brokers[broker_id]
            killed.kill()
            assert not killed.is_running
            boot = killed.boot_id()
            await write(room, brokers, RECORDS[50:60], f"w{broker_id}")
            await within(120_000, killed.start())
            assert killed.boot_id() == boot
            await asyncio.sleep(10)
        assert await read(room, brokers, 80) == RECORDS[:50] + 3 * RECORDS[50:60]
        await brokers.stop()

    play(room, story)


def test_flushed_records_survive_when_all_power_fails(room: MachineRoom) -> None:
    brokers = Brokers(room, config={"log.flush.interval.messages": "1"})

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:50])
        boots = [each.boot_id() for each in brokers.by_id.values()]
        for each in brokers.by_id.values():
            each.power_cut()
        await asyncio.sleep(5)
        await brokers.start()
        assert all(each.boot_id() not in boots for each in brokers.by_id.values())
        assert await read(room, brokers, 50) == RECORDS[:50]

    play(room, story)


def test_others_lead_while_one_stands_still(room: MachineRoom) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:10])
        for number, broker_id in enumerate((1, 2, 3)):
            stood = brokers[broker_id]
            stood.pause(20_000)
            began = room.loop.time()
            await write(room, brokers, RECORDS[10:20], f"w{number}")
            assert room.loop.time() - began < 20
            await asyncio.sleep(30)
            assert stood.is_serving
        assert len(await read(room, brokers, 40)) == 40

    play(room, story)


def test_pauses_add_up_to_the_longest(room: MachineRoom) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        paused = brokers[1]
        paused.pause(5000)
        paused.pause(1000)
        life = paused.life
        assert life is not None
        await asyncio.sleep(3)
        assert life.is_paused
        await asyncio.sleep(3)
        assert life.is_running
        paused.pause(5000)
        paused.resume()
        paused.pause(1000)
        await asyncio.sleep(2)
        assert life.is_running

    play(room, story)


def test_a_clean_stop_and_a_start_need_no_recovery(
    room: MachineRoom, caplog: pytest.LogCaptureFixture
) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:10])
        await within(60_000, brokers[2].stop())
        assert not brokers[2].is_running
        await brokers[2].start()
        assert brokers[2].is_serving
        assert await read(room, brokers, 10) == RECORDS[:10]

    play(room, story)
    assert "recover" not in caplog.text


def test_a_broker_whose_only_disk_breaks_ends(room: MachineRoom) -> None:
    brokers = Brokers(room, config={"replica.high.watermark.checkpoint.interval.ms": "300"})

    async def story() -> None:
        await brokers.start()
        await write(room, brokers, RECORDS[:10])
        broken = brokers[3]
        broken.files.fail(DATA, errno.EIO)
        await write(room, brokers, RECORDS[10:20], "again")
        await asyncio.sleep(10)
        assert not broken.is_running
        broken.files.heal(DATA)
        await within(60_000, broken.start())
        assert await read(room, brokers, 20) == RECORDS[:20]

    play(room, story)


def test_a_broker_dies_at_any_change_of_its_disk_and_comes_back(room: MachineRoom) -> None:
    """ST-8: between any two system calls, those of its start included."""
    brokers = Brokers(room, config={"log.flush.interval.messages": "1"})
    struck = brokers[2]
    deaths: list[bool] = []

    def befall() -> None:
        deaths.append(struck.is_serving)
        if len(deaths) % 4 in (1, 2):
            struck.kill()
        else:
            struck.power_cut()

    async def story() -> None:
        await brokers.start()
        for number in range(6):
            struck.strike(1 + number, befall)
            await write(room, brokers, RECORDS[:10], f"w{number}")
            assert not struck.is_running
            struck.strike(1 + 2 * number, befall)
            with pytest.raises(LifeOver):
                await struck.start()
            await within(60_000, struck.start())
            await asyncio.sleep(5)
        assert await read(room, brokers, 60) == 6 * RECORDS[:10]
        await brokers.stop()

    play(room, story)
    assert deaths == 6 * [True, False]


def test_a_task_that_waits_for_a_start_learns_of_its_end(room: MachineRoom) -> None:
    brokers = Brokers(room)

    async def story() -> None:
        await brokers.start()
        brokers[1].kill()
        starting = asyncio.create_task(brokers[1].start())
        await asyncio.sleep(0.001)
        brokers[1].power_cut()
        with pytest.raises(LifeOver):
            await starting
        await within(60_000, brokers[1].start())

    play(room, story)


# ---- seeds ----


def _lines(hash_seed: str) -> str:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path]),
    }
    result = subprocess.run(
        [sys.executable, "-m", "tests.simulation.whole.turmoil", "1", "2"],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return result.stdout


def test_other_hashes_give_the_same_bytes_at_the_same_times() -> None:
    lines = _lines("1")
    assert lines == _lines("20261")
    assert len({line.split()[1] for line in lines.splitlines()}) == 2


def test_a_run_leaves_nothing_behind() -> None:
    before = Turmoil(5).run()
    Turmoil(6).run()
    assert Turmoil(5).run() == before


@pytest.mark.parametrize(
    "first",
    [
        10,
        pytest.param(15, marks=pytest.mark.slow),
        *(pytest.param(first, marks=pytest.mark.soak) for first in range(20, 55, 5)),
    ],
)
def test_what_was_acknowledged_is_there_whatever_happened(first: int) -> None:
    """RE-1, RE-4, FA-1: crashes, power cuts of one machine, pauses, cuts, lost sessions."""
    began_at_s = time.monotonic()
    faults: dict[str, int] = {}
    for seed in range(first, first + 5):
        outcome = Turmoil(seed).run()
        missing = {
            offset: value
            for offset, value in outcome.acknowledged.items()
            if outcome.found.get(offset) != value
        }
        assert (missing, outcome.findings) == ({}, []), f"seed {seed}"
        assert len(outcome.acknowledged) > 30, f"seed {seed}"
        values = list(outcome.found.values())
        assert len(values) == len(set(values)), f"seed {seed}: a record is there twice"
        for kind, times in outcome.faults.items():
            faults[kind] = faults.get(kind, 0) + times
    assert sum(faults.values()) > 20, faults
    print(f"5 seeds in {time.monotonic() - began_at_s:.1f} s: {faults}")
