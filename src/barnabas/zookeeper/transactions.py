"""Encodes and decodes transactions and whole states, for the journal and the snapshot. Pure.

    batch:        i64 the last zxid in it | transactions, up to the end
    transaction:  i64 zxid | i64 time | i32 number of effects | effects
    effect:       i32 kind | string path | buffer data | ACL | i64 number | i32 timeout

    snapshot:     i64 zxid | i32 number of sessions | sessions | nodes, parents first, up to the end
    session:      i64 id | i32 timeout | buffer password
    node:         string path | buffer data | ACL | i64 owner, czxid, mzxid, pzxid, ctime, mtime
                  | i32 version, aversion, children created

The strings, buffers and ACLs are those of `jute`. The frames contain checksums, so malformed bytes
come from a bug; they raise CorruptData.
"""

from __future__ import annotations

from struct import Struct

from barnabas.errors import CorruptData
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.jute import (
    JuteReader,
    acls_bytes,
    buffer_bytes,
    int_bytes,
    long_bytes,
    string_bytes,
)
from barnabas.zookeeper.sessions import Session, Sessions
from barnabas.zookeeper.tree import RESERVED, Effect, Node, Transaction, Tree, parent_of

_HEAD = Struct(">qqi")
_TAIL = Struct(">qi")
_NODE_TAIL = Struct(">qqqqqqiii")


def transaction_bytes(transaction: Transaction) -> bytes:
    parts = [_HEAD.pack(transaction.zxid, transaction.time_ms, len(transaction.effects))]
    for each in transaction.effects:
        parts += (
            *(int_bytes(each.kind), string_bytes(each.path), buffer_bytes(each.data)),
            *(acls_bytes(each.acl), _TAIL.pack(each.number, each.timeout_ms)),
        )
    return b"".join(parts)


def replay(batch: bytes, tree: Tree, sessions: Sessions) -> None:
    """Apply the transactions of a batch, except those that the tree contains already.

    Raises CorruptData if a transaction before them is missing.
    """
    reader = JuteReader(batch)
    reader.i64()
    while reader.left:
        zxid, time_ms, count = reader.i64(), reader.i64(), reader.i32()
        effects = [_effect(reader) for _ in range(count)]
        if zxid <= tree.zxid:
            continue
        transaction = tree.begin(time_ms)
        if zxid != transaction.zxid:
            raise CorruptData(f"transaction {transaction.zxid} is missing before {zxid}")
        for each in effects:
            _apply(each, transaction, sessions)
        transaction.commit()


def snapshot_bytes(tree: Tree, sessions: Sessions) -> bytes:
    parts = [long_bytes(tree.zxid), int_bytes(len(sessions.by_id))]
    for session in sessions.by_id.values():
        parts += (long_bytes(session.session_id), int_bytes(session.timeout_ms))
        parts.append(buffer_bytes(session.password))
    for path, node in sorted(tree.nodes.items()):
        numbers = (node.owner, node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime)
        parts += (
            *(string_bytes(path), buffer_bytes(node.data), acls_bytes(node.acl)),
            _NODE_TAIL.pack(*numbers, node.version, node.aversion, node.creations),
        )
    return b"".join(parts)


def restore(snapshot: bytes, tree: Tree, sessions: Sessions) -> None:
    """Fill a new tree and new sessions from a snapshot."""
    reader = JuteReader(snapshot)
    tree.zxid = reader.i64()
    for _ in range(reader.i32()):
        session_id, timeout_ms = reader.i64(), reader.i32()
        sessions.open(Session(session_id, timeout_ms, reader.buffer() or b""))
    while reader.left:
        path, data, acl = reader.string(), reader.buffer(), tuple(reader.acls())
        node = Node(data, acl, reader.i64())
        node.czxid, node.mzxid, node.pzxid = reader.i64(), reader.i64(), reader.i64()
        node.ctime, node.mtime = reader.i64(), reader.i64()
        node.version, node.aversion, node.creations = reader.i32(), reader.i32(), reader.i32()
        if path in RESERVED:
            node.children = tree.nodes[path].children
        elif parent_of(path) not in tree.nodes:
            raise CorruptData(f"the parent of {path} is missing from the snapshot")
        tree.insert(path, node)


def _effect(reader: JuteReader) -> Effect:
    kind, path, data, acl = reader.i32(), reader.string(), reader.buffer(), tuple(reader.acls())
    return Effect(kind, path, data, acl, reader.i64(), reader.i32())


def _apply(effect: Effect, transaction: Transaction, sessions: Sessions) -> None:
    try:
        transaction.do(effect)
    except KeyError:
        raise CorruptData(
            f"transaction {transaction.zxid} changes {effect.path}, which does not exist"
        ) from None
    if effect.kind == trees.OPEN_SESSION:
        sessions.open(Session(effect.number, effect.timeout_ms, effect.data or b""))
    elif effect.kind == trees.CLOSE_SESSION:
        sessions.close(effect.number)
