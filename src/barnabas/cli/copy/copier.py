"""Copies the records of partitions exactly once, and can be killed at any time.

A transaction of the target contains the records and the progress. An attempt begins by fencing
earlier writers and reading the committed progress, so it never matters how the last attempt ended.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.cli.copy.fetches import Fetches
from barnabas.cli.copy.offset_map import OffsetMap, runs_of
from barnabas.cli.copy.progress import PROGRESS, Entry, Progress, entry_drafts
from barnabas.cli.copy.restamp import Draft, drafts_of
from barnabas.cli.copy.writer import Request, Writer
from barnabas.client.consumer.fetched import Chunk
from barnabas.client.errors import Unreachable
from barnabas.errors import (
    BarnabasError,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    MessageTooLarge,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    UnknownProducerId,
)
from barnabas.types import TopicPartition

_IN_FLIGHT_BYTES = 16 * 1024 * 1024
_TURN_BYTES = 1024 * 1024  # between turns of the event loop, which sends and receives
_REQUEST_BYTES = 16 * 1024 * 1024
_TRANSACTION_BYTES = 512 * 1024 * 1024
_TRANSACTION_S = 2.0
_WAIT_MS = 250
_PAUSE_S, _PATIENCE_S = 0.5, 120.0
_FENCED = (ProducerFenced, InvalidProducerEpoch)
_NEXT_ATTEMPT_HELPS = (
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    InvalidTxnState,
    UnknownProducerId,
    *_FENCED,
)


class CopyFailed(BarnabasError):
    """The copy cannot continue, for the reason in the message."""


class Pace(NamedTuple):
    """How long to copy, and how fast. `rate` is in bytes per second; 0: without a limit."""

    follows: bool
    rate: int
    stopping: asyncio.Event


class Total:
    """Counts what this run has copied and committed."""

    def __init__(self) -> None:
        self.records = self.size_bytes = self.transactions = 0


class Copier:
    """Copies partitions from one cluster to another."""

    def __init__(
        self,
        source: Fetches,
        writer: Writer,
        source_id: str,
        pace: Pace,
        say: Callable[[str], None],
    ) -> None:
        self._source, self._writer, self._pace, self._say = source, writer, pace, say
        self._source_id = source_id
        self._target = Fetches(writer.cluster)
        self.progress = Progress(source_id)
        self.total = Total()
        self.on_commit: Callable[[Total], None] = lambda total: None
        self._run_id = uuid.uuid4().hex
        self._known_owners: set[str | None] = set()
        self._is_fenced = False
        self._begin([])

    def _begin(self, names: Collection[TopicPartition]) -> None:
        self._positions: dict[TopicPartition, int] = dict.fromkeys(names, 0)
        self._sent: deque[Request] = deque()
        self._in_flight_bytes, self._bytes_to_turn = 0, _TURN_BYTES
        self._forget()

    def _forget(self) -> None:
        """Start with the next transaction."""
        self._runs: dict[TopicPartition, OffsetMap] = {}
        self._entries: list[Entry] = []
        self._records = self._size_bytes = 0
        self._began_at = time.monotonic()

    async def run(self, topics: Mapping[str, str], names: Collection[TopicPartition]) -> None:
        """Copy until the end of the source, or until asked to stop.

        `topics` maps each topic to the id of its copy.

        Raises CopyFailed, or the last error once repeating has not helped for a while.
        """
        patient_until = time.monotonic() + _PATIENCE_S
        while True:
            before = self.total.transactions
            try:
                await self._attempt(topics, names)
                return
            except MessageTooLarge as error:
                raise CopyFailed(
                    f"{error}; raise max.message.bytes of the target's topic"
                ) from error
            except (Unreachable, KafkaError) as error:
                helps = isinstance(error, (Unreachable, *_NEXT_ATTEMPT_HELPS))
                if not (helps or (isinstance(error, KafkaError) and error.retriable)):
                    raise
                if self.total.transactions > before:
                    patient_until = time.monotonic() + _PATIENCE_S
                if time.monotonic() > patient_until:
                    raise
                self._is_fenced = isinstance(error, _FENCED)
                self._say(f"continuing after an error: {error}")
            await asyncio.sleep(_PAUSE_S)
            self._source.cluster.metadata.request_refresh()
            self._writer.cluster.metadata.request_refresh()

    async def _attempt(self, topics: Mapping[str, str], names: Collection[TopicPartition]) -> None:
        if self._is_fenced:  # a run that has replaced this one must not be fenced in turn
            self._check_owner(await read_progress(self._target, self._source_id))
        await self._writer.identify()
        self._is_fenced = False
        self.progress = await read_progress(self._target, self._source_id)
        self._check_owner(self.progress)
        self._begin(names)
        fresh = sorted(topics.items() - self.progress.topics.items())
        entries = [self.progress.topic_entry(*each) for each in fresh]
        if self.progress.owner != self._run_id:
            entries.append(self.progress.owner_entry(self._run_id))
        await self.record(entries)
        self._known_owners = {self._run_id}
        ends = await self._source.ends(list(names))
        for name in names:
            known = self.progress.maps.get(name)
            start, end = ends[name]
            position = start if known is None else known.position
            if position > end:
                raise CopyFailed(
                    f"{name} was copied up to offset {position}, but ends at {end}: if the topic "
                    "was created again, delete its copy, and it is copied from its start"
                )
            if position < start and known is not None:
                self._say(f"{name}: records {position} to {start - 1} expired before the copy")
            self._positions[name] = max(position, start)
        goals = {name: each.end for name, each in ends.items()}
        await self._copy(goals)

    def _check_owner(self, progress: Progress) -> None:
        """Raise CopyFailed if another run has started since this one.

        The epoch does not tell: this run itself may have raised it by a request whose response was
        lost. Until the first transaction is known to be committed, the owner is either the run
        before this one or this one.
        """
        if not self._known_owners:
            self._known_owners = {progress.owner, self._run_id}
        if progress.owner not in self._known_owners:
            raise CopyFailed(
                "another `barnabas copy` from the same cluster has started; "
                "run the command again to continue"
            )

    async def _copy(self, goals: dict[TopicPartition, int]) -> None:
        coming: asyncio.Task[list[Chunk]] | None = None
        began_at, size_bytes = time.monotonic(), 0
        try:
            while not self._pace.stopping.is_set():
                if not (wanted := self._wanted(goals)):
                    break
                chunks = await (coming or self._source.fetch(wanted, _WAIT_MS))
                coming = None
                if not chunks:
                    await self.commit()
                    continue
                for chunk in chunks:
                    # The partitions that were served are asked for last, so each has its turn.
                    self._positions.pop(chunk.topic_partition)
                    self._positions[chunk.topic_partition] = chunk.next_offset
                if wanted := self._wanted(goals):
                    coming = asyncio.ensure_future(self._source.fetch(wanted, _WAIT_MS))
                await self._write(chunks)
                size_bytes += sum(len(chunk.records) for chunk in chunks)
                if self._is_due():
                    await self.commit()
                if self._pace.rate:
                    ahead_s = size_bytes / self._pace.rate - (time.monotonic() - began_at)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._pace.stopping.wait(), max(0.0, ahead_s))
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        await self.commit()

    def _wanted(self, goals: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if self._pace.follows:
            return dict(self._positions)
        return {name: at for name, at in self._positions.items() if at < goals[name]}

    def _is_due(self) -> bool:
        is_old = time.monotonic() - self._began_at > _TRANSACTION_S
        return is_old or self._size_bytes >= _TRANSACTION_BYTES

    async def _write(self, chunks: Sequence[Chunk]) -> None:
        """Send what the chunks contain. Does not wait for the last responses."""
        drafts: dict[TopicPartition, Iterator[Draft]] = {}
        for chunk in chunks:
            drafts[chunk.topic_partition] = drafts_of(chunk)
        while drafts:
            batches: list[tuple[TopicPartition, Draft]] = []
            size_bytes = 0
            for name, each in list(drafts.items()):
                draft = next(each, None)
                if draft is None:
                    del drafts[name]
                    continue
                batches.append((name, draft))
                size_bytes += draft.size_bytes
                if size_bytes > _REQUEST_BYTES:
                    break
            await self._send(batches)

    async def _send(self, batches: Sequence[tuple[TopicPartition, Draft]]) -> None:
        await self._writer.add([name for name, _ in batches])
        self._sent += await self._writer.send(batches)
        size_bytes = sum(draft.size_bytes for _, draft in batches)
        self._in_flight_bytes += size_bytes
        self._bytes_to_turn -= size_bytes
        if self._bytes_to_turn < 0:
            self._bytes_to_turn = _TURN_BYTES
            await asyncio.sleep(0)
        if self._in_flight_bytes > _IN_FLIGHT_BYTES:
            # Half at once, because a turn of the loop for each response takes longer than to send.
            await self._settle(_IN_FLIGHT_BYTES // 2)

    async def _settle(self, most_bytes: int) -> None:
        """Wait for responses, until at most so much is in flight."""
        while self._sent and self._in_flight_bytes > most_bytes:
            request = self._sent.popleft()
            base_offsets = await request.base_offsets()
            for name, draft in request.drafts:
                self._in_flight_bytes -= draft.size_bytes
                if name != PROGRESS:
                    self._add(name, draft, base_offsets[name])

    def _add(self, name: TopicPartition, draft: Draft, base_offset: int) -> None:
        runs = self._runs.get(name)
        if runs is None:
            runs = self._runs[name] = OffsetMap()
        for run in runs_of(draft.offsets, base_offset):
            runs.append(run)
        self._records += len(draft.offsets)
        self._size_bytes += draft.size_bytes

    async def record(self, entries: Sequence[Entry]) -> None:
        """Add entries to the progress, in a transaction of their own."""
        if entries:
            self._entries += entries
            await self.commit()

    async def commit(self) -> None:
        """Commit what was sent, together with the progress, unless there is nothing new."""
        await self._settle(-1)
        for name, position in self._positions.items():
            known = self.progress.maps.get(name)
            runs = list(self._runs.get(name, ()))
            if runs or position > (known.position if known is not None else 0):
                start = known.position if known is not None else 0
                self._entries += self.progress.runs_entries(name, runs, start, position)
        if not self._entries:
            return
        await self._writer.add([PROGRESS])
        for draft in entry_drafts(self._entries, time.time_ns() // 1_000_000):
            await self._send([(PROGRESS, draft)])
        await self._settle(-1)
        await self._writer.commit()
        for key, value in self._entries:
            self.progress.apply(key, value)
        self.total.records += self._records
        self.total.size_bytes += self._size_bytes
        self.total.transactions += 1
        self._forget()
        self.on_commit(self.total)


async def read_progress(target: Fetches, source_id: str) -> Progress:
    """Read the committed progress of copies from this cluster."""
    progress = Progress(source_id)
    ends = (await target.ends([PROGRESS]))[PROGRESS]
    async for chunk in target.records(PROGRESS, ends.start, ends.end):
        for record in chunk.iterate(check_crcs=True):
            progress.apply(record.key, record.value)
    return progress
