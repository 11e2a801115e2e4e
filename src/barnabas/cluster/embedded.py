"""Implements a single broker's embedded metadata store: a tree in memory, backed by files.

A commit takes effect immediately, and is acknowledged when it is on disk. Commits reach the disk in
the order in which they took effect. A commit that was visible before it was on disk can therefore
be lost only together with all later commits. Commits that arrive while another one is waiting for
the disk share the next wait. After a failed write or fsync, the content of the disk is unknown, and
every further commit fails.

The store has its own session, which ends with `close` or with the process. For further brokers in
the process, it creates more sessions (`session`). Ephemeral nodes of an earlier process are removed
when the store is opened. Tools may open it read-only, even while a broker writes it: they see the
tree that is on disk at that moment.
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
    """A process's own metadata tree, in memory and optionally in directories."""

    def __init__(self, journal: Journal | None = None, snapshot_at_bytes: int = 1 << 20) -> None:
        """Create a store that writes to `journal`; without one, the tree is lost with the process.

        A snapshot replaces the journal when the journal exceeds both `snapshot_at_bytes` and twice
        the previous snapshot, so snapshots add work in proportion to the commits.
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
        """Whether nothing had been committed when the store was opened."""
        if journal is not None:
            self._take_over(journal)

    @classmethod
    def open(
        cls, *directories: Path, read_only: bool = False, disk: JournalDisk = OS_DISK
    ) -> EmbeddedStore:
        """Open the store in these directories, each of which holds a copy.

        Only one process at a time may write it.

        The directories must exist. With `read_only`, the store may belong to another process,
        running or not. No commit is possible then, and the tree contains the ephemeral nodes of the
        last session. Raises ConfigError if another process writes it or there is nothing to read,
        CorruptData if something other than a crash has damaged its files, or OSError.
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
        """The tree as of the last commit. Callers must not change it."""
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
        # A transaction of only checks is not a commit.
        if stage.effects:
            self._write(stage)
            self._tree.merge(stage)
            # Fire before the wait: if the wait were cancelled, watches would never fire.
            self._fire(stage)
            await self._wait_for_disk(stage)
            self._snapshot_if_due()
        return stage.results

    def session(self) -> EmbeddedSession:
        """Return another session on the same tree, for another broker in this process."""
        return EmbeddedSession(self)

    def new_session_id(self) -> int:
        self._last_session_id += 1
        return self._last_session_id

    def end_session(self, session_id: int) -> None:
        """Remove the ephemeral nodes of an ended session, and fire their watches."""
        if self._state is not SessionState.EXPIRED:
            self._remove_ephemerals(session_id)

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Do nothing: this session ends only with the store."""

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
                # A sealed journal has a known end, which the next start can rely on.
                self._journal.seal(self._tree.zxid)
            self._journal.close()

    def _take_over(self, journal: Journal) -> None:
        self._snapshot_bytes = len(journal.snapshot or b"")
        self._replay(journal.snapshot, journal.frames)
        journal.snapshot, journal.frames = None, []  # they are in the tree now, so free the memory
        # Later commits may only be in the page cache: the process that wrote them may have died
        # before its fsync.
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
        """Remove the ephemeral nodes of one session, or of all sessions.

        This is a normal commit, but nothing waits for it: if lost, it is repeated.
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
            # Write this with the commit, so that a later reader knows which commits were on disk.
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
            # Run one fsync at a time, for all commits that were written before it began.
            if self._syncing is None:
                self._syncing = asyncio.ensure_future(self._sync(self._journal))
            # If one waiter is cancelled, the fsync continues for the others.
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
            # Do not seal if a commit arrived during the fsync: a seal means that nothing follows.
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
                return  # the journals still contain everything; the next commit tries again
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
