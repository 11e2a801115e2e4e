"""Measures and limits the replication rate of throttled replicas (KIP-73, RE-13).

As in Kafka, the bytes are counted in up to eleven windows of one second, and the rate is their sum
divided by the time since the oldest window started. Unused capacity can therefore still be used
within eleven seconds, and if the limit is exceeded, replication has to wait. The limit is checked
before each partition: the last partition in a response may exceed it, and the next partitions then
wait. A limit cannot be enforced if it is so low that fetching one partition once in eleven seconds
exceeds it.
"""

from __future__ import annotations

from collections import deque

NO_LIMIT = 2**63 - 1
_MOST_LISTS = 1_000  # the cache is cleared when it contains this many parsed lists

Window = tuple[int, int]  # (start of the window in ms, number of bytes)


class Throttle:
    """Throttles a broker in one direction, either as a leader or as a follower."""

    __slots__ = ("_broker_id", "_lists", "_windows", "bytes_per_s", "window_count", "window_ms")

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self.bytes_per_s = NO_LIMIT
        self.window_count = 11
        self.window_ms = 1_000
        self._windows: deque[Window] = deque()  # oldest first
        self._lists: dict[str, frozenset[int]] = {}

    def covers(self, listed: str, partition: int) -> bool:
        """Return whether replication is throttled for this broker's replica of the partition.

        `listed` has the form `partition:broker,partition:broker,...`, or is `*` for all replicas.
        """
        # KIP-73: the wildcard matches all replicas of the topic.
        if listed == "*":
            return True
        own = self._lists.get(listed)
        if own is None:
            # The lists change with every reassignment, so remove old lists to save memory.
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            own = self._lists[listed] = self._own(listed)
        return partition in own

    def _own(self, listed: str) -> frozenset[int]:
        pairs = (entry.split(":") for entry in listed.split(",") if entry)
        return frozenset(int(index) for index, broker in pairs if int(broker) == self._broker_id)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes that were copied for throttled replicas."""
        self._forget(now_ms)
        windows = self._windows
        if windows and now_ms - windows[-1][0] < self.window_ms:
            began_ms, before_bytes = windows.pop()
            windows.append((began_ms, before_bytes + size_bytes))
        else:
            windows.append((now_ms, size_bytes))

    def wait_ms(self, now_ms: int, more_bytes: int = 0) -> int:
        """Return how long to wait before more bytes may be copied, or 0.

        `more_bytes` is the number of bytes that are being copied but have not been recorded yet.
        """
        if self.bytes_per_s == NO_LIMIT:
            return 0
        self._forget(now_ms)
        began_ms = self._windows[0][0] if self._windows else now_ms
        total_bytes = more_bytes + sum(size_bytes for _, size_bytes in self._windows)
        passed_ms = now_ms - began_ms
        # Measure over at least one whole window, because the rate of a burst in the first
        # milliseconds means nothing.
        if total_bytes * 1_000 <= self.bytes_per_s * max(passed_ms, self.window_ms):
            return 0
        # When the oldest window expires, its bytes no longer count.
        left_ms = self.window_count * self.window_ms - passed_ms
        # If the rate is 0, nothing may be copied until the oldest window has expired.
        if not self.bytes_per_s:
            return left_ms
        return min(left_ms, -(-total_bytes * 1_000 // self.bytes_per_s) - passed_ms)

    def _forget(self, now_ms: int) -> None:
        windows = self._windows
        keep_ms = self.window_count * self.window_ms
        while windows and now_ms - windows[0][0] >= keep_ms:
            windows.popleft()
