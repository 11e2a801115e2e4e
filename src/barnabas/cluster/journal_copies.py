"""Determines which commits the copies of a metadata tree jointly contain, and which are lost.

    barnabas-metadata.journal      frames, one per commit, and a seal
    barnabas-metadata.snapshot     one frame: the whole tree as of some commit

Each log directory contains both. The tree is the newest snapshot plus each later commit that any
copy contains, so data damaged in one copy is read from another. The history ends before the first
commit missing from all copies. Later commits, which a crash may have left, were never acknowledged
and are cut off. However, if a frame proves that a missing commit was on disk, the commit was
destroyed, and only the operator may accept that.

This module only reads files.
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
    """Return the command that lets an operator continue without the destroyed commits."""
    return " ".join(
        ["barnabas metadata repair --accept-loss", *(f"--dir {d}" for d in directories)]
    )


class Copy(NamedTuple):
    """The files of one directory, as read."""

    directory: Path
    journal: bytes | None
    snapshot: bytes | None
    frames: Frames
    tree: Frame | None  # the snapshot's frame; None if it is damaged or missing

    @property
    def is_absent(self) -> bool:
        """Is true if there are no files: the directory is new or was emptied."""
        return self.snapshot is None and not self.journal

    @property
    def fault(self) -> str | None:
        """Return any fault of the copy itself, other than missing commits."""
        if self.snapshot is not None and self.tree is None:
            return f"{self.directory / SNAPSHOT_NAME} is damaged"
        if self.snapshot is None and self.frames.begins_late:
            return f"{self.directory / SNAPSHOT_NAME} is missing"
        # A journal in the current format is never empty: it contains at least a seal.
        if self.tree is not None and (
            self.journal is None or not (self.journal or self.tree.is_earlier)
        ):
            what = "missing" if self.journal is None else "empty"
            return f"{self.directory / JOURNAL_NAME} is {what}"
        return None

    @property
    def newest_zxid(self) -> int:
        """The last commit that the copy contains, or is known to have contained."""
        return max([self.tree_zxid, *(each.zxid for each in self.frames.whole)])

    @property
    def tree_zxid(self) -> int:
        """The last commit in its snapshot; 0 without a usable snapshot."""
        return 0 if self.tree is None else self.tree.zxid


class Merged(NamedTuple):
    """The tree and the commits that the copies jointly contain."""

    snapshot: bytes | None
    snapshot_zxid: int
    frames: tuple[Frame, ...]
    """The commits after the snapshot, in order."""
    proven_zxid: int
    """The last commit that is known to have been on disk."""
    loss: str | None
    """The place where data was destroyed in all copies; None if there is none."""

    @property
    def end_zxid(self) -> int:
        return self.frames[-1].zxid if self.frames else self.snapshot_zxid

    @property
    def is_new(self) -> bool:
        return self.snapshot is None and not self.frames


def read_copies(directories: Sequence[Path], disk: JournalDisk = OS_DISK) -> list[Copy]:
    """Read the copies in these directories. A broker may be writing them. Raises OSError."""
    # Read the journals first: a journal is emptied only after a snapshot with its content exists,
    # so that snapshot is then found.
    journals = [disk.read(directory / JOURNAL_NAME) for directory in directories]
    return [
        copy_of(directory, journal, disk)
        for directory, journal in zip(directories, journals, strict=True)
    ]


def copy_of(directory: Path, journal: bytes | None, disk: JournalDisk) -> Copy:
    """Build the copy with this journal, and read its snapshot. Raises OSError."""
    snapshot = disk.read(directory / SNAPSHOT_NAME)
    tree = None
    if snapshot is not None:
        found = read_frames(snapshot)
        # A snapshot is replaced as a whole, so a crash leaves the old one or the new one.
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
    # Stop at a gap: the commits after a missing commit were based on it.
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
    """Merge the copies; raise CorruptData if a commit was destroyed in all copies of it."""
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
    """Return whether the copy must be rewritten because it is damaged or incomplete."""
    if copy.fault is not None or copy.tree_zxid != found.snapshot_zxid:
        return True
    own = [each for each in copy.frames.whole if not each.is_seal]
    later = [each.zxid for each in own if each.zxid > found.snapshot_zxid]
    return later != [each.zxid for each in found.frames] or is_damaged(copy, found)


def is_damaged(copy: Copy, found: Merged) -> bool:
    """Return whether something other than a crash has changed the copy."""
    if copy.fault is not None:
        return True
    # A seal that a crash damaged may be followed by commits that the snapshot contains.
    return copy.frames.damaged_at is not None and any(
        each.zxid > found.snapshot_zxid for each in copy.frames.whole
    )


def _commits(copies: Sequence[Copy], snapshot_zxid: int) -> dict[int, Frame]:
    """Return the commits after the snapshot, by number."""
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
                    f"the metadata in {writer} and {copy.directory} has diverged: each was "
                    f"written without the other from commit {each.zxid}. Keep the one that you "
                    f"need, move {JOURNAL_NAME} and {SNAPSHOT_NAME} of the other elsewhere, and "
                    "restart: they are copied from the one that you keep"
                )
    return commits


def _loss(copies: Sequence[Copy], found: Merged) -> str | None:
    """Return where data was destroyed in all copies, or None."""
    faults = [each.fault for each in copies if each.fault is not None]
    if found.proven_zxid > found.end_zxid:
        places = faults or [
            f"{each.directory / JOURNAL_NAME} is damaged at byte {each.frames.damaged_at}"
            for each in copies
            if each.frames.damaged_at is not None
        ]
        # The start of a journal, or a snapshot, may be missing without a trace.
        places = places or [
            f"{each.directory} lacks part of its {JOURNAL_NAME} or {SNAPSHOT_NAME}"
            for each in copies
            if not each.is_absent
        ]
        return (
            f"{'; '.join(places)}: the metadata can be read up to commit {found.end_zxid}, but "
            f"at least {found.proven_zxid} commits were written"
        )
    # Only a copy with a whole journal shows where the commits end. Its own snapshot may be missing:
    # reading starts with another copy's snapshot.
    knows_end = any(
        (each.fault is None or each.journal) and 0 < each.newest_zxid >= found.snapshot_zxid
        for each in copies
    )
    if faults and not knows_end:
        return f"{'; '.join(faults)}: the commits in it are unknown"
    return None
