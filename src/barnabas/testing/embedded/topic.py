"""Provides a topic for tests, with methods that write, read or wait in one line.

orders = broker.topic("orders", partitions=3)
orders.send(b"one", key=b"anna")
assert orders.values() == [b"one"]
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from barnabas.client import arguments
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.counted import counted
from barnabas.testing.embedded.client_thread import ClientThread
from barnabas.testing.embedded.settings import TIMEOUT_S
from barnabas.testing.embedded.waiting import Sight, is_wait_timeout
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import TopicDescription
    from barnabas.client.consumer.fetched import ConsumerRecord
    from barnabas.client.producer.batch import RecordOptions
    from barnabas.client.producer.delivery import RecordMetadata
    from barnabas.client.view import PartitionView

__tracebackhide__ = is_wait_timeout

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"

_MOST_RECORDS: Final = 1_000_000
_POLL_MS: Final = 100
_SHOWN_BYTES: Final = 60

Range = tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]
"""The first offset and the end offset of each partition."""


_Pair = tuple[bytes | None, bytes | None]  # value and key, as in `send`


class GivenRecord(TypedDict, total=False):
    """A record with a key, for `Topic.send_many`."""

    value: bytes | str | None
    key: bytes | str | None


class Topic:
    """A topic on a running broker, returned by `broker.topic(name)`.

    Every method blocks for at most `timeout_s` seconds and may be called in any thread.
    """

    def __init__(self, name: str, clients: ClientThread) -> None:
        self.name = name
        self._clients = clients

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, at {self._clients.bootstrap_servers()})"

    @property
    def partitions(self) -> list[int]:
        """Return the numbers of the topic's partitions. Raises UnknownTopicOrPartition."""
        return [each.partition for each in self.describe().partitions]

    def describe(self, timeout_s: float = TIMEOUT_S) -> TopicDescription:
        """Return the topic's partitions with their leaders, replicas and ISRs. Raises
        UnknownTopicOrPartition."""
        return self._clients.run(self._describe, f"topic {self.name!r}", timeout_s)

    # ---- records ----

    def send(
        self,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        **rest: Unpack[RecordOptions],
    ) -> RecordMetadata:
        """Append a record, and return its partition and offset once all in-sync replicas have
        stored it.

        Text is sent as UTF-8. `partition`, `timestamp_ms` and `headers` are as in
        `SyncProducer.send`. Raises the same errors as `SyncProducer.send`, and TimeoutError.
        """
        (place,) = self._send_all([_pair(value, key)], rest, timeout_s)
        return place

    def send_many(
        self,
        records: Iterable[bytes | str | GivenRecord | None],
        *,
        timeout_s: float = TIMEOUT_S,
        **rest: Unpack[RecordOptions],
    ) -> list[RecordMetadata]:
        """Send many values in one call. To send a key, write `{"value": "one", "key": "anna"}`.

        A tuple raises TypeError, because it does not show which item is the key.
        """
        pairs = [_given(each) for each in arguments.iterator(records, "records")]
        return self._send_all(pairs, rest, timeout_s)

    def _send_all(
        self, pairs: Sequence[_Pair], rest: RecordOptions, timeout_s: float
    ) -> list[RecordMetadata]:
        what = f"sending {counted(len(pairs), 'record')} to {self.name!r}"
        return self._clients.run_once(self._send(pairs, rest), what, timeout_s)

    def records(
        self, *, isolation_level: str = READ_UNCOMMITTED, timeout_s: float = TIMEOUT_S
    ) -> list[ConsumerRecord]:
        """Return all records of the topic, sorted by partition and offset.

        `isolation_level`: "read_committed" omits aborted records, and stops at the first open
        transaction. Raises UnknownTopicOrPartition or WaitTimeout. Raises ValueError if there are
        more than a million records; use a consumer instead.
        """
        work = partial(self._records, isolation_level)
        return self._clients.run(work, f"the records of topic {self.name!r}", timeout_s)

    def values(
        self, *, isolation_level: str = READ_UNCOMMITTED, timeout_s: float = TIMEOUT_S
    ) -> list[bytes | None]:
        """Return the values of `records`."""
        found = self.records(isolation_level=isolation_level, timeout_s=timeout_s)
        return [record.value for record in found]

    def wait_for_records(
        self,
        count: int,
        *,
        isolation_level: str = READ_UNCOMMITTED,
        timeout_s: float = TIMEOUT_S,
    ) -> list[ConsumerRecord]:
        """Return `records` once there are at least `count` of them. Raises WaitTimeout."""
        arguments.whole_number(count, "count")
        looked: list[Range] = []

        async def look() -> Sight[list[ConsumerRecord]]:
            between = await self._range(isolation_level)
            # Do not read on every check, but only when there may be enough records, or no more
            # arrive. Offsets are an upper bound, because markers and compacted records also have
            # offsets.
            if _length(between) < count and looked != [between]:
                looked[:] = [between]
                return Sight([], False, counted(_length(between), "record"))
            records = await self._records(isolation_level)
            return Sight(records, len(records) >= count, _seen(records))

        wanted = f"{counted(count, 'record')} in topic {self.name!r}"
        return self._clients.wait(look, wanted, timeout_s)

    # ---- replicas ----

    def wait_for_leader(
        self,
        partition: int = 0,
        leader: int | None = None,
        *,
        other_than: int | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> int:
        """Wait for a leader of the partition, and return its id. Raises WaitTimeout.

        `leader`: wait for this broker; `other_than`: wait for any broker other than this one, for
        example after it was stopped.
        """

        async def look() -> Sight[int]:
            view = await self._partition(partition)
            # -1 means no leader.
            is_wanted = view.leader == leader if leader is not None else view.leader >= 0
            return Sight(view.leader, is_wanted and view.leader != other_than, _replicas(view))

        wanted = "a leader" if leader is None else f"broker {leader} as the leader"
        if other_than is not None:
            wanted += f" other than broker {other_than}"
        wanted += f" of partition {partition} of topic {self.name!r}"
        return self._clients.wait(look, wanted, timeout_s)

    def wait_for_isr(
        self, partition: int, isr: Iterable[int], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Wait until exactly these brokers are in sync, in any order. Raises WaitTimeout."""
        members = sorted(arguments.iterator(isr, "isr"))

        async def look() -> Sight[None]:
            view = await self._partition(partition)
            return Sight(None, sorted(view.isr) == members, _replicas(view))

        wanted = f"ISR {members} in partition {partition} of topic {self.name!r}"
        self._clients.wait(look, wanted, timeout_s)

    def delete(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Delete the topic with all its records. Raises UnknownTopicOrPartition."""

        async def delete() -> None:
            admin = await self._clients.admin()
            await admin.delete_topics([self.name])

        self._clients.run(delete, f"the end of topic {self.name!r}", timeout_s)

    # ---- methods that run on the clients' loop ----

    async def _describe(self) -> TopicDescription:
        admin = await self._clients.admin()
        (described,) = await admin.describe_topics([self.name])
        return described

    async def _partition(self, number: int) -> PartitionView:
        described = await self._describe()
        for each in described.partitions:
            if each.partition == number:
                return each
        raise ValueError(
            f"partition: topic {self.name!r} has "
            f"{counted(len(described.partitions), 'partition')}, but no partition {number}"
        )

    async def _send(self, pairs: Sequence[_Pair], rest: RecordOptions) -> list[RecordMetadata]:
        producer = await self._clients.producer()
        deliveries = [await producer.send(self.name, value, key, **rest) for value, key in pairs]
        return [await delivery for delivery in deliveries]

    async def _records(self, isolation_level: str) -> list[ConsumerRecord]:
        begins, ends = await self._range(isolation_level)
        unread = {name: end for name, end in ends.items() if end > begins[name]}
        found: list[ConsumerRecord] = []
        async with Consumer(
            self._clients.bootstrap_servers(),
            **self._clients.options(),
            isolation_level=isolation_level,
            allow_auto_create_topics=False,
        ) as consumer:
            consumer.assign(unread)
            for name in unread:
                consumer.seek(name, begins[name])
            while unread:
                for record in await consumer.poll(_POLL_MS):
                    # Leave out records beyond the range, which arrived during the read.
                    if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                        found.append(record)
                if len(found) > _MOST_RECORDS:
                    raise ValueError(
                        f"topic {self.name!r} has more than {_MOST_RECORDS} records: read them "
                        "with a consumer"
                    )
                # Compare the position instead of waiting for the last offset, because there is no
                # record at the offset of a marker or a compacted record.
                for name in list(unread):
                    if await consumer.position(name) >= unread[name]:
                        del unread[name]
        return sorted(found, key=lambda record: (record.partition, record.offset))

    async def _range(self, isolation_level: str) -> Range:
        """Return the first offset and the end offset of each partition."""
        described = await self._describe()
        names = [TopicPartition(self.name, each.partition) for each in described.partitions]
        admin = await self._clients.admin()
        begins, ends = await asyncio.gather(
            admin.list_offsets(dict.fromkeys(names, EARLIEST)),
            admin.list_offsets(
                dict.fromkeys(names, LATEST), read_committed=isolation_level == READ_COMMITTED
            ),
        )
        return (
            {name: found.offset for name, found in begins.items()},
            {name: found.offset for name, found in ends.items()},
        )


def _length(between: Range) -> int:
    begins, ends = between
    return sum(ends[name] - begins[name] for name in ends)


def _given(record: object) -> _Pair:
    if isinstance(record, tuple):
        raise TypeError(
            "records: in a pair, it is unclear which item is the key; write each as "
            '{"value": ..., "key": ...}'
        )
    if not isinstance(record, Mapping):
        return _pair(record, None)
    if unknown := record.keys() - {"value", "key"}:
        raise TypeError(f"records: {sorted(map(str, unknown))}: only value and key are allowed")
    return _pair(record.get("value"), record.get("key"))


def _pair(value: object, key: object) -> _Pair:
    return _data(value, "value"), _data(key, "key")


def _data(value: object, argument: str) -> bytes | None:
    if isinstance(value, str):
        return arguments.text(value, argument, arguments.INT32_MAX).encode()
    return arguments.data(value, argument)


def _seen(records: Sequence[ConsumerRecord]) -> str:
    """Describe the number of records, their partitions, and the last record."""
    if not records:
        return "no records"
    counts: dict[int, int] = {}
    for record in records:
        counts[record.partition] = counts.get(record.partition, 0) + 1
    by_partition = ", ".join(f"{count} in partition {number}" for number, count in counts.items())
    last = records[-1]
    return (
        f"{counted(len(records), 'record')} ({by_partition}; the last one: offset {last.offset}, "
        f"key {_shown(last.key)}, value {_shown(last.value)})"
    )


def _shown(data: bytes | None) -> str:
    if data is None or len(data) <= _SHOWN_BYTES:
        return repr(data)
    return f"{data[:_SHOWN_BYTES]!r}... of {len(data)} bytes"


def _replicas(view: PartitionView) -> str:
    leader = "no leader" if view.leader < 0 else f"leader {view.leader}"
    return f"{leader}, ISR {sorted(view.isr)}, replicas {list(view.replicas)}"
