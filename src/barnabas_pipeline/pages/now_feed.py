"""Reads the records of the last half hour from a topic, for all viewers of the live view.

One consumer serves all viewers. It runs only while somebody watches, and for a minute after the
last viewer has left, and begins with the records of the last half hour. It has no group, so it
commits nothing, and the positions are kept here: a new consumer continues where the last one ended,
so each record is counted once, whatever becomes of the brokers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.client.consumer.consumer import Consumer
from barnabas.console.message_reader import unknown_topic
from barnabas.console.problem import FAILURES, reason_of
from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.types import TopicPartition
from barnabas_pipeline.pages.last_half_hour import MINUTE_MS, SPAN_MS, LastHalfHour
from barnabas_pipeline.pages.now_records import read_rows, reader_of
from barnabas_pipeline.pages.shapes import Kind, Now

_log = logging.getLogger(__name__)

TOPICS: Final[Mapping[Kind, str]] = {
    "events": "events",
    "access": "web-access",
    "logs": "system-logs",
}
"""The topics from which the pipelines usually read."""

_SHOW_S: Final = 1.0
_ROUND_S: Final = 0.4
"""The records of this time are counted together, because parsing has a fixed cost."""
_POLL_MS: Final = 250
_CHECK_S: Final = 2.0
_PATIENCE_S: Final = 3.0
"""How long a broker may take to answer a question about the topic."""
_RETRY_S: Final = 1.0
_HALVINGS: Final = 12
_MANY: Final = 20_000
"""With more unread records than this, the feed does not pause."""


class Cluster(NamedTuple):
    """The cluster and the topic from which the live view reads."""

    servers: str
    options: Mapping[str, Any]
    topic: str


class Limits(NamedTuple):
    """Limits what the feed uses."""

    most_records: int = 1_000_000
    """If the half hour has more records, the view begins later."""
    kept_s: float = 60.0
    """How long the feed runs without viewers."""


USUAL: Final = Limits()


class NowFeed:
    """The live view of one topic."""

    def __init__(self, kind: Kind, cluster: Cluster, limits: Limits = USUAL) -> None:
        self._kind = kind
        self._cluster = cluster
        self._limits = limits
        self._viewers = 0
        self._left_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._state = _State(kind)

    async def watch(self) -> AsyncGenerator[Now | None, None]:
        """Yield the last half hour about once a second, and None while nothing has changed."""
        self._viewers += 1
        try:
            sent = None
            yield None
            while True:
                self._keep_running()
                now = self._state.now
                is_news = now is not None and (sent is None or _content(now) != _content(sent))
                yield now if is_news else None
                sent = now if is_news else sent
                # Until the first records are counted, ask more often.
                await asyncio.sleep(_ROUND_S if sent is None else _SHOW_S)
        finally:
            self._viewers -= 1
            self._left_s = time.monotonic()

    async def close(self) -> None:
        """End all reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _keep_running(self) -> None:
        """Start the reading task, unless it runs."""
        if self._task is None or self._task.done():
            ended, self._task = self._task, None
            if ended is not None and not ended.cancelled():
                ended.result()  # raises the error that ended it, if any
            self._state = _State(self._kind)
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self._is_over():
            try:
                async with self._consumer() as consumer:
                    await self._follow(consumer)
            except FAILURES as error:
                self._state.problem = reason_of(error)
                self._state.publish()
                await asyncio.sleep(_RETRY_S)

    def _is_over(self) -> bool:
        return not self._viewers and time.monotonic() - self._left_s > self._limits.kept_s

    def _consumer(self) -> Consumer:
        options: dict[str, Any] = {
            "default_api_timeout_ms": round(_PATIENCE_S * 1_000),
            **self._cluster.options,
            "group_id": "",
            "isolation_level": "read_committed",
            # If a log has lost records, others may be counted twice unless reading goes on at its
            # end.
            "auto_offset_reset": "latest",
            "allow_auto_create_topics": False,
            "metadata_max_age_ms": 5_000,
        }
        return Consumer(self._cluster.servers, **options)

    async def _follow(self, consumer: Consumer) -> None:
        """Count records as long as somebody watches. Raises one of `FAILURES`."""
        state = self._state
        checked_s = -_CHECK_S
        while not self._is_over():
            began_s = time.monotonic()
            if began_s - checked_s >= _CHECK_S:
                await self._check(consumer)
                checked_s = time.monotonic()
            found = await _poll(consumer, state) if consumer.assignment() else None
            if found is not None and found.num_rows:
                await asyncio.to_thread(state.count, found)
            state.keep(consumer)
            state.publish()
            if not state.is_behind:
                await asyncio.sleep(max(0.0, began_s + _ROUND_S - time.monotonic()))

    async def _check(self, consumer: Consumer) -> None:
        """Find the partitions of the topic, and begin to read those that are new."""
        topic, state = self._cluster.topic, self._state
        async with asyncio.timeout(_PATIENCE_S):
            numbers = (await consumer.list_topics([topic])).get(topic, [])
            id_ = (await consumer.topic_ids([topic])).get(topic)
            if not numbers:
                state.problem = str(unknown_topic(topic))
                consumer.assign([])
                return
            if state.topic_id not in (None, id_):  # created again
                consumer.assign([])
                state.begin_again()
            state.topic_id = id_
            led = await consumer.available_partitions_for(topic)
        names = [TopicPartition(topic, number) for number in numbers if number in led]
        new = [name for name in names if name not in state.positions]
        if new:
            async with asyncio.timeout(2 * _PATIENCE_S):
                state.positions.update(await self._starts(consumer, new))
        read = set(consumer.assignment())
        consumer.assign(state.positions)
        for name, offset in state.positions.items():
            if name not in read:
                consumer.seek(name, offset)
        without = sorted(set(numbers) - set(led))
        state.problem = ""
        if without:
            listed = ", ".join(map(str, without[:10]))
            state.problem = f"these partitions of {topic!r} have no leader: {listed}"

    async def _starts(
        self, consumer: Consumer, names: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the offsets at which the last half hour begins, or a later time if it has too many
        records.
        """
        ends = await consumer.end_offsets(list(names))
        most, span_ms = self._limits.most_records, SPAN_MS
        for _ in range(_HALVINGS):
            found = await consumer.offsets_for_times(dict.fromkeys(names, _now_ms() - span_ms))
            starts = {}
            for name in names:
                at = found.get(name)
                starts[name] = ends[name] if at is None else min(at.offset, ends[name])
            if sum(ends[name] - starts[name] for name in names) <= most:
                if span_ms < SPAN_MS:
                    self._state.note("start", _late_note(span_ms, most))
                return starts
            span_ms //= 2
        self._state.note("start", "Only new records are counted: too many arrived just before.")
        return ends


class _State:
    """Holds what the feed has counted, and how far it has read."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._reader = reader_of(kind)
        self._counts = LastHalfHour(self._reader.columns)
        self._behind_ms = 0
        self._read_to_ms = 0
        self._notes: dict[str, str] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.topic_id: bytes | None = None
        self.problem = ""
        self.is_behind = False
        """Whether the topic has many more records that can be read."""
        self.now: Now | None = None

    def begin_again(self) -> None:
        """Read a topic that replaces the one read so far, whose counts remain."""
        self.positions.clear()
        self._reader.forget()

    def note(self, name: str, text: str) -> None:
        """Remember why the figures are not complete, replacing an earlier note of this name."""
        self._notes[name] = text

    def count(self, records: pa.Table) -> None:
        """Count records. Called in a worker thread, while nothing else uses the state's counts."""
        now_ms = _now_ms()
        self._counts.add(read_rows(self._reader, records, now_ms), now_ms)
        newest = pa.compute.max(records["timestamp"].cast(pa.int64())).as_py()
        self._read_to_ms = min(now_ms, newest or now_ms)
        self._behind_ms = _now_ms() - self._read_to_ms

    def keep(self, consumer: Consumer) -> None:
        """Remember the consumer's positions, and whether it is behind."""
        lags = []
        for name, at in consumer.positions().items():
            self.positions[name] = at.offset
            lags.append(consumer.current_lag(name) or 0)
        self.is_behind = sum(lags) > _MANY

    def publish(self) -> None:
        """Compute what viewers see."""
        now_ms = _now_ms()
        shown = self._counts.show(now_ms)
        shown["lists"] = [each for each in self._reader.lists(self._counts) if each["rows"]]
        shown["at"] = self._read_to_ms if self.is_behind else now_ms
        shown["behind_ms"] = self._behind_ms
        shown["problem"] = self.problem
        if self._kind == "logs":
            shown["online"] = None
        notes = [*self._notes.values()]
        if self._counts.is_partial:
            notes.append("There are too many different values, so counts in lists may be too low.")
        shown["note"] = " ".join(notes)
        self.now = shown


async def _poll(consumer: Consumer, state: _State) -> pa.Table:
    try:
        return await consumer.poll_arrow(_POLL_MS, with_headers=True)
    except CorruptData as error:
        _log.warning("the live view skips damaged records: %s", error)
        state.note("damage", "Damaged records were skipped, and others with them.")
        await consumer.seek_to_end()
        return await consumer.poll_arrow(0, with_headers=True)


def _late_note(span_ms: int, most: int) -> str:
    minutes = max(1, span_ms // MINUTE_MS)
    return (
        f"Counting began with the last {counted(minutes, 'minute')}: the half hour has more than "
        f"{most:,} records."
    )


def _content(now: Now) -> dict[str, Any]:
    return {name: value for name, value in now.items() if name != "at"}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
