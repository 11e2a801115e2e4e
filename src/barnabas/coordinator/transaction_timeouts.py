"""The timeouts of open transactions: a heap with at most one live entry per id.

A transaction that ends leaves its entry behind for the next one of its id: when an entry comes up,
the caller looks at the transaction and sets it again if it is not due. So a thousand transactions a
second take no more memory than their ids.
"""

from __future__ import annotations

import heapq


class TransactionTimeouts:
    """Transactional ids by the earliest time at which to look at them."""

    __slots__ = ("_heap", "_set")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._set: dict[str, int] = {}  # the live entry; others of an id are skipped

    def set(self, transactional_id: str, due_ms: int) -> None:
        """Have this id looked at once `due_ms` has passed, or earlier."""
        known_ms = self._set.get(transactional_id)
        if known_ms is None or due_ms < known_ms:
            self._set[transactional_id] = due_ms
            heapq.heappush(self._heap, (due_ms, transactional_id))

    @property
    def next_ms(self) -> int | None:
        """The first millisecond at which `take` may have something."""
        return self._heap[0][0] + 1 if self._heap else None

    def take(self, now_ms: int) -> list[str]:
        """The ids that are due; they are then unset."""
        taken = []
        while self._heap and self._heap[0][0] < now_ms:
            due_ms, transactional_id = heapq.heappop(self._heap)
            if self._set.get(transactional_id) == due_ms:
                del self._set[transactional_id]
                taken.append(transactional_id)
        return taken
