"""Bugs of a ZooKeeper server, each of which its simulation must find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from barnabas.cluster.journal_frames import frame, seal, zxid_of
from barnabas.zookeeper import journal, transactions
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.connection import ClientConnection
from barnabas.zookeeper.journal import Journal
from barnabas.zookeeper.jute import JuteReader
from barnabas.zookeeper.processor import Processor
from barnabas.zookeeper.reads import Reading, Reads
from barnabas.zookeeper.sessions import Sessions
from barnabas.zookeeper.tree import Effect, Transaction
from barnabas.zookeeper.watches import DATA, Watches


def _answer_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """A response leaves when its transaction has been carried out in memory."""
    send = ClientConnection.send

    def send_at_once(self: ClientConnection, frame: bytes) -> None:
        server = self._server
        synced, server.synced_zxid = server.synced_zxid, server.processor.tree.zxid
        send(self, frame)
        server.synced_zxid = synced

    patch.setattr(ClientConnection, "send", send_at_once)


def _lose_sessions(patch: pytest.MonkeyPatch) -> None:
    """A session that began before a restart cannot continue, and its nodes stay."""

    def restore(snapshot: bytes, tree: trees.Tree, sessions: Sessions) -> None:
        transactions.restore(snapshot, tree, sessions)
        sessions.by_id.clear()

    patch.setattr(journal, "restore", restore)


def _notify_late(patch: pytest.MonkeyPatch) -> None:
    """An event leaves after the next response."""
    notify, send = ClientConnection.notify, ClientConnection.send
    late: dict[ClientConnection, list[tuple[int, str]]] = {}

    def notify_late(self: ClientConnection, kind: int, path: str) -> None:
        late.setdefault(self, []).append((kind, path))

    def send_first(self: ClientConnection, frame: bytes) -> None:
        send(self, frame)
        for kind, path in late.pop(self, []):
            notify(self, kind, path)

    patch.setattr(ClientConnection, "notify", notify_late)
    patch.setattr(ClientConnection, "send", send_first)


def _keep_ephemerals(patch: pytest.MonkeyPatch) -> None:
    """The nodes of a closed session stay."""

    def end_session(self: Processor, session_id: int, time_ms: int) -> None:
        transaction = self.tree.begin(time_ms)
        transaction.do(Effect(trees.CLOSE_SESSION, "", number=session_id))
        self.sessions.close(session_id)
        self._commit(transaction)

    patch.setattr(Processor, "end_session", end_session)


def _expire_too_early(patch: pytest.MonkeyPatch) -> None:
    """A start gives no session its whole timeout."""
    patch.setattr(Sessions, "touch_all", lambda self, now_s: None)


def _forget_missed_changes(patch: pytest.MonkeyPatch) -> None:
    """Watches that are registered again do not report what was missed."""
    answer, notify = Reads.answer, ClientConnection.notify

    def answer_silently(self: Reads, op: int, reader: JuteReader, reading: Reading) -> bytes:
        if op != Op.SET_WATCHES:
            return answer(self, op, reader, reading)
        patch.setattr(ClientConnection, "notify", lambda self, kind, path: None)
        try:
            return answer(self, op, reader, reading)
        finally:
            patch.setattr(ClientConnection, "notify", notify)

    patch.setattr(Reads, "answer", answer_silently)


def _lose_a_watch(patch: pytest.MonkeyPatch) -> None:
    """A second client's watch of the same node replaces the first one's."""
    add = Watches.add

    def replace(self: Watches, kind: str, path: str, watcher: object) -> None:
        if kind == DATA:
            for each in list(self._by_kind[kind].get(path, ())):
                self._discard(kind, path, each)
        add(self, kind, path, watcher)  # type: ignore[arg-type]

    patch.setattr(Watches, "add", replace)


def _use_a_number_twice(patch: pytest.MonkeyPatch) -> None:
    """A change of data takes no number of its own."""
    commit = Transaction.commit

    def commit_some(self: Transaction) -> None:
        if self.effects[0].kind != trees.SET_DATA:
            commit(self)

    patch.setattr(Transaction, "commit", commit_some)


def _release_too_much(patch: pytest.MonkeyPatch) -> None:
    """After a sync, what waits for a later one leaves as well."""
    release = ClientConnection.release
    patch.setattr(ClientConnection, "release", lambda self, zxid: release(self, zxid + 1))


def _skip_the_sync(patch: pytest.MonkeyPatch) -> None:
    """A batch is written, but not synced."""

    def append(self: Journal, batch: bytes) -> None:
        whole = frame(batch)
        self._file.write(self.size_bytes, whole)
        self.size_bytes += len(whole)
        self.synced_zxid = zxid_of(batch)
        self._file.write(self.size_bytes, seal(self.synced_zxid))

    patch.setattr(Journal, "append", append)


def _ignore_a_full_disk(patch: pytest.MonkeyPatch) -> None:
    """What does not fit on the disk is acknowledged like everything else."""
    append = Journal.append

    def append_some(self: Journal, batch: bytes) -> None:
        with suppress(OSError):
            append(self, batch)

    patch.setattr(Journal, "append", append_some)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "answer before the sync": _answer_before_the_sync,
    "sync skipped": _skip_the_sync,
    "full disk ignored": _ignore_a_full_disk,
    "released too early": _release_too_much,
    "session not restored": _lose_sessions,
    "session expired by a start": _expire_too_early,
    "ephemerals of a closed session": _keep_ephemerals,
    "event after the response": _notify_late,
    "missed change not reported": _forget_missed_changes,
    "watch replaced": _lose_a_watch,
    "number used twice": _use_a_number_twice,
}
