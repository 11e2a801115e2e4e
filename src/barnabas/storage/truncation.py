"""Truncates a log, and tracks what must be on disk before the next write.

On the loop, the log ends at its new end at once, even for readers; files are renamed, but none is
shortened. The remaining steps can run in a thread, in this order:

    1   the directory is synced, which makes renames and removals durable. Only then may the last
        segment be cut: it then looks whole, which would hide that any segments that reappear
        behind it have another history
    2   the log file is cut and synced: records that were cut off must not reappear behind the next
        records to be written; their checksums are valid, and no other replica has them there
    3   the note of gaps is written, and the epochs of a log that was emptied
    4   the checkpoints that now exceed the log are written (`before_writes`)

A crash in between leaves the log uncut, fully cut, or ending at a hole. A write to the log has to
wait for all of these steps; see `Log.write_staged`. `Cut` is one truncation; `Truncation` stores a
log's past and current ones.
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
    """A truncation of a log, until it is on disk and the producer state is restored."""

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
        self._settling = threading.Lock()  # held by the thread or loop that settles
        self._is_durable = False
        self._names = 0  # the number of changed names
        self._ends_at: tuple[Path, int] | None = None
        self.gaps: Gaps | None = None
        """The record of gaps to rewrite, if any."""
        self.epochs: LeaderEpochs | None = None
        """The epochs to save, if all of them were removed."""
        self.replay: Callable[[], Generator[None, None, Producers]] | None = None
        """Finds the producers at the new log end; None if not needed."""
        self._replaying: Generator[None, None, Producers] | None = None
        self.producers: Producers | None = None
        """The producers at the new end, once found.

        Until then, the log keeps those from before the cut, which have the same transactions open
        below the high watermark.
        """
        self.before_writes: Callable[[], object] | None = None
        """Writes everything else that must be on disk before the next write."""

    def begin(self, segments: Segments, offset: int, *, is_all: bool) -> list[int]:
        """Truncate the segments to `offset`, or start an empty log at it if `is_all`.

        Returns the offsets of the remaining snapshots, ascending.
        """
        snapshots = snapshot_offsets(self._files.list(self._directory))
        # Snapshots above the truncation cover records that no longer exist.
        kept = [each for each in snapshots if each <= offset and not is_all]
        for each in snapshots[len(kept) :]:
            self._files.remove(snapshot_path(self._directory, each))
        # Nothing remains below the first segment, so the log restarts at the offset.
        is_all = is_all or offset < segments[0].base_offset
        taken = list(segments) if is_all else segments.take_from(offset)
        # Discard the last segment first, so that a crash in between leaves no gap.
        segments.discards.discard(reversed(taken), due_ms=0)
        self._names = len(taken) + len(snapshots) - len(kept)
        if is_all:
            segments.replace_all(offset)
        # Only the in-memory state has been truncated. `make_durable` cuts the file once no later
        # segment can reappear (see above).
        elif segments.active.truncate(offset):
            self._ends_at = (segments.active.path(LOG_SUFFIX), segments.active.size_bytes)
        return kept

    def find_producers(self, segments: Segments, snapshots: list[int], offset: int) -> None:
        """Find the producers at the new end, `offset`, with `learn` and `snapshots` that remain."""
        self.replay = partial(
            find_in_steps, self._files, self._directory, segments, snapshots, offset
        )

    def make_durable(self) -> None:
        """Complete everything except `before_writes`. Waits for the disk; can run in a thread.

        Raises OSError, after which it may be called again; see `Log.settle`.
        """
        with self._settling:
            # If the loop and a thread both call this, the second call has nothing to do.
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
            # There are no gaps among later records, so a hole would be a loss.
            if self.gaps is not None:
                self.gaps.note(self.gaps.end)
            # Save only the epochs of a log that was emptied. Other epochs are saved with the next
            # sync; until then, a start after a crash finds them in the batches.
            unsaved = None if self.epochs is None else self.epochs.take_unsaved()
            if self.epochs is not None and unsaved is not None:
                self.epochs.save(unsaved)
                self._files.sync(self._directory)
                self.epochs.on_saved(unsaved)

    def learn(self) -> Iterator[None]:
        """Find the producers in small steps, between which other tasks may run."""
        while self.replay is not None:
            # Keep the generator: the loop runs `learn` in slices, and `settle` finishes it.
            if self._replaying is None:
                self._replaying = self.replay()
            try:
                next(self._replaying)
            except StopIteration as end:
                self.producers, self.replay = end.value, None
            except BaseException:
                self._replaying = None  # exhausted, so the next call starts over
                raise
            else:
                yield

    @property
    def is_settled(self) -> bool:
        """True if `settle` has nothing left to wait for."""
        return self._is_durable and self.replay is None

    def on_durable(self) -> None:
        """Note that `before_writes` has also finished."""
        self._is_durable = True

    def settle(self, before: Producers) -> Producers:
        """Complete the truncation, and return the producers; `before` are the old ones.

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
    """A log's truncations, including any unwritten part of the last one."""

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
        """The offset of the last truncation since the log was opened, or -1."""
        self.unsettled: Cut | None = None
        """The truncation that has to be on disk before anything is written."""

    def cut(self, offset: int, log_start_offset: int, *, is_all: bool = False) -> Cut:
        """Truncate all parts of the log to `offset`, or begin an empty log at it if `is_all`.

        Any earlier cut is settled first. After an OSError, the log's state is unknown.
        `log_start_offset` is the log start before the cut.
        """
        assert self.unsettled is None, "a cut that is not on disk would be forgotten"
        state = self._producer_state
        cut = Cut(self._files, self._segments.directory)
        self.count += 1
        # First drop any pending snapshot and undo any swap: neither is valid for a truncated log.
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
        """Complete the last truncation, if necessary. After an OSError, it remains incomplete."""
        if self.unsettled is not None:
            state = self._producer_state
            state.producers = self.unsettled.settle(state.producers)
            self.unsettled = None
