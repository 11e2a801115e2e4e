"""Remembers the previous offset of each commit that is still above the high watermark.

For the coordinator's decisions, a commit is valid as soon as it is in the log. Clients that fetch
offsets see it only when it is replicated (Kafka calls it "pending" until then). For this reason,
both the last replicated value and the newest value are kept as long as they differ.

Invariant: a place is in `_before` exactly while `_records` contains a record of the place at or
above the last reported high watermark. The size of `_before` is therefore limited by the number of
unreplicated records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

Place = tuple[str, int]
"""A topic and a partition."""

Stored = tuple[int, int, str, int, int, int]
"""The fields of `Committed` as a tuple.

The garbage collector does not track tuples of numbers and text.

If they were instances of a class, each full collection would stop the broker for a third of a
second when there are a million offsets.
"""

LOG_OFFSET: Final = 5
"""The index of `log_offset` in `Stored`."""

_NONE: Final[Mapping[Place, Stored | None]] = {}


class _Record(NamedTuple):
    offset: int
    name: tuple[str, Place]
    stored: Stored | None  # None for a tombstone


class Unreplicated:
    """Tracks the commits of one shard that are not replicated yet."""

    __slots__ = ("_before", "_newest", "_records")

    def __init__(self) -> None:
        self._records: deque[_Record] = deque()
        self._before: dict[str, dict[Place, Stored | None]] = {}
        # the log offset of the newest record of each group and place
        self._newest: dict[tuple[str, Place], int] = {}

    def add(
        self,
        offset: int,
        name: tuple[str, Place],
        known: Stored | None,
        stored: Stored | None,
        high_watermark: int,
    ) -> None:
        """Record that `known` is replaced with `stored`, by a record above the high watermark.

        `name` identifies the group and the place of the record.
        """
        self._forget_below(high_watermark)
        self._records.append(_Record(offset, name, stored))
        group_id, place = name
        self._before.setdefault(group_id, {}).setdefault(place, known)
        self._newest[name] = offset

    def on_committed(self, group_id: str, place: Place, stored: Stored) -> None:
        """Record that a transactional offset is committed, because its marker and record are
        replicated.
        """
        before = self._before.get(group_id, _NONE)
        # Fetches return this offset until the next plain commit has been replicated.
        if place in before:
            known = before[place]
            if known is None or known[LOG_OFFSET] < stored[LOG_OFFSET]:
                self._before[group_id][place] = stored

    def before(self, group_id: str, high_watermark: int) -> Mapping[Place, Stored | None]:
        """Return the replicated values of the places that have a newer value.

        None means that there was no offset.
        """
        if self._records:
            self._forget_below(high_watermark)
        return self._before.get(group_id, _NONE)

    def _forget_below(self, high_watermark: int) -> None:
        records = self._records
        while records and records[0].offset < high_watermark:
            record = records.popleft()
            group_id, place = record.name
            before = self._before[group_id]
            # The place has a later record that is still above the high watermark, so fetches return
            # the value of this record in the meantime.
            if self._newest[record.name] != record.offset:
                known = before[place]
                # otherwise, the offset from a transaction is newer
                if known is None or known[LOG_OFFSET] < record.offset:
                    before[place] = record.stored
                continue
            # The newest record of this place is replicated, so the committed and replicated values
            # are now the same.
            del self._newest[record.name], before[place]
            if not before:
                del self._before[group_id]
