"""Swaps cleaned segments into a log, crash-safely and with Kafka's file suffixes.

    1   begin     the new segment's `.cleaned` files become `.swap`. The last of these renames
                  commits the swap: if a crash occurs before it, the next start (`leftovers`) undoes
                  the swap, otherwise it finishes the swap
    2   the directory is synced, in a thread
    3   finish    the old segments' files become `.deleted`, and the `.swap` files lose their suffix

If the log is truncated or loses an old segment between `begin` and `finish`, the swap must not
finish, even at the next start. `undo` turns the files back into an unfinished set before it removes
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.storage.durability import Durability
from barnabas.storage.files import Files
from barnabas.storage.leftovers import CLEANED, SWAP
from barnabas.storage.segment import (
    ABORTED_INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    Sizes,
    segment_path,
)
from barnabas.storage.segments import Segments
from barnabas.storage.snapshot import snapshot_path


class Swap:
    """The replacement of several adjacent segments with a new one."""

    __slots__ = ("_directory", "_files", "_sizes", "replaced")

    def __init__(
        self, files: Files, directory: Path, replaced: Sequence[Segment], sizes: Sizes
    ) -> None:
        """Prepare the swap; `sizes` are those of the new segment's `.cleaned` files."""
        self.replaced = replaced
        self._files = files
        self._directory = directory
        self._sizes = sizes

    def begin(self) -> None:
        """Commit the swap. After an OSError, it is unknown whether it was committed."""
        # As long as any file is `.cleaned`, a start after a crash undoes the other renames.
        for path in self._paths():
            self._rename(path, CLEANED, SWAP)

    def finish(self) -> Segment:
        """Rename the new segment's files to their final names, which are free."""
        for path in self._paths():
            self._rename(path, SWAP, "")
        base_offset = self.replaced[0].base_offset
        return Segment(self._files, self._directory, base_offset, self._sizes)

    def undo(self) -> None:
        """Undo `begin`; a crash during this leaves nothing that could be finished."""
        log, *indexes = self._paths()
        # A single `.cleaned` file makes the set unfinished: a start after a crash removes all its
        # files.
        self._rename(log, SWAP, CLEANED)
        for path in indexes:
            self._files.remove(_with_suffix(path, SWAP))
        self._files.remove(_with_suffix(log, CLEANED))

    def _paths(self) -> list[Path]:
        """Return the new segment's final paths, the log file first."""
        suffixes = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX]
        if self._sizes.aborted:
            suffixes.append(ABORTED_INDEX_SUFFIX)
        base_offset = self.replaced[0].base_offset
        return [segment_path(self._directory, base_offset, each) for each in suffixes]

    def _rename(self, path: Path, before: str, after: str) -> None:
        self._files.replace(_with_suffix(path, before), _with_suffix(path, after))


class Swaps:
    """The swap in progress in a log, if any.

    After an OSError, the state on disk is unknown, and the log has failed.
    """

    __slots__ = ("_begun", "_directory", "_durability", "_files", "_segments")

    def __init__(
        self, files: Files, directory: Path, segments: Segments, durability: Durability
    ) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments
        self._durability = durability
        self._begun: Swap | None = None

    def begin(self, replaced: Sequence[Segment], sizes: Sizes) -> bool:
        """Commit to replacing adjacent segments with `.cleaned` files of these sizes.

        Returns False if the log no longer contains those segments. The directory has to be synced
        before `finish`.
        """
        # Retention or a truncation may have removed some of them while the pass was running.
        if not self._segments.has(replaced):
            return False
        self._begun = Swap(self._files, self._directory, replaced, sizes)
        self._begun.begin()
        return True

    def finish(self, due_ms: int) -> bool:
        """Finish the swap; return False if it was undone.

        The replaced segments' files are removed at `due_ms`.
        """
        swap, self._begun = self._begun, None
        if swap is None:
            return False
        self._durability.on_segments_replaced()
        self._segments.discards.discard(swap.replaced, due_ms)
        # The merged segment begins where the first one did; the other segments' snapshots are
        # obsolete.
        for each in swap.replaced[1:]:
            self._files.remove(snapshot_path(self._directory, each.base_offset))
        self._segments.replace(swap.replaced, swap.finish())
        return True

    def on_renamed(self, directory: Path) -> None:
        """Use the directory's new name. No swap may be in progress."""
        self._directory = directory

    def undo(self) -> None:
        """Undo the swap in progress, if any."""
        if self._begun is not None:
            swap, self._begun = self._begun, None
            swap.undo()


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
