"""Reads everything after the quiet end, from the logs and over the network, and judges it.

    judged = await judge(clients, servers, Allowed())
    judged.raise_if_broken()

`servers` are all brokers of the cluster, which are running and can reach each other again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.coordinator.shard_loading import replay
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.server import Server
from barnabas.client import Admin, Consumer
from barnabas.client.errors import Unreachable
from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.records import decode_group_record, decode_transaction_record
from barnabas.coordinator.settings import GroupConfig, TransactionConfig
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import BarnabasError, CorruptData, KafkaError
from barnabas.storage.cleaner import is_compacted
from barnabas.types import TopicPartition
from simulation.whole.clients import Clients
from simulation.whole.environment import (
    COPIERS,
    COPIES,
    FLEETING,
    KEYED,
    MEMBERS,
    SHIFTING,
    SURE,
    TOPICS,
)
from simulation.whole.history import OK, Read
from simulation.whole.keyed_rules import (
    judge_namesake,
    judge_table,
    read_table,
    same_records,
)
from simulation.whole.rules import (
    Allowed,
    Copying,
    Evidence,
    Tally,
    forgiven,
    judge_copies,
    judge_ends,
    judge_group,
    judge_reading,
    judge_sequences,
    judge_transactions,
    judge_writings,
)
from simulation.whole.truth import Truth
from simulation.whole.witness import Witness

_LOOK_EVERY_S = 0.1
_READ_BYTES = 1 << 20

Servers = Mapping[int, Server]


class Judged(NamedTuple):
    counts: Mapping[str, int]  # by rule: how often it had something to judge
    broken: tuple[str, ...]  # in words
    suspended: tuple[str, ...]  # where nothing was promised, and why
    acknowledged: int  # records, with acks=all
    forgiven: Mapping[str, int]  # by acks: records whose loss was allowed

    def raise_if_broken(self, most: int = 20) -> None:
        """Raise Broken with the first faults found."""
        if self.broken:
            more = len(self.broken) - most
            shown = [*self.broken[:most], *([f"... and {more} more"] if more > 0 else [])]
            raise Broken("\n".join(shown))

    def idle(self) -> list[str]:
        """Return the rules that had nothing to judge."""
        return [rule for rule, count in self.counts.items() if not count]


class Broken(Exception):
    """A rule is broken."""


async def judge(
    clients: Clients, servers: Servers, allowed: Allowed, witness: Witness | None = None
) -> Judged:
    """Wait for everything to recover, read it all, and judge by every rule.

    `witness`: what was seen of the brokers during the run, if anything watched them.
    """
    tally = Tally()
    history = clients.history
    if witness is not None:
        witness.judge(tally, allowed)
    tally.judge("finished", not history.unfinished, "these did not: {}", history.unfinished)
    tally.judge("expected", not history.surprises, "{}", history.surprises)
    restless = await _quiet(clients, servers)
    tally.judge("quiet", not restless, "{}", restless)
    lost: Mapping[str, int] = {}
    if not restless:
        try:
            lost = await _judge_cluster(tally, clients, servers, allowed)
        except (Unreachable, KafkaError) as error:
            tally.judge("quiet", False, "the cluster does not say what is asked of it: {}", error)
    return Judged(
        tally.judged,
        tuple(tally.broken),
        tuple(f"{name}: {why}" for name, why in allowed.lossy.items()),
        sum(each.outcome == OK and each.acks == -1 for each in history.writings.values()),
        lost,
    )


async def _judge_cluster(
    tally: Tally, clients: Clients, servers: Servers, allowed: Allowed
) -> dict[str, int]:
    """Judge by all the rules that need the brokers; returns the allowed losses.

    Raises any error that the brokers report.
    """
    leaders = _leaders(servers)
    truths = await _judge_replicas(tally, servers, leaders)
    if FLEETING in {name.topic for name in truths}:
        judge_namesake(tally, clients.history, truths.pop(TopicPartition(FLEETING, 0)))
    await _judge_closed(tally, clients, leaders)
    evidence = Evidence(
        clients.history,
        truths,
        {name: leader.partition.leader_epoch for name, leader in leaders.items()},
        await _committed(clients),
        allowed,
    )
    judge_evidence(tally, evidence)
    for is_committed in (False, True):
        await _judge_wire(tally, clients, truths, is_committed=is_committed)
        ends = {name: each.high_watermark for name, each in leaders.items() if name.topic == KEYED}
        if not ends:
            continue
        table = await read_table(clients.around, ends, is_committed=is_committed)
        for name, rows in table.items():
            judge_table(tally, clients.history, name, rows, is_committed=is_committed)
    return forgiven(evidence)


def judge_evidence(tally: Tally, evidence: Evidence) -> None:
    """Judge by the rules that need nothing but the evidence."""
    judge_writings(tally, evidence)
    judge_sequences(tally, evidence)
    judge_transactions(tally, evidence)
    judge_reading(tally, evidence)
    judge_ends(tally, evidence)
    judge_group(tally, evidence, MEMBERS, [SURE])
    judge_group(tally, evidence, COPIERS, [SURE])
    judge_copies(tally, evidence, Copying(COPIERS, SURE, COPIES))


# ---- coming to rest ----


async def _quiet(clients: Clients, servers: Servers) -> list[str]:
    """Wait until every partition has a leader and all its replicas, and no transaction is open.

    Returns what is missing when time is up; open transactions have a separate rule.
    """
    clock = clients.around.clock
    deadline_ms = clock.monotonic_ms() + clients.around.options.finish_ms
    while True:
        restless = _restless(clients, servers)
        is_quiet = not restless and not _open(servers)
        if is_quiet or clock.monotonic_ms() >= deadline_ms:
            return restless
        await asyncio.sleep(_LOOK_EVERY_S)


def _restless(clients: Clients, servers: Servers) -> list[str]:
    """Return what is not as it should be in the end, in words."""
    lacking = []
    hosted = _hosted(servers)
    for topic in clients.around.topics:
        for name in clients.around.partitions(topic):
            if name not in hosted:
                lacking.append(f"{name} is nowhere")
    for name, replicas in hosted.items():
        leading = [each for each in replicas.values() if each.partition.is_leader]
        if len(leading) != 1:
            lacking.append(f"{name} has {len(leading)} leaders")
            continue
        leader = leading[0]
        partition = leader.partition
        if sorted(partition.isr) != sorted(partition.replicas):
            lacking.append(f"the ISR of {name} is {partition.isr} of {partition.replicas}")
        elif sorted(replicas) != sorted(partition.replicas):
            lacking.append(f"{name} is on {sorted(replicas)}, not on {partition.replicas}")
        for broker_id, each in replicas.items():
            if each.log.log_end_offset != partition.high_watermark:
                lacking.append(
                    f"{name} ends at {each.log.log_end_offset} on broker {broker_id}, "
                    f"the high watermark is {partition.high_watermark}"
                )
            if each.partition.leader_epoch != partition.leader_epoch:
                lacking.append(f"broker {broker_id} does not know who leads {name}")
    return lacking


def _open(servers: Servers) -> list[str]:
    """Return where transactions are open."""
    return [
        f"{replica.topic_partition} is stable up to {replica.last_stable_offset}"
        for server in servers.values()
        for replica in server.node.replicas
        if replica.partition.is_leader and replica.last_stable_offset != replica.high_watermark
    ]


def _hosted(servers: Servers) -> dict[TopicPartition, dict[int, Replica]]:
    """Return every replica, by partition and broker."""
    hosted: dict[TopicPartition, dict[int, Replica]] = {}
    for broker_id, server in servers.items():
        for replica in server.node.replicas:
            hosted.setdefault(replica.topic_partition, {})[broker_id] = replica
    return {name: _assigned(hosted[name]) for name in sorted(hosted)}


def _assigned(replicas: dict[int, Replica]) -> dict[int, Replica]:
    """Leave out the replicas that were moved away from a broker that never learned of it: they
    stay there until they are removed by hand, as Kafka's do."""
    newest = max(replicas.values(), key=lambda each: each.partition.leader_epoch)
    assigned = newest.partition.replicas
    return {broker_id: each for broker_id, each in replicas.items() if broker_id in assigned}


def _leaders(servers: Servers) -> dict[TopicPartition, Replica]:
    return {
        name: next(each for each in replicas.values() if each.partition.is_leader)
        for name, replicas in _hosted(servers).items()
    }


# ---- the brokers' logs ----


async def _judge_replicas(
    tally: Tally, servers: Servers, leaders: Mapping[TopicPartition, Replica]
) -> dict[TopicPartition, Truth]:
    """Compare all replicas with their leader's, and return what is in the topics of the clients."""
    truths: dict[TopicPartition, Truth] = {}
    for name, replicas in _hosted(servers).items():
        leader = leaders[name]
        end = leader.partition.high_watermark
        start = max(each.log.log_start_offset for each in replicas.values())
        data = _bytes(leader, start, end)
        for broker_id, replica in replicas.items():
            same = replica is leader or _is_same(replica, start, end, data)
            tally.judge("equal", same, "{} on broker {} is another log", name, broker_id)
            if name.topic in (GROUP_TOPIC, TRANSACTION_TOPIC):
                why = await _loaded(name, replica)
                tally.judge("loads", not why, "{} on broker {}: {}", name, broker_id, why)
        tally.judge("one leader", leader.partition.is_leader, "{}", name)
        if name.topic in (*TOPICS, SHIFTING, FLEETING):
            truths[name] = truth = Truth(data, start, end)
            tally.judge("log", not truth.flaws, "{}: {}", name, truth.flaws)
    return truths


def _is_same(replica: Replica, start: int, end: int, data: bytes) -> bool:
    """Return whether a replica has these bytes or, if brokers compact, has no different records."""
    found = _bytes(replica, start, end)
    return found == data or (is_compacted(replica.log) and same_records(found, data))


def _bytes(replica: Replica, start: int, end: int) -> bytes:
    """Return the batches from offset `start` to `end`."""
    data = bytearray()
    while start < end:
        slices = replica.log.read(start, _READ_BYTES, end)
        try:
            piece = b"".join([part.read() for part in slices])
        finally:
            for part in slices:
                part.release()
        if not piece:
            break
        data += piece
        start = Truth.next_offset(piece)
    return bytes(data)


async def _loaded(name: TopicPartition, replica: Replica) -> str:
    """Return why a coordinator could not begin with this replica, or "" if it could."""
    machine: Groups | Transactions
    if name.topic == GROUP_TOPIC:
        machine, decode = Groups(name.partition, 0, GroupConfig()), decode_group_record
    else:
        machine = Transactions(name.partition, 0, TransactionConfig())
        decode = decode_transaction_record
    try:
        async for _ in replay(replica.log, machine, decode, _READ_BYTES):
            continue
    except (CorruptData, KafkaError) as error:
        return str(error)
    return ""


# ---- over the wire ----


async def _judge_closed(
    tally: Tally, clients: Clients, leaders: Mapping[TopicPartition, Replica]
) -> None:
    """Judge that no transaction is open, either in a partition or at a coordinator."""
    for name, leader in leaders.items():
        stable, end = leader.last_stable_offset, leader.high_watermark
        tally.judge("closed", stable == end, "{} is stable up to {} of {}", name, stable, end)
    async with _admin(clients) as admin:
        for listing in await admin.list_transactions():
            is_over = listing.state in ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
            tally.judge("closed", is_over, "{}", listing)


async def _committed(clients: Clients) -> dict[str, dict[TopicPartition, int]]:
    """Return the offsets that the groups have committed in the end."""
    committed = {}
    async with _admin(clients) as admin:
        for group in (MEMBERS, COPIERS):
            found = await admin.list_group_offsets(group, require_stable=True)
            committed[group] = {name: each.offset for name, each in found.items()}
    return committed


def _admin(clients: Clients) -> Admin:
    around = clients.around
    return Admin(around.servers, seams=around.seams("verdict"), **around.common())


async def _judge_wire(
    tally: Tally,
    clients: Clients,
    truths: Mapping[TopicPartition, Truth],
    *,
    is_committed: bool,
) -> None:
    """Compare what a new consumer reads from each partition with what is in the log."""
    around = clients.around
    # Topics that lose records by age do so between two looks, too.
    truths = {name: truth for name, truth in truths.items() if name.topic != SHIFTING}
    level = "read_committed" if is_committed else "read_uncommitted"
    given: dict[TopicPartition, list[Read]] = {name: [] for name in truths}
    deadline_ms = around.clock.monotonic_ms() + around.options.finish_ms
    async with Consumer(
        around.servers,
        seams=around.seams("verdict"),
        isolation_level=level,
        auto_offset_reset="earliest",
        **around.common(),
    ) as consumer:
        consumer.assign(list(truths))
        while around.clock.monotonic_ms() < deadline_ms:
            try:
                for record in await consumer.poll(around.options.poll_ms):
                    name = TopicPartition(record.topic, record.partition)
                    given[name].append(Read(record.offset, record.value or b""))
                positions = {name: await consumer.position(name) for name in truths}
            except (Unreachable, BarnabasError) as error:
                around.history.tell("the verdict cannot read: {}", error)
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            if all(positions[name] >= truth.end for name, truth in truths.items()):
                break
    for name, truth in truths.items():
        due = truth.visible(truth.start, truth.end, is_committed=is_committed)
        tally.judge(
            "over the wire",
            given[name] == due,
            "a {} consumer is given {} records of {}, {} are there; the first difference is {}",
            level,
            len(given[name]),
            name,
            len(due),
            next((pair for pair in zip(given[name], due, strict=False) if pair[0] != pair[1]), ""),
        )
