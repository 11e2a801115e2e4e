"""Implements the embedded metadata store of a single broker: a tree in memory, backed by files.

A commit takes effect immediately, and is acknowledged when it is on disk. Commits reach the disk in
the order in which they took effect, so a commit that was visible before it was on disk can be lost
only together with all later commits. Commits that arrive while another commit is waiting for the
disk are all synced by the next fsync. If a write or an fsync fails, it is unknown what is on disk,
and every later commit fails.

The store has its own session, which ends with `close` or with the process. More sessions can be
created for other brokers in the same process (`session`). When the store is opened, the ephemeral
nodes of an earlier process are removed. Tools can open the store read-only, even while a broker is
writing to it, and see the tree that is on disk at that moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.journal import Journal, read_files
from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.cluster.node_bytes import (
    commit_from_bytes,
    commit_to_bytes,
    tree_from_bytes,
    tree_to_bytes,
)
from barnabas.cluster.nodes import Stage, Tree
from barnabas.cluster.store import (
    Delete,
    MetadataError,
    MetadataStore,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Znode,
)
from barnabas.errors import is_out_of_descriptors
from barnabas.shielded import shielded

_log = logging.getLogger(__name__)

_SNAPSHOT_GROWTH = 2


class EmbeddedStore(MetadataStore):
    """The metadata tree of a process, in memory and optionally also in directories."""

    def __init__(self, journal: Journal | None = None, snapshot_at_bytes: int = 1 << 20) -> None:
        """Create a store that writes to `journal`.

        Without a journal, the tree is lost when the process ends.

        A snapshot replaces the journal when the journal is larger than `snapshot_at_bytes` and
        larger than twice the previous snapshot, so the work of writing snapshots is proportional to
        the size of the commits.
        """
        self._tree = Tree()
        self._journal = journal
        self._session_id = self._last_session_id = 1
        self._state = SessionState.CONNECTED
        self._watches: dict[str, list[Callable[[], None]]] = {}
        self._synced_zxid = 0
        self._syncing: asyncio.Future[None] | None = None
        self._snapshot_at_bytes = snapshot_at_bytes
        self._snapshot_bytes = 0
        self._failure: OSError | None = None
        self._is_read_only = False
        self.was_new = journal is None or journal.is_new
        """Whether the store contained no commits when it was opened."""
        if journal is not None:
            self._take_over(journal)

    @classmethod
    def open(
        cls, *directories: Path, read_only: bool = False, disk: JournalDisk = OS_DISK
    ) -> EmbeddedStore:
        """Open the store in these directories. Each of them contains a complete copy.

        Only one process at a time may write to the store.

        The directories must exist. If `read_only` is set, the store may be in use by another
        process. In that case, nothing can be committed, and the tree contains the ephemeral nodes
        of the last session. Raises OSError, ConfigError if another process is writing to the store
        or if there is nothing to read, or CorruptData if the files were damaged by anything other
        than a crash.
        """
        if not read_only:
            return cls(Journal(*directories, disk=disk), disk.snapshot_at_bytes)
        store = cls()
        store._is_read_only = True
        snapshot, frames = read_files(*directories)
        store._replay(snapshot, frames)
        return store

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def tree(self) -> Tree:
        """The tree after the last commit. Callers must not modify it."""
        return self._tree

    @property
    def session_state(self) -> SessionState:
        return self._state

    async def read(self, path: str) -> Znode | None:
        self._check_session(path)
        return self._tree.read(path)

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        return await self.commit_as(self._session_id, operations)

    async def commit_as(self, session_id: int, operations: Sequence[Operation]) -> list[str | int]:
        """Commit in a session other than the store's own (see `session`)."""
        path = operations[0].path if operations else "/"
        self._check_session(path)
        if self._is_read_only:
            raise MetadataError(path, "the metadata is open for reading only")
        stage = self._tree.stage(operations, session_id)
        # A transaction that consists only of checks is not a commit.
        if stage.effects:
            self._write(stage)
            self._tree.merge(stage)
            # Fire the watches before waiting, because they would never be fired if the wait were
            # cancelled.
            self._fire(stage)
            await self._wait_for_disk(stage)
            self._snapshot_if_due()
        return stage.results

    def session(self) -> EmbeddedSession:
        """Return another session in the same tree, for another broker in this process."""
        return EmbeddedSession(self)

    def new_session_id(self) -> int:
        self._last_session_id += 1
        return self._last_session_id

    def end_session(self, session_id: int) -> None:
        """Remove the ephemeral nodes of a session that has ended, and fire the watches on them."""
        if self._state is not SessionState.EXPIRED:
            self._remove_ephemerals(session_id)

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Ignore the callback, because this session ends only with the store."""

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        callbacks = self._watches.setdefault(path, [])
        if callback not in callbacks:
            callbacks.append(callback)

    async def close(self) -> None:
        if self._state is SessionState.EXPIRED:
            return
        while self._syncing is not None:
            await shielded(self._syncing)
        if not self._is_read_only:
            self._remove_ephemerals(None)
        self._state = SessionState.EXPIRED
        if self._journal is not None:
            if self._failure is None:
                self._journal.sync()
                # The end of a sealed journal is known, and the next start can rely on it.
                self._journal.seal(self._tree.zxid)
            self._journal.close()

    def _take_over(self, journal: Journal) -> None:
        self._snapshot_bytes = len(journal.snapshot or b"")
        self._replay(journal.snapshot, journal.frames)
        journal.snapshot, journal.frames = None, []  # the tree contains this data now
        # Later commits may be only in the page cache, because the process that wrote them may have
        # died before it called fsync.
        self._synced_zxid = journal.proven_zxid
        self._remove_ephemerals(None)

    def _replay(self, snapshot: bytes | None, frames: Sequence[bytes]) -> None:
        if snapshot is not None:
            self._tree = tree_from_bytes(snapshot)
        for payload in frames:
            stage = commit_from_bytes(payload, self._tree)
            if stage is not None:
                self._tree.merge(stage)
        self._session_id = self._last_session_id = self._tree.zxid + 1

    def _remove_ephemerals(self, session_id: int | None) -> None:
        """Remove the ephemeral nodes of one session or, without a session, all ephemeral nodes.

        This is an ordinary commit, but no task waits for it, because it is repeated if it is lost.
        """
        deletions = [Delete(path) for path in self._tree.ephemeral_paths(session_id)]
        if deletions and self._failure is None:
            stage = self._tree.stage(deletions, self._session_id)
            self._write(stage)
            self._tree.merge(stage)
            self._fire(stage)

    def _write(self, stage: Stage) -> None:
        if self._journal is None:
            return
        self._check_disk(stage)
        try:
            # This number is written with the commit, so that a later reader knows which commits
            # were on disk.
            unsynced = stage.zxid - 1 - self._synced_zxid
            self._journal.append(commit_to_bytes(stage), unsynced)
        except OSError as error:
            self._failure = error
            self._check_disk(stage)

    async def _wait_for_disk(self, stage: Stage) -> None:
        if self._journal is None:
            return
        while self._synced_zxid < stage.zxid:
            self._check_disk(stage)
            # Only one fsync runs at a time. It covers all commits that were written before it
            # began.
            if self._syncing is None:
                self._syncing = asyncio.ensure_future(self._sync(self._journal))
            # If one of the waiting commits is cancelled, the fsync must continue for the others.
            await shielded(self._syncing)

    async def _sync(self, journal: Journal) -> None:
        covered_zxid = self._tree.zxid
        loop = asyncio.get_running_loop()
        syncs = journal.syncs()
        try:
            outcomes = await asyncio.gather(
                *(loop.run_in_executor(None, sync) for sync, _ in syncs), return_exceptions=True
            )
            for (_, on_failure), outcome in zip(syncs, outcomes, strict=True):
                if isinstance(outcome, OSError):
                    on_failure(outcome)
                elif outcome is not None:
                    raise outcome
            # If a commit arrived during the fsync, do not write a seal, because a seal states that
            # nothing follows it.
            if self._tree.zxid == covered_zxid:
                journal.seal(covered_zxid)
            self._synced_zxid = covered_zxid
        except OSError as error:
            self._failure = error
        finally:
            self._syncing = None

    def _check_disk(self, stage: Stage) -> None:
        if self._failure is not None:
            path = stage.effects[0].path
            raise OutcomeUnknown(path, f"the metadata journal failed: {self._failure}")

    def _snapshot_if_due(self) -> None:
        if self._journal is None or self._syncing is not None:
            return
        due_at_bytes = max(self._snapshot_at_bytes, _SNAPSHOT_GROWTH * self._snapshot_bytes)
        if self._journal.size_bytes < due_at_bytes:
            return
        snapshot = tree_to_bytes(self._tree)
        try:
            self._journal.replace(snapshot)
        except OSError as error:
            if is_out_of_descriptors(error):
                return  # the journals are still complete; the next commit retries
            self._failure = error
            _log.error("cannot write the metadata snapshot: %s", error)
        self._snapshot_bytes = len(snapshot)
        self._synced_zxid = self._tree.zxid

    def _fire(self, stage: Stage) -> None:
        for path in stage.nodes:
            for callback in self._watches.pop(path, ()):
                callback()

    def _check_session(self, path: str) -> None:
        if self._state is SessionState.EXPIRED:
            raise SessionExpired(path, "the metadata store is closed")
