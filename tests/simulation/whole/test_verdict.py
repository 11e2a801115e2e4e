"""The judge on real brokers: what holds, and what is found when something is planted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.partitions.replica import Replica
from barnabas.client import Producer
from barnabas.types import TopicPartition
from simulation.whole.clients import Clients
from simulation.whole.environment import ATOMIC, SURE, Options
from simulation.whole.rules import Allowed, Tally
from simulation.whole.verdict import Broken, Judged, judge
from simulation.whole.witness import Witness
from tests.simulation.whole.real_brokers import PATIENCE_MS, Brokers, run_for

OPTIONS = Options(pause_ms=100, finish_ms=PATIENCE_MS, prepare_ms=PATIENCE_MS, dawdle_chance=0.0)
IMPATIENT_MS = 4_000  # where it is certain that the end never comes
CALM = Allowed(is_calm=True)
SURE_0 = TopicPartition(SURE, 0)

_CRC_AT = 17


def rules_of(judged: Judged | Tally) -> set[str]:
    """Those that are broken."""
    return {text.partition(" (")[0] for text in judged.broken}


def leads(brokers: Brokers, name: TopicPartition) -> tuple[int, Replica]:
    for broker_id, server in brokers.servers.items():
        replica = server.node.replicas.replica_of(name)
        if replica.partition.is_leader:
            return broker_id, replica
    raise AssertionError(f"no broker leads {name}")


def spoil(path: Path) -> None:
    """The first batch has another checksum now."""
    with path.open("r+b") as file:
        file.seek(_CRC_AT)
        byte = file.read(1)[0]
        file.seek(_CRC_AT)
        file.write(bytes([byte ^ 1]))


@pytest.mark.slow
def test_what_is_planted_in_brokers_is_found(tmp_path: Path) -> None:
    """RE-3, GC-3, CO-6, PR-7: one falsity after the other, behind a run that was true."""

    async def play() -> None:
        async with Brokers(tmp_path) as brokers:
            clients = brokers.clients(3, OPTIONS)
            await run_for(clients, 1.5)
            judged = await judge(clients, brokers.servers, CALM)
            judged.raise_if_broken()
            clients.around.options = OPTIONS._replace(finish_ms=IMPATIENT_MS)
            watch_falsely(brokers)
            await leave_a_transaction_open(brokers, clients)
            await spoil_logs(brokers, clients)
            await stop_one(brokers, clients)

    asyncio.run(play())


def watch_falsely(brokers: Brokers) -> None:
    """A second leader in the same epoch, and a high watermark that falls."""
    broker_id, leader = leads(brokers, SURE_0)
    other = brokers.servers[broker_id % 3 + 1].node.replicas.replica_of(SURE_0)
    witness, tally = Witness(), Tally()
    witness.look(brokers.servers)
    witness.judge(tally, CALM)
    assert tally.broken == []
    assert tally.judged["one leader"] > 0
    other.partition.is_leader = True
    witness.look({broker_id % 3 + 1: brokers.servers[broker_id % 3 + 1]})
    other.partition.is_leader = False
    witness.look(brokers.servers)
    leader.partition.high_watermark -= 1
    witness.look(brokers.servers)
    leader.partition.high_watermark += 1
    witness.judge(tally, CALM)
    assert rules_of(tally) == {"one leader", "watermark"}
    lossy = Tally()
    witness.judge(lossy, Allowed(lossy={SURE_0: "an unclean election"}))
    assert rules_of(lossy) == {"one leader"}


async def leave_a_transaction_open(brokers: Brokers, clients: Clients) -> None:
    around = clients.around
    async with Producer(
        around.servers, seams=around.seams("left"), transactional_id="left"
    ) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        await (await producer.send(ATOMIC, b"stranger:0:1|", partition=0))
        judged = await judge(clients, brokers.servers, CALM)
        assert "closed" in rules_of(judged)
        assert any("stable up to" in text for text in judged.broken), "the partition says so"
        assert any("left" in text for text in judged.broken), "and the coordinator does"
        await producer.abort_transaction()
    judged = await judge(clients, brokers.servers, CALM)
    assert rules_of(judged) == {"sent"}, "what no client wrote stays in the log, aborted or not"


async def spoil_logs(brokers: Brokers, clients: Clients) -> None:
    broker_id, _ = leads(brokers, SURE_0)
    spoil(brokers.log_file(broker_id, str(SURE_0)))
    offsets = next(
        replica.topic_partition
        for replica in brokers.servers[broker_id].node.replicas
        if replica.topic_partition.topic == "__consumer_offsets" and replica.high_watermark
    )
    spoil(brokers.log_file(broker_id, str(offsets)))
    judged = await judge(clients, brokers.servers, CALM)
    assert {"equal", "log", "loads", "over the wire"} <= rules_of(judged)


async def stop_one(brokers: Brokers, clients: Clients) -> None:
    await brokers.stop(2)
    judged = await judge(clients, brokers.servers, CALM)
    assert "quiet" in rules_of(judged)
    with pytest.raises(Broken, match="the ISR of"):
        judged.raise_if_broken()


def test_a_client_that_did_not_end_or_met_a_surprise_is_named() -> None:
    """Without a broker, and so without quiet."""

    async def play() -> Judged:
        brokers = Brokers(Path("nowhere"))
        clients = brokers.clients(1, OPTIONS._replace(finish_ms=0))
        clients.history.surprise("sure-0", ValueError("what"))
        clients.history.unfinished.append("member-1")
        return await judge(clients, {}, CALM)

    judged = asyncio.run(play())
    assert rules_of(judged) == {"expected", "finished", "quiet"}
    with pytest.raises(Broken, match="and 2 more"):
        judged.raise_if_broken(most=1)


def test_where_nothing_was_promised_is_said() -> None:
    async def play() -> Judged:
        clients = Brokers(Path("nowhere")).clients(1, OPTIONS._replace(finish_ms=0))
        return await judge(clients, {}, Allowed(lossy={SURE_0: "an unclean election"}))

    assert asyncio.run(play()).suspended == ("sure-0: an unclean election",)
