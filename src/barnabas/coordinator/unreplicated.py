"""Keeps the previous offsets of commits that the high watermark has yet to pass.

For decisions, a commit counts as soon as it is in the log; for clients that fetch offsets, only
when it is replicated (Kafka's "pending" commits). Therefore, both the last replicated value and the
newest one are kept as long as they differ.

Invariant: a place is in `_before` exactly while `_records` has a record of it at or above the last
reported high watermark, so the number of unreplicated records bounds its size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

Place = tuple[str, int]
"""A topic and a partition."""

Stored = tuple[int, int, str, int, int, int]
"""The fields of `Committed`. The garbage collector does not track plain tuples of numbers and text.

As class instances, a million offsets would stop the broker for a third of a second at each full
collection.
"""

LOG_OFFSET: Final = 5
"""The index of `log_offset` in `Stored`."""

_NONE: Final[Mapping[Place, Stored | None]] = {}


class _Record(NamedTuple):
    offset: int
    name: tuple[str, Place]
    stored: Stored | None  # None for a tombstone


class Unreplicated:
    """Tracks the commits of one shard that are above its high watermark."""

    __slots__ = ("_before", "_newest", "_records")

    def __init__(self) -> None:
        self._records: deque[_Record] = deque()
        self._before: dict[str, dict[Place, Stored | None]] = {}
        # the log offset of the newest record, by name
        self._newest: dict[tuple[str, Place], int] = {}

    def add(
        self,
        offset: int,
        name: tuple[str, Place],
        known: Stored | None,
        stored: Stored | None,
        high_watermark: int,
    ) -> None:
        """Note that a record above the high watermark changes `known` to `stored`.

        `name` is the record's group and place.
        """
        self._forget_below(high_watermark)
        self._records.append(_Record(offset, name, stored))
        group_id, place = name
        self._before.setdefault(group_id, {}).setdefault(place, known)
        self._newest[name] = offset

    def on_committed(self, group_id: str, place: Place, stored: Stored) -> None:
        """Note that a transaction's offset counts, because its marker and record are replicated."""
        before = self._before.get(group_id, _NONE)
        # Fetches return this offset until the next plain commit is replicated.
        if place in before:
            known = before[place]
            if known is None or known[LOG_OFFSET] < stored[LOG_OFFSET]:
                self._before[group_id][place] = stored

    def before(self, group_id: str, high_watermark: int) -> Mapping[Place, Stored | None]:
        """Return the replicated values of places that have newer ones; None means no offset."""
        if self._records:
            self._forget_below(high_watermark)
        return self._before.get(group_id, _NONE)

    def _forget_below(self, high_watermark: int) -> None:
        records = self._records
        while records and records[0].offset < high_watermark:
            record = records.popleft()
            group_id, place = record.name
            before = self._before[group_id]
            # A later record of this place is still above the high watermark. This one becomes the
            # value before it.
            if self._newest[record.name] != record.offset:
                known = before[place]
                # otherwise, a transaction's offset is newer
                if known is None or known[LOG_OFFSET] < record.offset:
                    before[place] = record.stored
                continue
            # The newest record of the place is replicated: the committed and replicated values are
            # equal.
            del self._newest[record.name], before[place]
            if not before:
                del self._before[group_id]
