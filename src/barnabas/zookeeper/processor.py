"""Carries out the requests of all connections on one tree. Pure.

Everything that is sent to a client passes through `Peer.send`. The shell holds it back until the
transactions that were staged before are on disk, so no client ever sees a change that could be
lost. Because both watch events and responses take this way, an event precedes the response of any
read that shows the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.changes import (
    CREATIONS,
    Caller,
    carry_out,
    carry_out_all,
    multi_body,
    read_change,
    read_changes,
)
from barnabas.zookeeper.codes import Code, Event, Op, Refusal
from barnabas.zookeeper.jute import (
    ConnectRequest,
    JuteReader,
    buffer_bytes,
    connect_frame,
    reply_frame,
)
from barnabas.zookeeper.login import NO_LOGIN, Candidate, Login
from barnabas.zookeeper.reads import Reading, Reads
from barnabas.zookeeper.sessions import PASSWORD_BYTES, Session, Sessions
from barnabas.zookeeper.transactions import transaction_bytes
from barnabas.zookeeper.tree import Effect, Transaction, Tree
from barnabas.zookeeper.watches import Watcher, Watches

_CHANGES = (*CREATIONS, Op.DELETE, Op.SET_DATA, Op.SET_ACL, Op.CHECK)
_BEFORE_LOGIN = (Op.AUTH, Op.SASL)
_EVENTS = {
    trees.CREATE: (Event.CREATED, True),
    trees.DELETE: (Event.DELETED, True),
    trees.SET_DATA: (Event.DATA_CHANGED, False),
}


_CLOSING = (Code.AUTH_FAILED, Code.SESSION_CLOSED_REQUIRES_LOGIN)


class Peer(Watcher, Candidate, Protocol):
    """A client's connection."""

    session: Session | None

    def send(self, frame: bytes) -> None: ...

    def finish(self) -> None:
        """Close the connection after everything that was sent."""
        ...


class Processor:
    """The tree, the sessions and the watches of a server."""

    __slots__ = ("_login", "_peers", "_reads", "_staged", "sessions", "tree", "watches")

    def __init__(self, tree: Tree, sessions: Sessions, login: Login = NO_LOGIN) -> None:
        self._login = login
        self.tree = tree
        self.sessions = sessions
        self.watches = Watches()
        self._reads = Reads(tree, self.watches)
        self._staged: list[bytes] = []
        self._peers: dict[int, Peer] = {}

    def take_staged(self) -> list[bytes]:
        """Return the transactions since the last call, which have to be written to the journal."""
        staged, self._staged = self._staged, []
        return staged

    def connect(
        self, peer: Peer, request: ConnectRequest, time_ms: int, new_password: Callable[[], bytes]
    ) -> None:
        """Begin a session, or let a client continue the session that it had."""
        session: Session | None
        if request.session_id:
            session = self.sessions.find(request.session_id, request.password)
            if session is not None:
                session.timeout_ms = self.sessions.timeout_for(request.timeout_ms)
        else:
            timeout_ms = self.sessions.timeout_for(request.timeout_ms)
            session = Session(self.sessions.new_id(), timeout_ms, new_password())
            self.sessions.open(session)
            transaction = self.tree.begin(time_ms)
            number = session.session_id
            transaction.do(Effect(trees.OPEN_SESSION, "", session.password, (), number, timeout_ms))
            self._commit(transaction)
        if session is None:
            peer.send(connect_frame(0, 0, bytes(PASSWORD_BYTES), request.has_read_only))
            peer.finish()
            return
        earlier = self._peers.get(session.session_id)
        if earlier is not None:
            earlier.session = None
            earlier.finish()  # the session has moved to the new connection
        self._peers[session.session_id] = peer
        peer.session = session
        peer.send(
            connect_frame(
                session.timeout_ms, session.session_id, session.password, request.has_read_only
            )
        )

    def disconnect(self, peer: Peer) -> None:
        """Forget a connection that has been closed. Its session continues."""
        self.watches.remove_all(peer)
        session, peer.session = peer.session, None
        if session is not None and self._peers.get(session.session_id) is peer:
            del self._peers[session.session_id]

    def execute(self, peer: Peer, frame: bytes, time_ms: int) -> None:
        """Carry out a request and send the response. Raises CorruptData if it is malformed."""
        reader = JuteReader(frame)
        xid, op = reader.i32(), reader.i32()
        session = peer.session
        if session is None:
            return  # the session has just ended or moved
        body, code = b"", Code.OK
        try:
            if self._login.is_required and op not in _BEFORE_LOGIN:
                self._login.check(peer)
            if op in _CHANGES:
                body = self._change(peer, session, op, reader, time_ms)
            elif op == Op.MULTI:
                body = self._multi(peer, session, reader, time_ms)
            elif op == Op.CLOSE_SESSION:
                self.end_session(session.session_id, time_ms)
            elif op == Op.AUTH:
                self._login.add_identity(peer, reader)
            elif op == Op.SASL:
                body = self._login.respond(peer, reader)
            elif self._reads.can_answer(op):
                reading = Reading(peer, session.session_id, peer.identities)
                body = self._reads.answer(op, reader, reading)
            elif op != Op.PING:
                code = Code.UNIMPLEMENTED
        except Refusal as refusal:
            code = refusal.code
            body = buffer_bytes(None) if op == Op.SASL else b""
        peer.send(reply_frame(xid, self.tree.zxid, code, body))
        if op == Op.CLOSE_SESSION or code in _CLOSING:
            peer.finish()

    def end_session(self, session_id: int, time_ms: int) -> None:
        """Close a session, and delete its ephemeral nodes."""
        transaction = self.tree.begin(time_ms)
        for path in list(self.tree.ephemerals.get(session_id, ())):
            transaction.do(Effect(trees.DELETE, path))
        transaction.do(Effect(trees.CLOSE_SESSION, "", number=session_id))
        self.sessions.close(session_id)
        self._commit(transaction)

    def expire(self, session_id: int, time_ms: int) -> None:
        """End a session whose deadline has passed, and close its connection."""
        self.end_session(session_id, time_ms)
        peer = self._peers.pop(session_id, None)
        if peer is not None:
            peer.session = None
            peer.finish()

    def delete_unused(self, time_ms: int) -> None:
        """Delete empty containers that have had children, and nodes past their time to live."""
        nodes = self.tree.nodes
        for path in list(self.tree.containers):
            if nodes[path].creations and not nodes[path].children:
                self._delete(path, time_ms)
        for path in list(self.tree.with_ttl):
            node = nodes[path]
            if not node.children and time_ms - node.mtime > node.ttl_ms:
                self._delete(path, time_ms)

    def _delete(self, path: str, time_ms: int) -> None:
        transaction = self.tree.begin(time_ms)
        transaction.do(Effect(trees.DELETE, path))
        self._commit(transaction)

    def _change(
        self, peer: Peer, session: Session, op: int, reader: JuteReader, time_ms: int
    ) -> bytes:
        change = read_change(op, reader)
        transaction = self.tree.begin(time_ms)
        caller = Caller(session.session_id, peer.identities)
        body = carry_out(self.tree, transaction, change, caller)[1]
        self._commit(transaction)
        return body

    def _multi(self, peer: Peer, session: Session, reader: JuteReader, time_ms: int) -> bytes:
        changes = read_changes(reader)
        transaction = self.tree.begin(time_ms)
        caller = Caller(session.session_id, peer.identities)
        results = carry_out_all(self.tree, transaction, changes, caller)
        self._commit(transaction)
        return multi_body(results)

    def _commit(self, transaction: Transaction) -> None:
        # A transaction without effects, which only checks or has failed, takes no number.
        if not transaction.effects:
            return
        transaction.commit()
        self._staged.append(transaction_bytes(transaction))
        for effect in transaction.effects:
            if effect.kind in _EVENTS:
                event, changes_parent = _EVENTS[effect.kind]
                self.watches.fire(event, effect.path)
                if changes_parent:
                    self.watches.fire(Event.CHILDREN_CHANGED, trees.parent_of(effect.path))
