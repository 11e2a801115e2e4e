"""Swaps cleaned segments into a log so that a crash does no harm, using the same file suffixes as
Kafka.

    1   begin     The new segment's files are renamed from `.cleaned` to `.swap`. The last rename
                  commits the swap. If a crash occurs before it, the next start
                  (`leftovers`) undoes the swap; if a crash occurs later, it finishes the swap.
    2             The directory is synced in a thread.
    3   finish    The old segments' files are renamed to `.deleted`, and the suffix `.swap` is
                  removed from the new files.

If the log is truncated or loses one of the old segments between `begin` and `finish`, the swap must
not be finished, not even by the next start. `undo` therefore makes the set of files incomplete
again before it removes the files.
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
    """Replaces several adjacent segments with a new one."""

    __slots__ = ("_directory", "_files", "_sizes", "replaced")

    def __init__(
        self, files: Files, directory: Path, replaced: Sequence[Segment], sizes: Sizes
    ) -> None:
        """Prepare the swap. `sizes` are the sizes of the new segment's `.cleaned` files."""
        self.replaced = replaced
        self._files = files
        self._directory = directory
        self._sizes = sizes

    def begin(self) -> None:
        """Commit the swap. If this raises OSError, it is unknown whether the swap was committed."""
        # If a crash occurs while there is still a `.cleaned` file, the next start undoes the other
        # renames.
        for path in self._paths():
            self._rename(path, CLEANED, SWAP)

    def finish(self) -> Segment:
        """Give the files of the new segment their final names, which are free by now."""
        for path in self._paths():
            self._rename(path, SWAP, "")
        base_offset = self.replaced[0].base_offset
        return Segment(self._files, self._directory, base_offset, self._sizes)

    def undo(self) -> None:
        """Undo `begin`. If a crash interrupts this, no files are left that the next start could use
        to finish the swap.
        """
        log, *indexes = self._paths()
        # One `.cleaned` file makes the set incomplete, so after a crash, the next start removes all
        # of its files.
        self._rename(log, SWAP, CLEANED)
        for path in indexes:
            self._files.remove(_with_suffix(path, SWAP))
        self._files.remove(_with_suffix(log, CLEANED))

    def _paths(self) -> list[Path]:
        """Return the final paths of the new segment's files, starting with the log file."""
        suffixes = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX]
        if self._sizes.aborted:
            suffixes.append(ABORTED_INDEX_SUFFIX)
        base_offset = self.replaced[0].base_offset
        return [segment_path(self._directory, base_offset, each) for each in suffixes]

    def _rename(self, path: Path, before: str, after: str) -> None:
        self._files.replace(_with_suffix(path, before), _with_suffix(path, after))


class Swaps:
    """Manages the swap that is in progress in a log, if there is one.

    If a method raises OSError, the state on disk is unknown and the log has failed.
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
        """Commit to replacing adjacent segments with the `.cleaned` files, which have these sizes.

        Returns False if the log no longer contains these segments. The directory must be synced
        before `finish` is called.
        """
        # While the pass was running, retention or a truncation may have removed some of the
        # segments.
        if not self._segments.has(replaced):
            return False
        self._begun = Swap(self._files, self._directory, replaced, sizes)
        self._begun.begin()
        return True

    def finish(self, due_ms: int) -> bool:
        """Finish the swap. Returns False if the swap has been undone.

        The files of the replaced segments are removed at `due_ms`.
        """
        swap, self._begun = self._begun, None
        if swap is None:
            return False
        self._durability.on_segments_replaced()
        self._segments.discards.discard(swap.replaced, due_ms)
        # The merged segment begins at the same offset as the first one. The snapshots of the others
        # are obsolete.
        for each in swap.replaced[1:]:
            self._files.remove(snapshot_path(self._directory, each.base_offset))
        self._segments.replace(swap.replaced, swap.finish())
        return True

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory. No swap may be in progress at this time."""
        self._directory = directory

    def undo(self) -> None:
        """Undo the swap that is in progress, if there is one."""
        if self._begun is not None:
            swap, self._begun = self._begun, None
            swap.undo()


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
