"""Tracks a log's recovery point and decides when the log must be flushed (`flush.messages`,
`flush.ms`).

All records below the recovery point survive a power failure, so recovery after a crash does not
read them. The recovery point is raised only after a sync has returned. Each sync covers all data
that was not durable when the sync was prepared, even if another sync of that data is in progress.
Syncs can therefore run in threads and finish in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.storage.epochs import LeaderEpochs, Unsaved
from barnabas.storage.files import Files
from barnabas.storage.log_health import LogHealth
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.storage.snapshot import snapshot_path


class Durable(NamedTuple):
    """Describes which part of a log is guaranteed to be on disk when the log is opened."""

    recovery_point: int
    indexed_point: int
    """The base offset of the segment that contains the recovery point. The indexes of all earlier
    segments are durable.
    """
    is_whole: bool
    """Whether every file is complete and durable, as is the case after a clean shutdown."""


class Unsynced(NamedTuple):
    """The files that must be synced to make the log durable up to an offset."""

    paths: list[tuple[int, Path]]
    """The paths of the files, each with the offset that its name contains."""
    recovery_point: int
    indexed_point: int
    truncations: int
    names: int
    replacements: int
    snapshot_offset: int
    epochs: Unsaved | None


class Durability:
    """Tracks a log's recovery point and the files that are not durable yet."""

    __slots__ = (
        "_aging_from",
        "_aging_since_ms",
        "_begin_offset",
        "_counting",
        "_epochs",
        "_files",
        "_health",
        "_indexed_point",
        "_names",
        "_names_synced",
        "_replacements",
        "_segments",
        "_snapshot_offset",
        "_snapshot_synced",
        "_truncations",
        "_whole_at",
        "recovery_point",
    )

    def __init__(
        self,
        files: Files,
        segments: Segments,
        epochs: LeaderEpochs,
        durable: Durable,
        health: LogHealth,
    ) -> None:
        self.recovery_point = durable.recovery_point
        # The indexes of a segment are complete only when the log has rolled to the next segment.
        # Its last record may have been flushed before that, so the indexes need a recovery point of
        # their own.
        self._indexed_point = durable.indexed_point
        self._whole_at = durable.recovery_point if durable.is_whole else -1
        self._files = files
        self._segments = segments
        self._epochs = epochs
        self._health = health
        # The changes are counted, because the directory may change again while a sync is in
        # progress, which a flag would not show.
        self._names, self._names_synced = 1, 0
        self._truncations = self._replacements = 0
        self._begin_offset = 0
        self._snapshot_offset = self._snapshot_synced = -1
        self._aging_from = -1
        self._aging_since_ms = 0
        self._counting = threading.Lock()  # held briefly after a sync, and during a truncation

    # --- what happens to the log -----------------------------------------------------------------

    def on_segment_begun(self) -> None:
        """Record that a segment was created, so that the next sync includes the directory."""
        self._names += 1

    def on_snapshot_written(self, offset: int) -> None:
        self._snapshot_offset = offset
        self._names += 1

    def on_start_raised(self, offset: int) -> None:
        """Record that all segments below the offset were removed."""
        self._begin_offset = offset

    def on_segments_replaced(self) -> None:
        """Record that a segment replaced others. Its content is durable, but its name is not."""
        self._replacements += 1
        self._names += 1

    def on_renamed(self, directory: Path) -> None:
        """Record that the directory was renamed and that the rename is not durable yet."""
        self._epochs.on_renamed(directory)
        self._names += 1

    def on_closed(self) -> None:
        """Record that everything has been synced and that nothing more will be written."""
        self._whole_at = self.recovery_point

    def on_truncated(self, offset: int) -> None:
        """Record that the log was truncated to the offset. Records written above the offset from
        now on are new.
        """
        # A sync that is in progress must not raise the recovery point beyond the new end of the
        # log.
        with self._counting:
            self.recovery_point = min(self.recovery_point, offset)
            self._indexed_point = min(self._indexed_point, offset)
            self._whole_at = -1
            self._snapshot_offset = self._snapshot_synced = -1
            self._truncations += 1
            self._names += 1

    @property
    def checkpoint(self) -> int:
        """Return the recovery point to be stored for the next start, which scans from the segment
        that contains it.

        The result is not higher than the end of the last segment whose indexes are durable. If it
        were, the segment just before the recovery point would not be scanned, although a power
        failure may have filled its indexes with zeros. With timestamps of 0, the segment would look
        expired.
        """
        if self._whole_at == self.recovery_point:
            return self.recovery_point
        return min(self.recovery_point, self._indexed_point)

    # --- syncs -----------------------------------------------------------------------------------

    def is_due(self, end_offset: int, config: LogConfig, now_ms: int) -> bool:
        """Return whether the log must be flushed because of the number or the age of the unflushed
        records.

        The age is counted from the first call after the recovery point has changed.
        """
        recovery_point = self.recovery_point
        if end_offset <= recovery_point:
            return False
        # All records above the recovery point are new, because a flush has raised it or this is the
        # first call.
        if self._aging_from != recovery_point:
            self._aging_from, self._aging_since_ms = recovery_point, now_ms
        return (
            end_offset - recovery_point >= config.flush_messages
            or now_ms - self._aging_since_ms >= config.flush_ms
        )

    def is_whole(self, end_offset: int) -> bool:
        """Return whether every file was complete and durable and nothing has changed since then."""
        return self._whole_at == end_offset

    def take(self, end_offset: int, *, is_growing: bool = False) -> Unsynced:
        """Return the files that must be synced to make the whole log durable, up to `end_offset`.

        If the active segment `is_growing`, its indexes need not be durable, because the segment
        that contains the recovery point is scanned after a crash anyway.
        """
        return self._take(self._segments, end_offset, is_growing=is_growing)

    def take_rolled(self) -> Unsynced | None:
        """Return the files that must be synced to make the rolled segments durable, or None if they
        are durable already.
        """
        begin_offset = self._segments.active.base_offset
        if min(self.recovery_point, self._indexed_point) >= begin_offset:
            return None
        return self._take(self._segments[:-1], begin_offset, is_growing=False)

    def _take(self, segments: Sequence[Segment], end_offset: int, *, is_growing: bool) -> Unsynced:
        needed_from = min(self.recovery_point, self._indexed_point)
        paths: list[tuple[int, Path]] = []
        # Walk back from the last segment to the one in which the durable part of the log ends.
        for segment in reversed(segments):
            needed = segment.paths()
            # Sync only the log file, which is the first path. After a crash, the indexes of the
            # segment that contains the recovery point are rebuilt.
            if is_growing and segment is segments[-1]:
                needed = needed[:1]
            paths[:0] = [(segment.base_offset, path) for path in needed]
            if segment.base_offset <= needed_from:
                break
        if self._snapshot_synced < self._snapshot_offset:
            snapshot = snapshot_path(self._segments.directory, self._snapshot_offset)
            paths.append((self._snapshot_offset, snapshot))
        return Unsynced(
            paths,
            end_offset,
            self._segments.active.base_offset,
            self._truncations,
            self._names,
            self._replacements,
            self._snapshot_offset,
            self._epochs.take_unsaved(),
        )

    def sync(self, unsynced: Unsynced) -> None:
        """Sync the files. This may run in a thread. If it raises OSError, the log has failed."""
        # After a failed write, the kernel may drop the page, and the next sync may then succeed
        # without it. After a failure, nothing may therefore count as durable until a restart has
        # read the files.
        if self._health.is_abandoned:
            return
        self._health.check(self._segments.directory)
        try:
            self._sync(unsynced)
        except OSError as error:
            if self._health.is_abandoned:
                return  # the files were deleted during the sync in a thread
            self._health.on_error(error)  # running out of descriptors is not a failed fsync
            raise

    def _sync(self, unsynced: Unsynced) -> None:
        directory = self._segments.directory
        for base_offset, path in unsynced.paths:
            try:
                self._files.sync(path)
            except FileNotFoundError:
                # The file was removed from the log during the sync, so it is not needed.
                was_replaced = self._replacements != unsynced.replacements
                if not (
                    base_offset < self._begin_offset or was_replaced or self._was_cut(unsynced)
                ):
                    raise
        has_names = self._names_synced >= unsynced.names
        if unsynced.epochs is not None:
            self._epochs.save(unsynced.epochs)
        # One sync of the directory makes both the new name of the epoch file and the names of the
        # segments durable.
        if unsynced.epochs is not None or not has_names:
            self._files.sync(directory)
        if unsynced.epochs is not None:
            self._epochs.on_saved(unsynced.epochs)
        if not has_names:
            # The directory of the partition may itself be new or renamed.
            self._files.sync(directory.parent)
            self._names_synced = max(self._names_synced, unsynced.names)
        # Without the lock, the event loop might truncate the log between the check and the update.
        with self._counting:
            if not self._was_cut(unsynced):
                self._snapshot_synced = max(self._snapshot_synced, unsynced.snapshot_offset)
                self.recovery_point = max(self.recovery_point, unsynced.recovery_point)
                self._indexed_point = max(self._indexed_point, unsynced.indexed_point)

    def _was_cut(self, unsynced: Unsynced) -> bool:
        return self._truncations != unsynced.truncations
