"""Determines which commits are contained in any copy of a metadata tree, and which have been lost.

    barnabas-metadata.journal      frames, one per commit, and a seal
    barnabas-metadata.snapshot     one frame: the whole tree as of some commit

Each log directory contains both files. The tree consists of the newest snapshot and of every later
commit that is in any copy, so if data is damaged in one copy, it is read from another. The history
ends before the first commit that is missing from all copies. A crash may have left later commits;
they were never acknowledged and are cut off. However, if a frame proves that a missing commit was
on disk, the commit was destroyed, and only the operator can decide to go on without it.

This module only reads the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.cluster.journal_frames import Frame, Frames, read_frames
from barnabas.errors import ConfigError, CorruptData
from barnabas.named_tuple import NamedTuple

JOURNAL_NAME = "barnabas-metadata.journal"
SNAPSHOT_NAME = "barnabas-metadata.snapshot"


def accept_loss(directories: Iterable[Path]) -> str:
    """Return the command with which an operator can continue without the destroyed commits."""
    return " ".join(
        ["barnabas metadata repair --accept-loss", *(f"--dir {d}" for d in directories)]
    )


class Copy(NamedTuple):
    """The content of the files in one directory."""

    directory: Path
    journal: bytes | None
    snapshot: bytes | None
    frames: Frames
    tree: Frame | None  # the snapshot's frame, or None if it is missing or damaged

    @property
    def is_absent(self) -> bool:
        """True if there are no files, because the directory is new or has been emptied."""
        return self.snapshot is None and not self.journal

    @property
    def fault(self) -> str | None:
        """A description of any fault of this copy, apart from missing commits."""
        if self.snapshot is not None and self.tree is None:
            return f"{self.directory / SNAPSHOT_NAME} is damaged"
        if self.snapshot is None and self.frames.begins_late:
            return f"{self.directory / SNAPSHOT_NAME} is missing"
        # A journal in the current format contains at least a seal, so it is never empty.
        if self.tree is not None and (
            self.journal is None or not (self.journal or self.tree.is_earlier)
        ):
            what = "missing" if self.journal is None else "empty"
            return f"{self.directory / JOURNAL_NAME} is {what}"
        return None

    @property
    def newest_zxid(self) -> int:
        """The last commit that the copy contains or is known to have contained in the past."""
        return max([self.tree_zxid, *(each.zxid for each in self.frames.whole)])

    @property
    def tree_zxid(self) -> int:
        """The last commit in the snapshot, or 0 if there is no usable snapshot."""
        return 0 if self.tree is None else self.tree.zxid


class Merged(NamedTuple):
    """The tree and the commits that result from merging all copies."""

    snapshot: bytes | None
    snapshot_zxid: int
    frames: tuple[Frame, ...]
    """The commits after the snapshot, in order."""
    proven_zxid: int
    """The last commit that is known to have been on disk at some time."""
    loss: str | None
    """Says where data was destroyed in all copies, or is None if none was destroyed."""

    @property
    def end_zxid(self) -> int:
        return self.frames[-1].zxid if self.frames else self.snapshot_zxid

    @property
    def is_new(self) -> bool:
        return self.snapshot is None and not self.frames


def read_copies(directories: Sequence[Path], disk: JournalDisk = OS_DISK) -> list[Copy]:
    """Read the copies in these directories, even while a broker is writing. Raises OSError."""
    # Read the journals before the snapshots. A journal is emptied only after a snapshot of its
    # content has been written, so the snapshot can be found if the journal is empty.
    journals = [disk.read(directory / JOURNAL_NAME) for directory in directories]
    return [
        copy_of(directory, journal, disk)
        for directory, journal in zip(directories, journals, strict=True)
    ]


def copy_of(directory: Path, journal: bytes | None, disk: JournalDisk) -> Copy:
    """Return a copy with this journal, after reading its snapshot. Raises OSError."""
    snapshot = disk.read(directory / SNAPSHOT_NAME)
    tree = None
    if snapshot is not None:
        found = read_frames(snapshot)
        # A snapshot is replaced as a whole, so after a crash there is either the old snapshot or
        # the new one.
        if len(found.whole) == 1 and found.damaged_at is None and found.end == len(snapshot):
            tree = found.whole[0]
    return Copy(directory, journal, snapshot, read_frames(journal or b""), tree)


def merge(copies: Sequence[Copy]) -> Merged:
    """Merge the commits of all copies. Raises ConfigError if their histories conflict."""
    trees = [each.tree for each in copies if each.tree is not None]
    tree = max(trees, key=lambda each: each.zxid, default=None)
    snapshot_zxid = 0 if tree is None else tree.zxid
    commits = _commits(copies, snapshot_zxid)
    chain: list[Frame] = []
    # Stop at the first gap, because the commits after it were based on the missing commit.
    while (following := commits.get(snapshot_zxid + len(chain) + 1)) is not None:
        chain.append(following)
    proven_zxid = max(
        (each.proven_zxid for copy in copies for each in copy.frames.whole), default=0
    )
    found = Merged(
        None if tree is None else tree.payload,
        snapshot_zxid,
        tuple(chain),
        max(proven_zxid, snapshot_zxid),
        None,
    )
    return found._replace(loss=_loss(copies, found))


def merge_without_loss(copies: Sequence[Copy]) -> Merged:
    """Merge the copies.

    Raises CorruptData if a commit was destroyed in every copy that contained it.
    """
    found = merge(copies)
    if found.loss is not None:
        command = accept_loss([each.directory for each in copies])
        raise CorruptData(
            f"{found.loss}. Nothing was changed. Restore {JOURNAL_NAME} and {SNAPSHOT_NAME} from a "
            "backup; or, to continue without the lost topics and settings, stop the broker "
            f"and run `{command}`, which keeps the damaged files"
        )
    return found


def is_behind(copy: Copy, found: Merged) -> bool:
    """Return whether the copy is damaged or incomplete and therefore has to be rewritten."""
    if copy.fault is not None or copy.tree_zxid != found.snapshot_zxid:
        return True
    own = [each for each in copy.frames.whole if not each.is_seal]
    later = [each.zxid for each in own if each.zxid > found.snapshot_zxid]
    return later != [each.zxid for each in found.frames] or is_damaged(copy, found)


def is_damaged(copy: Copy, found: Merged) -> bool:
    """Return whether the copy was changed by anything other than a crash."""
    if copy.fault is not None:
        return True
    # If a crash damaged a seal, it may be followed by commits that are already in the snapshot.
    return copy.frames.damaged_at is not None and any(
        each.zxid > found.snapshot_zxid for each in copy.frames.whole
    )


def _commits(copies: Sequence[Copy], snapshot_zxid: int) -> dict[int, Frame]:
    """Return the commits that follow the snapshot, by number."""
    commits: dict[int, Frame] = {}
    writers: dict[int, Path] = {}
    for copy in copies:
        for each in copy.frames.whole:
            if each.is_seal or each.zxid <= snapshot_zxid:
                continue
            known = commits.setdefault(each.zxid, each)
            writer = writers.setdefault(each.zxid, copy.directory)
            if known.payload != each.payload:
                raise ConfigError(
                    f"the metadata in {writer} and {copy.directory} has diverged: from commit "
                    f"{each.zxid} on, each was written without the other. Keep the one that you "
                    f"need, move {JOURNAL_NAME} and {SNAPSHOT_NAME} of the other elsewhere, and "
                    "restart; both files are then copied from the directory that you keep"
                )
    return commits


def _loss(copies: Sequence[Copy], found: Merged) -> str | None:
    """Return where data was destroyed in all copies, or None if nothing was destroyed."""
    faults = [each.fault for each in copies if each.fault is not None]
    if found.proven_zxid > found.end_zxid:
        places = faults or [
            f"{each.directory / JOURNAL_NAME} is damaged at byte {each.frames.damaged_at}"
            for each in copies
            if each.frames.damaged_at is not None
        ]
        # A missing snapshot or a missing beginning of a journal may not be visible in any file.
        places = places or [
            f"{each.directory} lacks part of its {JOURNAL_NAME} or {SNAPSHOT_NAME}"
            for each in copies
            if not each.is_absent
        ]
        return (
            f"{'; '.join(places)}: the metadata can be read up to commit {found.end_zxid}, but "
            f"at least {found.proven_zxid} commits were written"
        )
    # The end of the history is known only from a copy whose journal is whole. Its own snapshot may
    # be missing, because the snapshot of another copy is read first.
    knows_end = any(
        (each.fault is None or each.journal) and 0 < each.newest_zxid >= found.snapshot_zxid
        for each in copies
    )
    if faults and not knows_end:
        return f"{'; '.join(faults)}: the commits in it are unknown"
    return None
