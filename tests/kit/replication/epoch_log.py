"""A log as the machines see one: the epoch of each record, and where the epochs begin.

What it says of epochs is what `storage.epochs` says; a test of the two together keeps it so.
"""

from __future__ import annotations

from barnabas.replication.follower import EpochEnd

UNKNOWN = -1


class EpochLog:
    """Records are their epochs; the one at offset `start` is the first."""

    def __init__(self, *epochs: int, start: int = 0) -> None:
        self.log_start_offset = start
        self.epochs: list[int] = []
        self._starts: list[tuple[int, int]] = []
        self.append(*epochs)

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset + len(self.epochs)

    @property
    def latest_epoch(self) -> int:
        return self._starts[-1][0] if self._starts else UNKNOWN

    @property
    def starts(self) -> list[tuple[int, int]]:
        """The first offset of each epoch."""
        return list(self._starts)

    def append(self, *epochs: int) -> None:
        for epoch in epochs:
            if epoch > self.latest_epoch:
                self.assign(epoch)
            self.epochs.append(epoch)

    def assign(self, epoch: int) -> None:
        """The epoch begins at the log's end, unless it has begun already."""
        end = self.log_end_offset
        if epoch == self.latest_epoch:
            return
        self._starts = [each for each in self._starts if each[0] < epoch and each[1] < end]
        self._starts.append((epoch, end))

    def truncate(self, offset: int) -> None:
        del self.epochs[max(0, offset - self.log_start_offset) :]
        self._starts = [each for each in self._starts if each[1] < offset]

    def start_at(self, offset: int) -> None:
        self.epochs.clear()
        self._starts.clear()
        self.log_start_offset = offset

    def raise_log_start(self, offset: int) -> None:
        """The records below are deleted; the epoch that holds the offset begins there now."""
        del self.epochs[: offset - self.log_start_offset]
        self.log_start_offset = offset
        below = [each for each in self._starts if each[1] <= offset]
        if below:
            self._starts[: len(below)] = [(below[-1][0], offset)]

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        if epoch == UNKNOWN or epoch > self.latest_epoch:
            return UNKNOWN, UNKNOWN
        if epoch == self.latest_epoch:
            return epoch, self.log_end_offset
        end = next(start for other, start in self._starts if other > epoch)
        known = [other for other, _ in self._starts if other <= epoch]
        return (known[-1] if known else epoch), end

    # --- as a leader's ---------------------------------------------------------------------------

    def diverging(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """A leader's answer to a fetch on this log; LookupError if its offset is out of range."""
        if last_fetched_epoch != UNKNOWN:
            epoch, end = self.epoch_end_offset(last_fetched_epoch)
            if end == UNKNOWN:
                raise LookupError(last_fetched_epoch)
            if epoch < last_fetched_epoch or end < offset:
                return EpochEnd(epoch, end)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise LookupError(offset)
        return None
