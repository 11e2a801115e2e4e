"""What consumer groups cost a broker: many members that only heartbeat, commits, a large join.

    python -m benchmarks.groups [--members N] [--only heartbeats|commits|join|load] [--json FILE]

The client is one process that does as little as it can; CPU is the broker's own.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.errors import CoordinatorLoadInProgress
from barnabas.protocol.api import (
    API_VERSIONS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from benchmarks.accounting import cpu_seconds, resident_bytes
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.light_client import LightClient, frame_of
from benchmarks.raw_client import Frames, Pipeline
from tests.kit.processes.broker_process import BrokerProcess, broker_process

COMMAND = "python -m benchmarks.groups"
MEMBERS, GROUPS = 10_000, 1_000
HEARTBEAT_SECONDS = 3.0
_MEASURED_SECONDS = 15.0
_JOIN, _SYNC, _BEAT, _COMMIT, _FETCH = 3, 2, 2, 7, 5  # versions: the last before the flexible ones
_AT_ONCE = 200  # connections that are being made
_LOADED_RECORDS = 1_000_000
_PER_COMMIT = 1_000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--members", type=int, default=MEMBERS, help=f"default {MEMBERS}")
    parser.add_argument("--only", choices=_PARTS, action="append", help="repeatable")
    options = parser.parse_args()
    figures = measure(options.members, options.only or ())
    show("Groups", figures, options.json)


def measure(members: int = MEMBERS, parts: Sequence[str] = ()) -> list[Figure]:
    """The figures of these parts, or of all, with that many members (a share of the records in
    `load`)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    figures = []
    for part in parts or _PARTS:
        with tempfile.TemporaryDirectory() as directory:
            figures += _PARTS[part](Path(directory), members)
    return figures


def _heartbeats(directory: Path, members: int) -> list[Figure]:
    # No member comes too late for the first rebalance, however slow the client is.
    delay_ms = min(10_000, members)
    with broker_process(directory, f"group.initial.rebalance.delay.ms={delay_ms}") as broker:
        assert broker.process is not None
        cores, late_ms = asyncio.run(_run_heartbeats(broker.process.pid, broker.port, members))
        megabytes = resident_bytes(broker.process.pid) / 1e6
    what = f"{members:,} members, a heartbeat each 3 s"
    return [
        Figure(f"{what}: broker", "cores", cores, 0.5, command=COMMAND),
        Figure(f"{what}: resident", "MB", megabytes, 250, command=COMMAND),
        Figure(f"{what}: answered after, p99", "ms", late_ms, command=COMMAND),
    ]


async def _run_heartbeats(pid: int, port: int, members: int) -> tuple[float, float]:
    """CPU seconds per second of the broker, and the 99th percentile of its answers in ms."""
    await _find_coordinator(port)
    limit = asyncio.Semaphore(_AT_ONCE)
    clients = await asyncio.gather(*[_connect(port, limit) for _ in range(members)])
    per_group = max(1, members // GROUPS)
    took_ms: list[float] = []
    are_in = asyncio.Semaphore(0)
    beating = [
        asyncio.create_task(_live(client, f"group-{i // per_group}", are_in, took_ms))
        for i, client in enumerate(clients)
    ]
    for _ in range(members):
        await are_in.acquire()
    await asyncio.sleep(HEARTBEAT_SECONDS)
    took_ms.clear()
    before, began = cpu_seconds(pid), time.monotonic()
    # At least for as long as it takes until each has sent one.
    await asyncio.sleep(max(HEARTBEAT_SECONDS, min(_MEASURED_SECONDS, members / 100)))
    cores = (cpu_seconds(pid) - before) / (time.monotonic() - began)
    for task in beating:
        task.cancel()
    failed = [task for task in beating if task.done() and not task.cancelled()]
    assert not failed, f"{len(failed)} members fell out: {failed[0].exception()}"
    for client in clients:
        client.close()
    return cores, statistics.quantiles(took_ms, n=100)[-1]


async def _connect(port: int, limit: asyncio.Semaphore) -> LightClient:
    async with limit:
        return await LightClient.connect(port)


async def _live(
    client: LightClient, group: str, are_in: asyncio.Semaphore, took_ms: list[float]
) -> None:
    """Be a member: join, and say so again and again."""
    heartbeat = await _join(client, group)
    are_in.release()
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        began = time.perf_counter()
        answer = await client.send(heartbeat)
        took_ms.append((time.perf_counter() - began) * 1000)
        assert answer[-2:] == b"\0\0", answer.hex()  # the error code comes last


async def _join(client: LightClient, group: str) -> bytes:
    """Through a rebalance; the heartbeat of the member that is in the group then."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0" + bytes(8))],
    )
    joined = await client.call(JOIN_GROUP, _JOIN, request, JoinGroupResponse)
    assert not joined.error_code, joined
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")
            for member in joined.members
        ],
    )
    synced = await client.call(SYNC_GROUP, _SYNC, sync, SyncGroupResponse)
    assert not synced.error_code, synced
    beat = HeartbeatRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return frame_of(HEARTBEAT, _BEAT, beat)


async def _find_coordinator(port: int) -> None:
    client = await LightClient.connect(port)
    request = FindCoordinatorRequest(key="group")
    found = await client.call(FIND_COORDINATOR, 2, request, FindCoordinatorResponse)
    assert not found.error_code, found
    client.close()


def _join_of_many(directory: Path, members: int) -> list[Figure]:
    with broker_process(directory, "group.initial.rebalance.delay.ms=0") as broker:
        seconds = asyncio.run(_run_join(broker.port, max(2, members // 100)))
    what = f"a join of {max(2, members // 100)} members settles"
    return [Figure(what, "s", seconds, 1.0, command=COMMAND)]


async def _run_join(port: int, members: int) -> float:
    await _find_coordinator(port)
    clients = [await LightClient.connect(port) for _ in range(members)]
    began = time.perf_counter()
    generations = [-1] * members
    await asyncio.gather(*[_settle(clients[i], i, generations) for i in range(members)])
    seconds = time.perf_counter() - began
    for client in clients:
        client.close()
    return seconds


async def _settle(client: LightClient, number: int, generations: list[int]) -> None:
    """Join until all members are in one generation: `generations` has that of each."""
    member_id = ""
    while True:
        request = JoinGroupRequest(
            group_id="large",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0" + bytes(8))],
        )
        joined = await client.call(JOIN_GROUP, _JOIN, request, JoinGroupResponse)
        assert not joined.error_code, joined
        member_id = joined.member_id
        sync = SyncGroupRequest(
            group_id="large",
            generation_id=joined.generation_id,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")
                for member in joined.members
            ],
        )
        synced = await client.call(SYNC_GROUP, _SYNC, sync, SyncGroupResponse)
        if synced.error_code:
            continue
        generation = generations[number] = joined.generation_id
        # Heartbeats, as a real member: one that stopped here would hold up the next rebalance.
        beat = HeartbeatRequest(group_id="large", generation_id=generation, member_id=member_id)
        while not (await client.call(HEARTBEAT, _BEAT, beat, HeartbeatResponse)).error_code:
            if generations.count(generation) == len(generations):
                return
            await asyncio.sleep(0.001)


def _commits(directory: Path, members: int) -> list[Figure]:
    with broker_process(directory) as broker:
        assert broker.process is not None
        create_topic(broker.bootstrap_servers, "read", 1)
        asyncio.run(_find_coordinator(broker.port))
        pipeline = Pipeline(broker.port, Frames([_commit_frame("read", 1)] * 64, 16, 64))
        try:
            pipeline.run(1.0)
            before = cpu_seconds(broker.process.pid)
            run = pipeline.run(4.0)
            cpu_us = (cpu_seconds(broker.process.pid) - before) / run.requests * 1e6
        finally:
            pipeline.close()
    return [
        Figure(
            "OffsetCommit, pipelined", "1/s", run.requests / run.seconds, 15_000, at_most=False,
            command=COMMAND,
        ),
        Figure("OffsetCommit: broker CPU", "us", cpu_us, command=COMMAND),
    ]  # fmt: skip


def _commit_frame(topic: str, partitions: int) -> bytes:
    request = OffsetCommitRequest(
        group_id="group",
        topics=[
            OffsetCommitTopic(
                name=topic,
                partitions=[
                    OffsetCommitPartition(
                        partition_index=i, committed_offset=5, committed_metadata=""
                    )
                    for i in range(partitions)
                ],
            )
        ],
    )
    return frame_of(OFFSET_COMMIT, _COMMIT, request)


def _load(directory: Path, members: int) -> list[Figure]:
    """A partition of `__consumer_offsets` with a million records, read at the start."""
    records = _LOADED_RECORDS * members // MEMBERS
    with broker_process(directory) as broker:
        create_topic(broker.bootstrap_servers, "read", _PER_COMMIT)
        asyncio.run(_find_coordinator(broker.port))
        pipeline = Pipeline(broker.port, Frames([_commit_frame("read", _PER_COMMIT)], 1, 4))
        try:
            pipeline.send(max(2, records // _PER_COMMIT))
        finally:
            pipeline.close()
        broker.stop()
        broker.start()
        seconds, stall_ms = asyncio.run(_until_loaded(broker))
    what = f"__consumer_offsets with {records:,} records"
    return [
        Figure(f"{what}: loaded after", "s", seconds, 10.0, command=COMMAND),
        Figure(f"{what}: longest wait of others", "ms", stall_ms, command=COMMAND),
    ]


async def _until_loaded(broker: BrokerProcess) -> tuple[float, float]:
    """Seconds until offsets are answered, and the longest answer time of another client in ms."""
    asking, other = [await LightClient.connect(broker.port) for _ in range(2)]
    ping = frame_of(API_VERSIONS, 0, ApiVersionsRequest())
    longest = 0.0
    began = time.perf_counter()

    async def disturb() -> None:
        nonlocal longest
        while True:
            sent = time.perf_counter()
            await other.send(ping)
            longest = max(longest, time.perf_counter() - sent)
            await asyncio.sleep(0.001)

    disturbing = asyncio.create_task(disturb())
    request = OffsetFetchRequest(group_id="group", topics=None)
    while True:
        fetched = await asking.call(OFFSET_FETCH, _FETCH, request, OffsetFetchResponse)
        if fetched.error_code != CoordinatorLoadInProgress.code:
            break
        await asyncio.sleep(0.01)
    assert not fetched.error_code, fetched.error_code
    seconds = time.perf_counter() - began
    disturbing.cancel()
    with suppress(asyncio.CancelledError):
        await disturbing
    asking.close()
    other.close()
    return seconds, longest * 1000


_PARTS: dict[str, Callable[[Path, int], list[Figure]]] = {
    "heartbeats": _heartbeats,
    "commits": _commits,
    "join": _join_of_many,
    "load": _load,
}

if __name__ == "__main__":
    main()
