"""Writes the embedded store's files: a copy of the journal and snapshot in each log directory.

Invariant: the next `open` reads back the frames appended before a `sync` that returned, whole or
not at all. A crash may leave a torn frame at the end of the journal: it was never acknowledged and
is cut off. Anything else that is unreadable was damaged. It is read from another copy; if no copy
contains it, the store is not opened (`journal_copies`). Damaged files are saved before they are cut
or replaced.

A commit is on disk when all copies have it. A copy whose disk fails is no longer written, and the
next start brings it up to date. When the last copy fails, the store fails.

These are plain files, because a Kafka broker ignores them but refuses to start with an unknown
directory. Only their owner may read them, because they contain password hashes.
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
    """A store's copies, open for appending."""

    __slots__ = ("_files", "frames", "is_new", "kept", "proven_zxid", "snapshot")

    def __init__(
        self, *directories: Path, accepts_loss: bool = False, disk: JournalDisk = OS_DISK
    ) -> None:
        """Lock and read all copies, and bring damaged or outdated copies up to date.

        Raises OSError if none is usable, ConfigError if another process holds them, or CorruptData
        if something was damaged in every copy, unless the caller `accepts_loss`.
        """
        self._files: list[JournalFile] = []
        self.kept: list[Path] = []
        """The paths under which damaged files were saved."""
        try:
            self._open(directories, disk)
            # Nothing writes to the copies in the meantime, because all of them are locked.
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
        """The last commit that is known to be on disk, with all earlier ones."""

    @property
    def size_bytes(self) -> int:
        """The size of the largest journal."""
        return max(each.size_bytes for each in self._files)

    def append(self, payload: bytes, unsynced: int = 0) -> None:
        """Append a commit. It is on disk once all `syncs` that start later have returned.

        `unsynced` is the number of earlier commits that may not be on disk. Raises OSError if the
        last copy fails.
        """
        whole = frame(payload, unsynced)
        self._each(lambda file: file.append(whole))

    def syncs(self) -> list[tuple[Callable[[], None], Callable[[OSError], None]]]:
        """Return two functions for each copy: the first syncs it; call the second if that fails.

        The syncs may run concurrently, in threads.
        """
        return [(each.sync, self._failure_of(each)) for each in self._files]

    def sync(self) -> None:
        """Sync all copies to disk, one by one."""
        self._each(JournalFile.sync)

    def seal(self, zxid: int) -> None:
        """Record that all commits up to this one are on disk, unless a later one was appended."""
        self._each(lambda file: file.seal(zxid))

    def replace(self, snapshot: bytes) -> None:
        """Replace the journal with a snapshot of the whole tree.

        If the process runs out of file descriptors, some copies may stay unchanged.
        """
        zxid = zxid_of(snapshot)
        self._each(lambda file: file.replace(snapshot, zxid))

    def close(self) -> None:
        """Close the files without further writes, like a process that dies."""
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
        """Bring each copy up to the end of their combined history."""
        for file, copy in zip(list(self._files), copies, strict=True):
            try:
                self._bring_up_to_date(file, copy, found)
            except OSError as error:
                if len(self._files) == 1:
                    raise
                self._drop(file, error)

    def _bring_up_to_date(self, file: JournalFile, copy: Copy, found: Merged) -> None:
        if is_behind(copy, found):
            # Save the damaged files: they may be the only evidence of the cause.
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
            cut_bytes = file.append_after(copy)
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
        """Apply the action to each copy; copies that fail are no longer used.

        Raises OSError if the last copy fails.
        """
        scarcity: OSError | None = None
        for file in list(self._files):
            try:
                action(file)
            except OSError as error:
                # This is no disk failure: the copy is as good as before.
                if is_out_of_descriptors(error):
                    scarcity = error
                else:
                    self._drop(file, error)
        if scarcity is not None:
            raise scarcity

    def _failure_of(self, file: JournalFile) -> Callable[[OSError], None]:
        return lambda error: self._drop(file, error)

    def _drop(self, file: JournalFile, error: OSError) -> None:
        """Stop writing this copy. Raises the error if it is the last one."""
        if self._files == [file]:
            raise error
        if file in self._files:
            self._files.remove(file)
            with suppress(OSError):
                file.close()
            _log.error("no longer writing the metadata to %s: %s", file.directory, error)


def read_files(*directories: Path) -> tuple[bytes | None, list[bytes]]:
    """Return the snapshot and commits of a store that may be in use. Changes and locks nothing.

    A commit that is being appended is ignored. Raises ConfigError if there is no store, CorruptData
    if something was destroyed, or OSError.
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
