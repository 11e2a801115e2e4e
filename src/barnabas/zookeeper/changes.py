"""Carries out the requests that change the tree, with ZooKeeper's checks in their order. Pure.

A change either is applied to a transaction or raises Refusal. In a multi, the first change that is
refused undoes all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.access import Identity, check, resolve
from barnabas.zookeeper.codes import Code, Flag, Op, Perm, Refusal
from barnabas.zookeeper.jute import (
    Acl,
    JuteReader,
    int_bytes,
    stat_bytes,
    string_bytes,
)
from barnabas.zookeeper.paths import check_parent, check_path
from barnabas.zookeeper.tree import (
    CONTAINER_OWNER,
    MOST_TTL_MS,
    RESERVED,
    Effect,
    Node,
    Transaction,
    Tree,
    ttl_owner,
)

_ANY_VERSION = -1
_EPHEMERAL = (Flag.EPHEMERAL, Flag.EPHEMERAL_SEQUENTIAL)
_TTL = (Flag.PERSISTENT_WITH_TTL, Flag.PERSISTENT_SEQUENTIAL_WITH_TTL)
_SEQUENTIAL = (
    Flag.PERSISTENT_SEQUENTIAL,
    Flag.EPHEMERAL_SEQUENTIAL,
    Flag.PERSISTENT_SEQUENTIAL_WITH_TTL,
)
_LAST_HEADER = int_bytes(-1) + b"\1" + int_bytes(-1)
_LEAST_OPERATION_BYTES = 9

CREATIONS = (Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL)


class Caller(NamedTuple):
    """Identifies who makes a request."""

    session_id: int
    identities: Sequence[Identity]


class Change(NamedTuple):
    """A request that changes the tree or, for CHECK, that depends on its state."""

    op: int
    path: str
    data: bytes | None = None
    acl: Sequence[Acl] = ()
    flags: int = 0
    version: int = _ANY_VERSION
    ttl_ms: int = -1


def read_change(op: int, reader: JuteReader) -> Change:
    """Decode the body of a request. Raises CorruptData."""
    path = reader.string()
    if op in CREATIONS:
        data, acl, flags = reader.buffer(), reader.acls(), reader.i32()
        ttl_ms = reader.i64() if op == Op.CREATE_TTL else -1
        return Change(op, path, data, acl, flags, ttl_ms=ttl_ms)
    if op == Op.SET_DATA:
        data = reader.buffer()
        return Change(op, path, data, version=reader.i32())
    if op == Op.SET_ACL:
        acl = reader.acls()
        return Change(op, path, acl=acl, version=reader.i32())
    return Change(op, path, version=reader.i32())  # DELETE and CHECK


def read_changes(reader: JuteReader) -> list[Change]:
    """Decode the operations of a multi. Raises CorruptData."""
    changes = []
    while (op := next_operation(reader)) is not None:
        if op not in (*CREATIONS, Op.DELETE, Op.SET_DATA, Op.CHECK):
            raise CorruptData(f"a multi contains an operation of type {op}")
        change = read_change(op, reader)
        if op == Op.CREATE_TTL and change.flags not in _TTL:
            # ZooKeeper ignores the time in this case, but only in a multi.
            change = change._replace(op=Op.CREATE, ttl_ms=-1)
        changes.append(change)
    return changes


def next_operation(reader: JuteReader) -> int | None:
    """Read the header of the next operation of a multi, and return its type, or None at the end."""
    op, is_last, _ = reader.i32(), reader.boolean(), reader.i32()
    return None if is_last else op


def header_bytes(op: int, code: int) -> bytes:
    return int_bytes(op) + b"\0" + int_bytes(code)


def multi_body(results: Sequence[bytes]) -> bytes:
    return b"".join(results) + _LAST_HEADER


def carry_out(
    tree: Tree, transaction: Transaction, change: Change, caller: Caller
) -> tuple[int, bytes]:
    """Apply the change, and return the type of the result with the body. Raises Refusal."""
    if change.op in CREATIONS:
        return _create(tree, transaction, change, caller)
    if change.op == Op.DELETE:
        return _delete(tree, transaction, change, caller)
    if change.op == Op.SET_DATA:
        return _set_data(tree, transaction, change, caller)
    if change.op == Op.SET_ACL:
        return _set_acl(tree, transaction, change, caller)
    check_path(change.path)
    node = _node(tree, change.path)
    check(node.acl, Perm.READ, caller.identities)
    _check_version(node.version, change.version)
    return Op.CHECK, b""


def carry_out_all(
    tree: Tree, transaction: Transaction, changes: Sequence[Change], caller: Caller
) -> list[bytes]:
    """Apply all changes of a multi, or none of them, and return their results."""
    results = []
    for place, change in enumerate(changes):
        try:
            op, body = carry_out(tree, transaction, change, caller)
        except Refusal as refusal:
            transaction.roll_back()
            transaction.effects.clear()
            codes = [Code.OK] * place + [refusal.code]
            codes += [Code.RUNTIME_INCONSISTENCY] * (len(changes) - len(codes))
            return [header_bytes(Op.ERROR, each) + int_bytes(each) for each in codes]
        results.append(header_bytes(op, Code.OK) + body)
    return results


def _create(
    tree: Tree, transaction: Transaction, change: Change, caller: Caller
) -> tuple[int, bytes]:
    flags, path = change.flags, change.path
    _check_flags(tree, change)
    check_parent(path)
    acl = resolve(change.acl, caller.identities)
    parent = _node(tree, trees.parent_of(path))
    check(parent.acl, Perm.CREATE, caller.identities)
    if flags in _SEQUENTIAL:
        path = f"{path}{parent.creations:010d}"
    check_path(path)
    if path in tree.nodes:
        raise Refusal(Code.NODE_EXISTS)
    if parent.is_ephemeral:
        raise Refusal(Code.NO_CHILDREN_FOR_EPHEMERALS)
    owner = caller.session_id if flags in _EPHEMERAL else 0
    is_container = change.op == Op.CREATE_CONTAINER or flags == Flag.CONTAINER
    owner = CONTAINER_OWNER if is_container else owner
    owner = ttl_owner(change.ttl_ms) if flags in _TTL else owner
    transaction.do(Effect(trees.CREATE, path, change.data, acl, owner))
    body = string_bytes(path)
    if change.op == Op.CREATE:
        return Op.CREATE, body
    return Op.CREATE2, body + stat_bytes(tree.nodes[path].stat)


def _check_flags(tree: Tree, change: Change) -> None:
    flags, ttl_ms = change.flags, change.ttl_ms
    if not Flag.PERSISTENT <= flags <= Flag.PERSISTENT_SEQUENTIAL_WITH_TTL:
        raise Refusal(Code.BAD_ARGUMENTS)
    if flags not in _TTL:
        if ttl_ms >= 0:
            raise Refusal(Code.BAD_ARGUMENTS)
    elif not tree.accepts_ttl:
        raise Refusal(Code.UNIMPLEMENTED)
    elif not 0 < ttl_ms <= MOST_TTL_MS:
        raise Refusal(Code.BAD_ARGUMENTS)


def _delete(
    tree: Tree, transaction: Transaction, change: Change, caller: Caller
) -> tuple[int, bytes]:
    path = change.path
    check_parent(path)
    if path in RESERVED:
        raise Refusal(Code.BAD_ARGUMENTS)
    parent, node = _node(tree, trees.parent_of(path)), _node(tree, path)
    check(parent.acl, Perm.DELETE, caller.identities)
    _check_version(node.version, change.version)
    if node.children:
        raise Refusal(Code.NOT_EMPTY)
    transaction.do(Effect(trees.DELETE, path))
    return Op.DELETE, b""


def _set_data(
    tree: Tree, transaction: Transaction, change: Change, caller: Caller
) -> tuple[int, bytes]:
    check_path(change.path)
    node = _node(tree, change.path)
    check(node.acl, Perm.WRITE, caller.identities)
    _check_version(node.version, change.version)
    transaction.do(Effect(trees.SET_DATA, change.path, change.data))
    return Op.SET_DATA, stat_bytes(node.stat)


def _set_acl(
    tree: Tree, transaction: Transaction, change: Change, caller: Caller
) -> tuple[int, bytes]:
    check_path(change.path)
    acl = resolve(change.acl, caller.identities)
    node = _node(tree, change.path)
    check(node.acl, Perm.ADMIN, caller.identities)
    _check_version(node.aversion, change.version)
    transaction.do(Effect(trees.SET_ACL, change.path, acl=acl))
    return Op.SET_ACL, stat_bytes(node.stat)


def _node(tree: Tree, path: str) -> Node:
    node = tree.nodes.get(path)
    if node is None:
        raise Refusal(Code.NO_NODE)
    return node


def _check_version(version: int, expected: int) -> None:
    if expected not in (_ANY_VERSION, version):
        raise Refusal(Code.BAD_VERSION)
