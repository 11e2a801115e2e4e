"""Lets a test inspect the state, offsets and lag of a consumer group.

group = broker.group("billing")
group.wait_for(state="Stable")
assert group.lag() == 0
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.record_offsets import Span, record_offsets
from barnabas.client.offsets import LATEST
from barnabas.counted import counted
from barnabas.testing.embedded.client_thread import ClientThread
from barnabas.testing.embedded.settings import TIMEOUT_S
from barnabas.testing.embedded.waiting import Sight, is_wait_timeout
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.group_admin import GroupDescription

__tracebackhide__ = is_wait_timeout

READ_COMMITTED: Final = "read_committed"
_LEVELS: Final = (READ_COMMITTED, "read_uncommitted")
_COUNTED: Final = 1000
"""The number of records beyond the requested lag at which a wait stops counting."""

Lags = dict[tuple[TopicPartition, Span], int]
"""The number of records in each range of offsets whose records have already been counted."""

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")


class Group:
    """A group on a running broker, returned by `broker.group(name)`. The group does not have to
    exist.

    Every method blocks for at most `timeout_s` seconds and may be called in any thread.
    """

    def __init__(self, name: str, clients: ClientThread) -> None:
        self.name = name
        self._clients = clients

    def __repr__(self) -> str:
        return f"Group({self.name!r}, at {self._clients.bootstrap_servers()})"

    def describe(self, timeout_s: float = TIMEOUT_S) -> GroupDescription:
        """Return the group's state, assignor, coordinator and members. The state "Dead" means that
        the group does not exist.
        """
        return self._clients.run(self._describe, f"group {self.name!r}", timeout_s)

    def state(self, timeout_s: float = TIMEOUT_S) -> str:
        """Return "Stable", "PreparingRebalance", "CompletingRebalance", "Empty" or "Dead"."""
        return self.describe(timeout_s).state

    def offsets(self, timeout_s: float = TIMEOUT_S) -> dict[TopicPartition, int]:
        """Return the committed offsets, sorted by partition. Each is the offset of the next record
        to read.
        """
        return self._clients.run(self._offsets, f"the offsets of group {self.name!r}", timeout_s)

    def lag(self, timeout_s: float = TIMEOUT_S, *, isolation_level: str = READ_COMMITTED) -> int:
        """Return the number of records that are not committed yet, in all partitions with committed
        offsets.

        Records are counted rather than offsets, so transaction markers and compacted records do not
        count. Neither do records in aborted and open transactions, unless `isolation_level` is
        "read_uncommitted".
        """
        return sum(self.lag_by_partition(timeout_s, isolation_level=isolation_level).values())

    def lag_by_partition(
        self, timeout_s: float = TIMEOUT_S, *, isolation_level: str = READ_COMMITTED
    ) -> dict[TopicPartition, int]:
        """Return the lag of each partition for which the group has an offset. Records are counted
        as in `lag`."""
        work = partial(self._lag, _level(isolation_level))
        return self._clients.run(work, f"the lag of group {self.name!r}", timeout_s)

    def wait_for(
        self,
        *,
        state: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        isolation_level: str = READ_COMMITTED,
        timeout_s: float = TIMEOUT_S,
    ) -> GroupDescription:
        """Return the group's description once all given conditions hold at the same time. Raises
        WaitTimeout.

        `state`: one of Kafka's states, such as "Stable"; `members`: the number of members; `lag`:
        the maximum lag, counted as in the method `lag`; the group must also have committed at least
        one offset.
        """
        if state is not None and state not in STATES:
            raise ValueError(f"state: {state!r} is not one of {', '.join(STATES)}")
        if state is None and members is None and lag is None:
            raise ValueError("wait_for needs at least one of state, members and lag")

        level, known = _level(isolation_level), Lags()

        async def look() -> Sight[GroupDescription]:
            described = await self._describe()
            holds = state is None or described.state == state
            holds &= members is None or len(described.members) == members
            seen = f"state {described.state}, {counted(len(described.members), 'member')}"
            if lag is not None:
                # Counting requires reading the records, so stop early if the group is far behind.
                most = lag + _COUNTED
                lags = await self._lag(level, most, known)
                behind = sum(lags.values())
                # Without a committed offset, the lag is meaningless, and 0 would be reached too
                # early.
                holds &= bool(lags) and behind <= lag
                seen += f", lag {behind}" if lags else ", no committed offsets"
                seen += " or more" if behind >= most else ""
            return Sight(described, holds, seen)

        wanted = {"state": state, "members": members, "lag": lag}
        conditions = " and ".join(
            f"{name} {each}" for name, each in wanted.items() if each is not None
        )
        return self._clients.wait(look, f"group {self.name!r} with {conditions}", timeout_s)

    # ---- methods that run on the clients' loop ----

    async def _describe(self) -> GroupDescription:
        admin = await self._clients.admin()
        return (await admin.describe_groups([self.name]))[self.name]

    async def _offsets(self) -> dict[TopicPartition, int]:
        admin = await self._clients.admin()
        committed = await admin.list_group_offsets(self.name)
        return {name: each.offset for name, each in committed.items()}

    async def _lag(
        self, isolation_level: str, most: int | None = None, counted: Lags | None = None
    ) -> dict[TopicPartition, int]:
        """Return the lag of each partition. `most`: stop after counting this many records of a
        partition; `counted`: results of earlier counts.
        """
        offsets = await self._offsets()
        admin = await self._clients.admin()
        ends = await admin.list_offsets(
            dict.fromkeys(offsets, LATEST), read_committed=isolation_level == READ_COMMITTED
        )
        spans = {name: Span(offset, ends[name].offset) for name, offset in offsets.items()}
        known = Lags() if counted is None else counted
        unknown = {
            name: span
            for name, span in spans.items()
            # Count a range only once, however often the condition is checked.
            if span.begin < span.end and (name, span) not in known
        }
        if unknown:
            async with Consumer(
                self._clients.bootstrap_servers(),
                **self._clients.options(),
                isolation_level=isolation_level,
                allow_auto_create_topics=False,
                auto_offset_reset="earliest",  # the position may be before the log's start
            ) as consumer:
                found = await record_offsets(consumer, unknown, most)
            known |= {(name, unknown[name]): len(each) for name, each in found.items()}
        return {name: known.get((name, span), 0) for name, span in spans.items()}


def _level(text: str) -> str:
    if text not in _LEVELS:
        raise ValueError(f"isolation_level: {text!r} is not one of {', '.join(_LEVELS)}")
    return text
