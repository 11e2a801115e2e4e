"""Writes the embedded store's files: a copy of the journal and snapshot in each log directory.

Invariants: A frame that was appended before a successful `sync` is read by the next `open`. Every
frame is read either as a whole or not at all. After a crash, there may be a torn frame at the end
of the journal, which was never acknowledged and is cut off. Any other unreadable data has been
damaged. It is read from another copy; if it is damaged in all copies, the store is not opened
(`journal_copies`). Damaged files are saved before they are cut or replaced.

A commit is on disk when it is in all copies. If the disk of a copy fails, the copy is no longer
written, and it is brought up to date at the next start. If the last copy fails, the store fails.

The store uses plain files, because a Kafka broker ignores unknown files but refuses to start if
there is an unknown directory. The files contain password hashes, so only their owner can read them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.cluster.journal_copies import (
    JOURNAL_NAME,
    SNAPSHOT_NAME,
    Copy,
    Merged,
    copy_of,
    is_behind,
    is_damaged,
    merge,
    merge_without_loss,
    read_copies,
)
from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.cluster.journal_file import JournalFile
from barnabas.cluster.journal_frames import frame, zxid_of
from barnabas.counted import counted
from barnabas.errors import ConfigError, is_out_of_descriptors

_log = logging.getLogger(__name__)


class Journal:
    """The copies of a store, open for appending."""

    __slots__ = ("_files", "frames", "is_new", "kept", "proven_zxid", "snapshot")

    def __init__(
        self, *directories: Path, accepts_loss: bool = False, disk: JournalDisk = OS_DISK
    ) -> None:
        """Lock and read all copies, and repair the copies that are damaged or out of date.

        Raises OSError if no copy is usable, ConfigError if another process has locked the copies,
        or CorruptData if data is damaged in every copy, unless the caller accepts the loss
        (`accepts_loss`).
        """
        self._files: list[JournalFile] = []
        self.kept: list[Path] = []
        """The paths to which damaged files were copied."""
        try:
            self._open(directories, disk)
            # All copies are locked, so nothing can write to them in the meantime.
            copies = [copy_of(each.directory, each.read(), disk) for each in self._files]
            found = merge(copies) if accepts_loss else merge_without_loss(copies)
            self._repair(copies, found)
        except BaseException:
            self.close()
            raise
        self.snapshot = found.snapshot
        self.frames = [each.payload for each in found.frames]
        self.is_new = found.is_new
        self.proven_zxid = min(found.proven_zxid, found.end_zxid)
        """The last commit that is known to be on disk together with all earlier commits."""

    @property
    def size_bytes(self) -> int:
        """The size of the largest journal of any copy."""
        return max(each.size_bytes for each in self._files)

    def append(self, payload: bytes, unsynced: int = 0) -> None:
        """Append a commit.

        The commit is on disk once every sync from `syncs` that starts later has returned.

        `unsynced` is the number of earlier commits that may not be on disk yet. Raises OSError if
        the last copy fails.
        """
        whole = frame(payload, unsynced)
        self._each(lambda file: file.append(whole))

    def syncs(self) -> list[tuple[Callable[[], None], Callable[[OSError], None]]]:
        """Return two functions for each copy: one that syncs it, and one to call if the sync fails.

        The syncs may run concurrently in threads.
        """
        return [(each.sync, self._failure_of(each)) for each in self._files]

    def sync(self) -> None:
        """Sync the copies to disk one after another."""
        self._each(JournalFile.sync)

    def seal(self, zxid: int) -> None:
        """Record that every commit up to this one is on disk.

        Do nothing if a later commit was appended.
        """
        self._each(lambda file: file.seal(zxid))

    def replace(self, snapshot: bytes) -> None:
        """Replace the journal with a snapshot of the whole tree.

        If there are not enough file descriptors, some of the copies may remain unchanged.
        """
        zxid = zxid_of(snapshot)
        self._each(lambda file: file.replace(snapshot, zxid))

    def close(self) -> None:
        """Close the files without writing anything, as if the process had died."""
        for file in self._files:
            file.close()

    def _open(self, directories: Sequence[Path], disk: JournalDisk) -> None:
        failure: OSError | None = None
        for directory in directories:
            try:
                self._files.append(JournalFile(directory, disk))
                disk.remove(directory / f"{SNAPSHOT_NAME}.tmp")
            except OSError as error:
                failure = error
                _log.error("cannot keep a copy of the metadata in %s: %s", directory, error)
        if not self._files:
            assert failure is not None, "no directory is named"
            raise failure

    def _repair(self, copies: Sequence[Copy], found: Merged) -> None:
        """Bring each copy up to the end of the combined history of all copies."""
        for file, copy in zip(list(self._files), copies, strict=True):
            try:
                self._bring_up_to_date(file, copy, found)
            except OSError as error:
                if len(self._files) == 1:
                    raise
                self._drop(file, error)

    def _bring_up_to_date(self, file: JournalFile, copy: Copy, found: Merged) -> None:
        if is_behind(copy, found):
            # Keep the damaged files, because they may be the only evidence of what caused the
            # damage.
            if is_damaged(copy, found):
                kept = file.keep_damaged()
                self.kept += kept
                _log.error(
                    "%s: the metadata was damaged and has been restored up to commit %d; damaged "
                    "files saved as %s",
                    file.directory,
                    found.end_zxid,
                    ", ".join(each.name for each in kept) or "nothing",
                )
            elif not found.is_new:
                _log.warning(
                    "%s: the metadata was %s; copied it from another log directory",
                    file.directory,
                    "missing" if copy.is_absent else "out of date",
                )
            file.rewrite(found.snapshot, found.frames)
        else:
            cut_bytes = file.append_after(copy, found.proven_zxid)
            if cut_bytes:
                _log.warning(
                    "%s: truncated %s of an incomplete commit at the end",
                    file.path,
                    counted(cut_bytes, "byte"),
                )
        file.seal(min(found.proven_zxid, found.end_zxid))
        if copy.is_absent:
            file.sync()
            file.sync_names()  # the file may be new

    def _each(self, action: Callable[[JournalFile], None]) -> None:
        """Apply the action to every copy. If it fails for a copy, the copy is no longer used.

        Raises OSError if the last copy fails.
        """
        scarcity: OSError | None = None
        for file in list(self._files):
            try:
                action(file)
            except OSError as error:
                # This is not a disk failure, and nothing is wrong with the copy.
                if is_out_of_descriptors(error):
                    scarcity = error
                else:
                    self._drop(file, error)
        if scarcity is not None:
            raise scarcity

    def _failure_of(self, file: JournalFile) -> Callable[[OSError], None]:
        return lambda error: self._drop(file, error)

    def _drop(self, file: JournalFile, error: OSError) -> None:
        """Stop writing to this copy. If it is the last one, raise the error."""
        if self._files == [file]:
            raise error
        if file in self._files:
            self._files.remove(file)
            with suppress(OSError):
                file.close()
            _log.error("no longer writing the metadata to %s: %s", file.directory, error)


def read_files(*directories: Path) -> tuple[bytes | None, list[bytes]]:
    """Return the snapshot and commits of a store that may be in use.

    The store is neither changed nor locked.

    A commit that is being appended at this moment is ignored. Raises OSError, ConfigError if there
    is no store, or CorruptData if data was destroyed.
    """
    copies = read_copies(directories)
    if all(each.journal is None for each in copies):
        places = ", ".join(map(str, directories))
        raise ConfigError(
            f"{places} has no {JOURNAL_NAME}: it is not a log directory of a broker with an "
            "embedded metadata store"
        )
    found = merge_without_loss(copies)
    return found.snapshot, [each.payload for each in found.frames]
