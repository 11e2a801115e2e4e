"""Truncates a log and tracks what has to be written to disk before the next append.

The event loop moves the log end immediately, even for readers. It renames files but does not
shorten any. The remaining steps may run in a thread, in this order:

    1   the directory is synced, which makes renames and removals durable. The last segment may be
        cut only after that. A segment that was cut looks whole, so if removed segments reappeared
        behind it, nothing would show that they belong to another history
    2   the log file is cut and synced. Otherwise, the removed records might reappear after the
        records that are written next. Their checksums would be valid, but no other replica has them
    3   the record of gaps is written and, if the log was emptied, the file of its epochs
    4   the checkpoints that are now above the log end are written (`before_writes`)

If a crash occurs before all steps are complete, the log is not truncated, is completely truncated,
or ends at a hole. A write to the log has to wait for all of these steps; see
`Log.write_staged`. `Cut` represents one truncation, and `Truncation` tracks all truncations of a
log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

from barnabas.storage.durability import Durability
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files
from barnabas.storage.gaps import Gaps
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.producers import Producers
from barnabas.storage.replay import find_in_steps
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.storage.segments import Segments
from barnabas.storage.snapshot import snapshot_offsets, snapshot_path
from barnabas.storage.swap import Swaps


class Cut:
    """Represents a truncation until it is on disk and the producer state has been restored."""

    __slots__ = (
        "_directory",
        "_ends_at",
        "_files",
        "_is_durable",
        "_names",
        "_replaying",
        "_settling",
        "before_writes",
        "epochs",
        "gaps",
        "producers",
        "replay",
    )

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._settling = threading.Lock()  # held while `settle` runs, on the loop or in a thread
        self._is_durable = False
        self._names = 0  # the number of changed names
        self._ends_at: tuple[Path, int] | None = None
        self.gaps: Gaps | None = None
        """The record of gaps, if it has to be written again."""
        self.epochs: LeaderEpochs | None = None
        """The epochs, if all of them were removed and the file has to be written."""
        self.replay: Callable[[], Generator[None, None, Producers]] | None = None
        """A function that finds the producers at the new log end, or None if it is not needed."""
        self._replaying: Generator[None, None, Producers] | None = None
        self.producers: Producers | None = None
        """The producers at the new log end, when they have been found.

        Until then, the log keeps the producers from before the truncation. Below the high
        watermark, the same transactions are open in both.
        """
        self.before_writes: Callable[[], object] | None = None
        """Writes everything else that has to be on disk before the next append."""

    def begin(self, segments: Segments, offset: int, *, is_all: bool) -> list[int]:
        """Truncate the segments to `offset`. If `is_all` is set, start an empty log at this offset
        instead.

        Returns the offsets of the snapshots that are left, in ascending order.
        """
        snapshots = snapshot_offsets(self._files.list(self._directory))
        # Snapshots above the new log end describe records that no longer exist.
        kept = [each for each in snapshots if each <= offset and not is_all]
        for each in snapshots[len(kept) :]:
            self._files.remove(snapshot_path(self._directory, each))
        # Nothing is left below the first segment, so start an empty log at the offset.
        is_all = is_all or offset < segments[0].base_offset
        taken = list(segments) if is_all else segments.take_from(offset)
        # Start with the last segment, so that a crash between two renames does not leave a gap.
        segments.discards.discard(reversed(taken), due_ms=0)
        self._names = len(taken) + len(snapshots) - len(kept)
        if is_all:
            segments.replace_all(offset)
        # This truncates only the state in memory. `make_durable` truncates the file when it is
        # certain that no later segment can reappear (see above).
        elif segments.active.truncate(offset):
            self._ends_at = (segments.active.path(LOG_SUFFIX), segments.active.size_bytes)
        return kept

    def find_producers(self, segments: Segments, snapshots: list[int], offset: int) -> None:
        """Find the producers at `offset`, the new log end. `snapshots` are the offsets of the
        snapshots that are left.
        """
        self.replay = partial(
            find_in_steps, self._files, self._directory, segments, snapshots, offset
        )

    def make_durable(self) -> None:
        """Complete all steps except `before_writes`. This waits for the disk, and may run in a
        thread.

        If this raises OSError, it may be called again; see `Log.settle`.
        """
        with self._settling:
            # The event loop and a thread may both call this. The second call then has nothing to
            # do.
            if self._is_durable:
                return
            if self._names:
                self._files.sync(self._directory)
            if self._ends_at is not None:
                path, size_bytes = self._ends_at
                file = self._files.open(path)
                try:
                    file.truncate(size_bytes)
                finally:
                    file.release()
                self._files.sync(path)
            # Records written later have no gaps between them, so a hole would mean that records
            # were lost.
            if self.gaps is not None:
                self.gaps.note(self.gaps.end)
            # Save the epochs only if the log was emptied. Otherwise, they are saved with the next
            # sync. If the broker crashes before that, the next start reads the epochs from the
            # batches.
            unsaved = None if self.epochs is None else self.epochs.take_unsaved()
            if self.epochs is not None and unsaved is not None:
                self.epochs.save(unsaved)
                self._files.sync(self._directory)
                self.epochs.on_saved(unsaved)

    def learn(self) -> Iterator[None]:
        """Find the producers in small steps. Other tasks may run between the steps."""
        while self.replay is not None:
            # Keep the generator, because the event loop runs `learn` in slices, and `settle` runs
            # the rest.
            if self._replaying is None:
                self._replaying = self.replay()
            try:
                next(self._replaying)
            except StopIteration as end:
                self.producers, self.replay = end.value, None
            except BaseException:
                self._replaying = None  # it is exhausted, so the next call starts over
                raise
            else:
                yield

    @property
    def is_settled(self) -> bool:
        """True if `settle` would not have to wait for anything."""
        return self._is_durable and self.replay is None

    def on_durable(self) -> None:
        """Record that `before_writes` has finished as well."""
        self._is_durable = True

    def settle(self, before: Producers) -> Producers:
        """Complete the truncation and return the producers. `before` are the producers from before
        the truncation.

        Raises OSError.
        """
        for _ in self.learn():
            pass
        self.make_durable()
        if self.before_writes is not None and not self._is_durable:
            self.before_writes()
        self._is_durable = True
        return before if self.producers is None else self.producers


class Truncation:
    """Tracks the truncations of a log, including the last one until it has been written to disk."""

    __slots__ = (
        "_durability",
        "_files",
        "_gaps",
        "_producer_state",
        "_segments",
        "_swaps",
        "count",
        "last_offset",
        "unsettled",
    )

    def __init__(
        self,
        files: Files,
        segments: Segments,
        durability: Durability,
        swaps: Swaps,
        gaps: Gaps,
        producer_state: ProducerState,
    ) -> None:
        self._files = files
        self._segments = segments
        self._durability = durability
        self._swaps = swaps
        self._gaps = gaps
        self._producer_state = producer_state
        self.count = 0
        self.last_offset = -1
        """The offset of the last truncation since the log was opened, or -1 if there was none."""
        self.unsettled: Cut | None = None
        """The truncation that has to be on disk before anything is written to the log."""

    def cut(self, offset: int, log_start_offset: int, *, is_all: bool = False) -> Cut:
        """Truncate all parts of the log to `offset`. If `is_all` is set, start an empty log there
        instead.

        An earlier truncation is completed first. If this raises OSError, the state of the log is
        unknown. `log_start_offset` is the log start before the truncation.
        """
        assert self.unsettled is None, "a cut that is not on disk would be forgotten"
        state = self._producer_state
        cut = Cut(self._files, self._segments.directory)
        self.count += 1
        # Drop a pending snapshot and undo any swap first, because neither is valid after the
        # truncation.
        state.void_snapshot()
        self._swaps.undo()
        snapshots = cut.begin(self._segments, offset, is_all=is_all)
        cut.gaps = self._gaps if self._gaps.cut(offset) else None
        self.last_offset = offset
        self._durability.on_truncated(offset)
        state.keep_snapshots(max(snapshots, default=min(log_start_offset, offset)))
        if is_all:
            state.clear()
        elif state.end_at(offset):
            cut.find_producers(self._segments, snapshots, offset)
        self.unsettled = cut
        return cut

    def settle(self) -> None:
        """Complete the last truncation if necessary. If this raises OSError, the truncation stays
        incomplete.
        """
        if self.unsettled is not None:
            state = self._producer_state
            state.producers = self.unsettled.settle(state.producers)
            self.unsettled = None
