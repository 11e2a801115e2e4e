"""Measures and limits the rate of replication for throttled replicas (KIP-73, RE-13).

As in Kafka, bytes are counted in up to eleven windows of one second, and divided by the time since
the oldest window started. Unused capacity can therefore be used within eleven seconds, and
exceeding the limit causes a wait. The limit is checked before each partition: the last partition of
a response may exceed it, and the next ones wait. A limit lower than one partition's fetch in eleven
seconds cannot be enforced.
"""

from __future__ import annotations

from collections import deque

NO_LIMIT = 2**63 - 1
_MOST_LISTS = 1_000  # the maximum number of parsed lists; beyond it, the cache is cleared

Window = tuple[int, int]  # (the window's start in ms, its bytes)


class Throttle:
    """A broker's throttle in one direction, as leader or as follower."""

    __slots__ = ("_broker_id", "_lists", "_windows", "bytes_per_s", "window_count", "window_ms")

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self.bytes_per_s = NO_LIMIT
        self.window_count = 11
        self.window_ms = 1_000
        self._windows: deque[Window] = deque()  # oldest first
        self._lists: dict[str, frozenset[int]] = {}

    def covers(self, listed: str, partition: int) -> bool:
        """Return whether this broker's replica of the partition is throttled.

        `listed` is `partition:broker,partition:broker,...`, or `*` for all replicas.
        """
        # KIP-73: the wildcard covers every replica of the topic.
        if listed == "*":
            return True
        own = self._lists.get(listed)
        if own is None:
            # Lists change with each reassignment, so old ones must not accumulate.
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            own = self._lists[listed] = self._own(listed)
        return partition in own

    def _own(self, listed: str) -> frozenset[int]:
        pairs = (entry.split(":") for entry in listed.split(",") if entry)
        return frozenset(int(index) for index, broker in pairs if int(broker) == self._broker_id)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes of throttled replicas."""
        self._forget(now_ms)
        windows = self._windows
        if windows and now_ms - windows[-1][0] < self.window_ms:
            began_ms, before_bytes = windows.pop()
            windows.append((began_ms, before_bytes + size_bytes))
        else:
            windows.append((now_ms, size_bytes))

    def wait_ms(self, now_ms: int, more_bytes: int = 0) -> int:
        """Return the minimum delay before more may be copied, or 0.

        `more_bytes` are being copied, but are not yet recorded.
        """
        if self.bytes_per_s == NO_LIMIT:
            return 0
        self._forget(now_ms)
        began_ms = self._windows[0][0] if self._windows else now_ms
        total_bytes = more_bytes + sum(size_bytes for _, size_bytes in self._windows)
        passed_ms = now_ms - began_ms
        # Use at least one whole window, because a burst in the first milliseconds is no rate.
        if total_bytes * 1_000 <= self.bytes_per_s * max(passed_ms, self.window_ms):
            return 0
        # The oldest window expires, and its bytes with it.
        left_ms = self.window_count * self.window_ms - passed_ms
        # At a rate of 0, nothing may be copied before the oldest window has expired.
        if not self.bytes_per_s:
            return left_ms
        return min(left_ms, -(-total_bytes * 1_000 // self.bytes_per_s) - passed_ms)

    def _forget(self, now_ms: int) -> None:
        windows = self._windows
        keep_ms = self.window_count * self.window_ms
        while windows and now_ms - windows[0][0] >= keep_ms:
            windows.popleft()
