"""Keeps what brokers have last said of their replicas: which are lost with a log directory, and
which are hosted.

A damaged log is lost until another replica leads; then it begins again, and the same registration
hosts what it has lost before. So the last report of a replica counts, whether the one before it
waits for a round, is being written in one, or is in the image.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.types import TopicPartition

ANY_EPOCH = -1

Reports = dict[tuple[int, int], dict[TopicPartition, bool]]
"""Whether each replica is lost, by broker and broker epoch (-1: any)."""


class ReplicaReports:
    """The reports that a controller has yet to process, and those that it processes now."""

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._waiting: Reports = {}
        self._taken: Reports = {}

    def __len__(self) -> int:
        """The replicas whose report waits."""
        return sum(len(reported) for reported in self._waiting.values())

    def add(
        self, broker_id: int, broker_epoch: int, names: Iterable[TopicPartition], *, is_lost: bool
    ) -> None:
        """A live broker has lost these, or hosts them; earlier reports of them are dropped."""
        names = list(names)
        for (reporter, _), reported in self._waiting.items():
            if reporter == broker_id:
                for name in names:
                    reported.pop(name, None)
        reported = self._waiting.setdefault((broker_id, broker_epoch), {})
        reported.update(dict.fromkeys(names, is_lost))

    def last(self, broker_id: int, broker_epoch: int, name: TopicPartition) -> bool | None:
        """Whether the replica was reported lost last; None if no report of it is left here."""
        for reports in (self._waiting, self._taken):
            for epoch in (broker_epoch, ANY_EPOCH) if reports else ():
                is_lost = reports.get((broker_id, epoch), {}).get(name)
                if is_lost is not None:
                    return is_lost
        return None

    def take(self) -> Reports:
        """All that wait; they count as before until they are processed."""
        self._taken, self._waiting = self._waiting, {}
        return self._taken

    def on_processed(self) -> None:
        """Note that what was taken is in the image now."""
        self._taken = {}
