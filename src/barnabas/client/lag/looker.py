"""Polls groups repeatedly, and judges the lag of each group in each partition.

Each poll requests the committed offsets from the coordinators, and then the starts and ends of the
logs from the leaders. From each partition with unread records, it reads a limited number of
records.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.record_offsets import Span
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.history import History
from barnabas.client.lag.reader import UnreadReader
from barnabas.client.lag.readings import offsets_at, readings
from barnabas.client.lag.sample import Sample, Unread
from barnabas.client.lag.summary import with_neighbours
from barnabas.client.lag.verdict import judge
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.clock import Clock, SystemClock
from barnabas.protocol.consumer_protocol import CONSUMER_PROTOCOL
from barnabas.types import TopicPartition

_MOST_RANGES: Final = 500  # ranges read in one poll; the rest wait for a later poll
_READ_S: Final = 5.0
_FETCHED_BYTES: Final = 65_536  # few, because often only the first record of a range is needed
_GIVE_UP_MS: Final = 60_000  # how long a range is skipped after an error

_Range = tuple[TopicPartition, int]
"""A partition and a group's position in it. Groups at the same position share the records."""


class _Logs(NamedTuple):
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class LagLooker:
    """Polls groups. Call `look` repeatedly within `async with`."""

    def __init__(
        self,
        servers: str,
        options: dict[str, Any],
        *,
        isolation_level: str,
        patience_ms: int,
        most: int,
    ) -> None:
        """`patience_ms` is described in `judge`, and `most` in `UnreadReader`."""
        self._admin = Admin(servers, **options)
        self._consumer = Consumer(
            bootstrap_servers=servers,
            isolation_level=isolation_level,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=_FETCHED_BYTES,
            **options,
        )
        self._reader = UnreadReader(self._consumer, most)
        self._is_committed = isolation_level == "read_committed"
        self._patience_ms = patience_ms
        self._clock: Clock = SystemClock()
        self._histories: dict[tuple[str, TopicPartition], History] = {}
        self._read: dict[_Range, Unread] = {}
        self._given_up: dict[_Range, tuple[int, str]] = {}  # failed ranges: time and reason
        self.looked_at_ms = 0  # time of the last look by the wall clock

    async def __aenter__(self) -> LagLooker:
        await self._admin.start()
        try:
            await self._consumer.start()
        except BaseException:
            await self._admin.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._consumer.close()
        await self._admin.close()

    async def look(
        self, names: Collection[str] | None = None, others: Container[str] = ()
    ) -> list[GroupLag]:
        """Return the current lag of these groups, or of all groups in the cluster.

        History is kept only for the groups in the latest poll and for `others`, the groups that a
        later poll will include. Raises KafkaError or Unreachable.
        """
        if names is None:
            names = [listing.group_id for listing in await self._admin.list_groups()]
        found = await self._admin.describe_groups(list(names))
        samples, reason = await self._samples(list(found.values()))
        lags = []
        histories = {key: kept for key, kept in self._histories.items() if key[0] in others}
        for group in found.values():
            verdicts = {}
            for name, sample in samples[group.group_id].items():
                key = group.group_id, name
                history = histories[key] = self._histories.get(key) or History()
                history.add(sample)
                verdicts[name] = judge(history, self._patience_ms)
            is_counted = all(verdict.is_exact for verdict in verdicts.values())
            lags.append(GroupLag(group, with_neighbours(verdicts), "" if is_counted else reason))
        self._histories = histories
        self.looked_at_ms = self._clock.wall_ms()
        return lags

    async def _samples(
        self, groups: list[GroupDescription]
    ) -> tuple[dict[str, dict[TopicPartition, Sample]], str]:
        """Return the samples of each group, and why some records were not read ("" if all were)."""
        # Request offsets before ends, so that no group can be beyond an end.
        committed, read, led = await readings(self._admin, groups)
        logs = await self._logs(led)
        at_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
        samples: dict[str, dict[TopicPartition, Sample]] = {}
        for group in groups:
            members = {name: each.member_id for each in group.members for name in each.partitions}
            unassigned_because = _unassigned_because(group)
            own = samples[group.group_id] = {}
            for name in read[group.group_id]:
                at = committed[group.group_id].get(name)
                offset, end = None if at is None else at.offset, logs.ends.get(name)
                if self._is_committed and offset is not None and end is not None:
                    # A read_uncommitted consumer may be beyond the last stable offset.
                    end = max(end, offset)
                own[name] = Sample(
                    at_ms,
                    wall_ms,
                    offset,
                    logs.starts.get(name, 0),
                    end,
                    member=members.get(name),
                    unassigned_because=unassigned_because,
                )
        reason = await self._read_unread(
            (name, sample) for own in samples.values() for name, sample in own.items()
        )
        for own in samples.values():
            for name, sample in own.items():
                own[name] = sample._replace(unread=self._read.get((name, sample.position)))
        return samples, reason

    async def _logs(self, names: set[TopicPartition]) -> _Logs:
        starts = await offsets_at(self._admin, names, EARLIEST)
        ends = await self._admin.list_offsets(
            dict.fromkeys(names, LATEST), read_committed=self._is_committed
        )
        return _Logs(starts, {name: at.offset for name, at in ends.items()})

    async def _read_unread(self, samples: Iterable[tuple[TopicPartition, Sample]]) -> str:
        """Read from each position that has unread offsets. Returns the problem, if any, or ""."""
        ends = {
            (name, sample.position): sample.end
            for name, sample in samples
            if sample.offsets and sample.end is not None
        }
        now_ms = self._clock.monotonic_ms()
        self._read = {
            key: unread
            for key, unread in self._read.items()
            # A shorter log is a different log, because it was truncated or its topic was recreated.
            if key in ends and unread.read_to <= ends[key]
        }
        self._given_up = {
            key: (at_ms, reason)
            for key, (at_ms, reason) in self._given_up.items()
            if key in ends and now_ms - at_ms < _GIVE_UP_MS
        }
        # Unread ranges come first, which gives each its turn.
        waiting = sorted(ends.keys() - self._given_up, key=lambda key: (key in self._read, key))
        waiting = waiting[:_MOST_RANGES]
        deadline_ms = now_ms + int(_READ_S * 1000)
        while waiting and (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            # A consumer has one position per partition, so several groups take several rounds.
            turn: dict[TopicPartition, int] = {}
            for name, position in waiting:
                turn.setdefault(name, position)
            waiting = [(name, position) for name, position in waiting if turn[name] != position]
            spans = {name: Span(at, ends[name, at]) for name, at in turn.items()}
            found = {
                name: self._read[name, at] for name, at in turn.items() if (name, at) in self._read
            }
            errors = await self._reader.read_within(spans, found, left_ms / 1000)
            self._read |= {(name, turn[name]): unread for name, unread in found.items()}
            self._given_up |= {
                (name, turn[name]): (now_ms, reason) for name, reason in errors.items()
            }
        return next((reason for _, reason in self._given_up.values()), "")


def _unassigned_because(group: GroupDescription) -> str:
    """Return the reason why a partition has no known owner, or ""."""
    if group.state in ("PreparingRebalance", "CompletingRebalance"):
        return "the group is rebalancing"
    if group.members and group.protocol_type != CONSUMER_PROTOCOL:
        return f"the members assign their partitions by another protocol, {group.protocol_type}"
    return ""
