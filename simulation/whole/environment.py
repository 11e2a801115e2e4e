"""The settings that all clients of a run share: where the brokers are, how long to wait, when to
end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.channel import Seams
from barnabas.client.config import ClientOptions
from barnabas.clock import Clock
from barnabas.types import TopicPartition
from simulation.whole.history import History

SURE, ONE, NONE, ATOMIC, COPIES = "sure", "one", "none", "atomic", "copies"
"""Topics: written with acks=all, acks=1 or acks=0, in transactions, or copied from `SURE` in
transactions."""

TOPICS = (SURE, ONE, NONE, ATOMIC, COPIES)

KEYED, SHIFTING, FLEETING = "keyed", "shifting", "fleeting"
"""Topics that do not keep everything: a compacted topic, written with keys, partly in
transactions; a topic that grows and loses records by age and by deletion; and a topic that is
deleted and recreated. Each exists if it has writers."""

RETENTION_MS = 3_000
"""The minimum retention of `SHIFTING`."""

MEMBERS, COPIERS = "members", "copiers"
"""Groups: one reads `SURE` and commits, the other copies it."""

ACKS: Mapping[str, int] = MappingProxyType(
    {SURE: -1, ONE: 1, NONE: 0, ATOMIC: -1, COPIES: -1, SHIFTING: -1, KEYED: -1}
)


class Options(NamedTuple):
    """How much is done, and how long anything may take."""

    sure_writers: int = 2
    large_writers: int = 1  # like sure ones, with some records that are too large
    one_writers: int = 1
    none_writers: int = 1
    hasty_writers: int = 0
    odd_writers: int = 0
    keyed_writers: int = 0
    keyed_transactors: int = 0
    shifting_writers: int = 0
    remakers: int = 0
    transactors: int = 2
    copiers: int = 2
    readers: int = 1  # of each isolation level
    members: int = 3
    partitions: int = 2
    replication_factor: int = 3
    min_insync_replicas: int = 2
    is_flushed: bool = False  # brokers flush every record before they acknowledge it
    assignor: str = "range,cooperative-sticky"

    most_per_round: int = 5
    pause_ms: int = 300  # at most, between the rounds of a writer
    poll_ms: int = 200
    zombie_chance: float = 0.25  # of a transaction: that a successor takes the id meanwhile
    abort_chance: float = 0.25
    leave_chance: float = 0.02  # of a poll of a member or of a copier
    dawdle_chance: float = 0.01  # of a copier's transaction: that its group gives it up meanwhile
    again_chance: float = 0.02  # of a poll of a reader: that it starts over
    size_bytes: int = 300  # of a record, at most
    large_bytes: int = 6_000  # of a refused record
    max_message_bytes: int = 4_096

    request_timeout_ms: int = 2_000
    delivery_timeout_ms: int = 600_000
    max_block_ms: int = 20_000
    transaction_timeout_ms: int = 15_000
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 500
    max_poll_interval_ms: int = 10_000
    prepare_ms: int = 60_000
    finish_ms: int = 120_000  # until all must have ended, once they have been asked to


class Environment:
    """The environment of every client; `Clients` sets `is_stopping` and `is_draining`."""

    __slots__ = (
        "clock",
        "grown",
        "history",
        "is_draining",
        "is_stopping",
        "options",
        "seams",
        "servers",
    )

    def __init__(
        self,
        servers: Sequence[str],
        seams: Callable[[str], Seams],
        clock: Clock,
        options: Options,
        history: History,
    ) -> None:
        self.servers = tuple(servers)
        self.seams = seams
        self.clock = clock
        self.options = options
        self.history = history
        self.grown: dict[str, int] = {}
        """The present number of partitions of each topic to which partitions were added."""
        self.is_stopping = False  # nothing new is written
        self.is_draining = False  # no client writes, and readers go on to the end

    def common(self) -> ClientOptions:
        """Return the options of each client, with which it soon notices that a broker is away."""
        options = self.options
        return ClientOptions(
            request_timeout_ms=options.request_timeout_ms,
            default_api_timeout_ms=options.max_block_ms,
            socket_connection_setup_timeout_ms=options.request_timeout_ms,
            metadata_max_age_ms=5_000,
            retry_backoff_ms=50,
            retry_backoff_max_ms=400,
            reconnect_backoff_max_ms=400,
        )

    def partitions(self, topic: str) -> list[TopicPartition]:
        count = self.options.partitions
        if topic in (KEYED, SHIFTING, FLEETING):
            count = self.grown.get(topic, 1)
        return [TopicPartition(topic, number) for number in range(count)]

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that exist all the time."""
        options = self.options
        more = [KEYED] if options.keyed_writers else []
        return (*TOPICS, *more, *([SHIFTING] if options.shifting_writers else []))

    async def rest(self, random: Random, most_ms: int) -> None:
        await asyncio.sleep(random.randint(1, max(most_ms, 1)) / 1000)
