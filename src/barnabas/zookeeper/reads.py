"""Answers the requests that only read the tree or manage watches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.errors import CorruptData
from barnabas.zookeeper.access import Identity, check, may_change_acl, without_hashes
from barnabas.zookeeper.changes import header_bytes, multi_body, next_operation
from barnabas.zookeeper.codes import Code, Event, Op, Perm, Refusal
from barnabas.zookeeper.jute import (
    JuteReader,
    acls_bytes,
    buffer_bytes,
    int_bytes,
    stat_bytes,
    string_bytes,
    strings_bytes,
)
from barnabas.zookeeper.paths import check_path
from barnabas.zookeeper.tree import Node, Tree
from barnabas.zookeeper.watches import CHILDREN, DATA, PERSISTENT, RECURSIVE, Watcher, Watches

_MODES = (PERSISTENT, RECURSIVE)


class Reads:
    """Reads the tree for connections."""

    __slots__ = ("_answers", "_tree", "_watches")

    def __init__(self, tree: Tree, watches: Watches) -> None:
        self._tree = tree
        self._watches = watches
        self._answers: dict[int, Callable[[JuteReader, Reading], bytes]] = {
            Op.EXISTS: self._exists,
            Op.GET_DATA: self._get_data,
            Op.GET_ACL: self._get_acl,
            Op.GET_CHILDREN: self._get_children,
            Op.GET_CHILDREN2: self._get_children2,
            Op.SYNC: lambda reader, _: string_bytes(reader.string()),
            Op.MULTI_READ: self._multi_read,
            Op.GET_EPHEMERALS: self._get_ephemerals,
            Op.GET_ALL_CHILDREN_NUMBER: self._count_descendants,
            Op.WHO_AM_I: lambda _, reading: _clients_bytes(reading.identities),
            Op.CHECK_WATCHES: self._check_watches,
            Op.REMOVE_WATCHES: self._remove_watches,
            Op.ADD_WATCH: self._add_watch,
            Op.SET_WATCHES: lambda reader, reading: self._set_watches(reader, reading, 3),
            Op.SET_WATCHES2: lambda reader, reading: self._set_watches(reader, reading, 5),
        }

    def can_answer(self, op: int) -> bool:
        return op in self._answers

    def answer(self, op: int, reader: JuteReader, reading: Reading) -> bytes:
        """Return the body of the response. Raises Refusal or CorruptData."""
        return self._answers[op](reader, reading)

    def _exists(self, reader: JuteReader, reading: Reading) -> bytes:
        path, watch = reader.string(), reader.boolean()
        if path.startswith("/") and watch:  # also if the node does not exist
            self._watches.add(DATA, path, reading.watcher)
        return stat_bytes(self._node(path).stat)

    def _get_data(self, reader: JuteReader, reading: Reading) -> bytes:
        path, watch = reader.string(), reader.boolean()
        node = self._readable(path, reading)
        if watch:
            self._watches.add(DATA, path, reading.watcher)
        return buffer_bytes(node.data) + stat_bytes(node.stat)

    def _get_acl(self, reader: JuteReader, reading: Reading) -> bytes:
        node = self._node(reader.string())
        check(node.acl, Perm.READ | Perm.ADMIN, reading.identities)
        is_admin = may_change_acl(node.acl, reading.identities)
        return acls_bytes(node.acl if is_admin else without_hashes(node.acl)) + stat_bytes(
            node.stat
        )

    def _get_children(self, reader: JuteReader, reading: Reading) -> bytes:
        return strings_bytes(self._parent(reader, reading).children)

    def _get_children2(self, reader: JuteReader, reading: Reading) -> bytes:
        node = self._parent(reader, reading)
        return strings_bytes(node.children) + stat_bytes(node.stat)

    def _parent(self, reader: JuteReader, reading: Reading) -> Node:
        path, watch = reader.string(), reader.boolean()
        node = self._readable(path, reading)
        if watch:
            self._watches.add(CHILDREN, path, reading.watcher)
        return node

    def _multi_read(self, reader: JuteReader, reading: Reading) -> bytes:
        results = []
        while (op := next_operation(reader)) is not None:
            if op not in (Op.GET_DATA, Op.GET_CHILDREN):
                raise CorruptData(f"a multi-read contains an operation of type {op}")
            try:
                body = self.answer(op, reader, reading)
                results.append(header_bytes(op, Code.OK) + body)
            except Refusal as refusal:
                results.append(header_bytes(Op.ERROR, refusal.code) + int_bytes(refusal.code))
        return multi_body(results)

    def _get_ephemerals(self, reader: JuteReader, reading: Reading) -> bytes:
        prefix = reader.string()
        own = self._tree.ephemerals.get(reading.session_id, {})
        return strings_bytes(each for each in own if each.startswith(prefix))

    def _count_descendants(self, reader: JuteReader, reading: Reading) -> bytes:
        path = reader.string()
        self._readable(path, reading)
        if path == "/":
            return int_bytes(len(self._tree.nodes) - 1)
        return int_bytes(sum(each.startswith(f"{path}/") for each in self._tree.nodes))

    def _check_watches(self, reader: JuteReader, reading: Reading) -> bytes:
        path, kind = reader.string(), reader.i32()
        if not self._watches.has(path, kind, reading.watcher):
            raise Refusal(Code.NO_WATCHER)
        return b""

    def _remove_watches(self, reader: JuteReader, reading: Reading) -> bytes:
        path, kind = reader.string(), reader.i32()
        if not self._watches.has(path, kind, reading.watcher):
            raise Refusal(Code.NO_WATCHER)
        self._watches.remove(path, kind, reading.watcher)
        return b""

    def _add_watch(self, reader: JuteReader, reading: Reading) -> bytes:
        path, mode = reader.string(), reader.i32()
        check_path(path)
        if not 0 <= mode < len(_MODES):
            raise Refusal(Code.BAD_ARGUMENTS)
        self._watches.add(_MODES[mode], path, reading.watcher)
        return int_bytes(Code.OK)

    def _set_watches(self, reader: JuteReader, reading: Reading, kinds: int) -> bytes:
        """Register watches again after a reconnection.

        A watch is fired at once if the client has missed a change.
        """
        zxid = reader.i64()
        paths = [reader.strings() for _ in range(kinds)]
        nodes, watcher = self._tree.nodes, reading.watcher
        for path in paths[0]:
            if path not in nodes:
                watcher.notify(Event.DELETED, path)
            elif nodes[path].mzxid > zxid:
                watcher.notify(Event.DATA_CHANGED, path)
            else:
                self._watches.add(DATA, path, watcher)
        for path in paths[1]:
            if path in nodes:
                watcher.notify(Event.CREATED, path)
            else:
                self._watches.add(DATA, path, watcher)
        for path in paths[2]:
            if path not in nodes:
                watcher.notify(Event.DELETED, path)
            elif nodes[path].pzxid > zxid:
                watcher.notify(Event.CHILDREN_CHANGED, path)
            else:
                self._watches.add(CHILDREN, path, watcher)
        for kind, again in zip(_MODES, paths[3:], strict=False):
            for path in again:
                self._watches.add(kind, path, watcher)
        return b""

    def _readable(self, path: str, reading: Reading) -> Node:
        node = self._node(path)
        check(node.acl, Perm.READ, reading.identities)
        return node

    def _node(self, path: str) -> Node:
        node = self._tree.nodes.get(path)
        if node is None:
            raise Refusal(Code.NO_NODE)
        return node


class Reading:
    """Identifies who reads, and who receives the events of watches."""

    __slots__ = ("identities", "session_id", "watcher")

    def __init__(self, watcher: Watcher, session_id: int, identities: Sequence[Identity]) -> None:
        self.watcher = watcher
        self.session_id = session_id
        self.identities = identities


def _clients_bytes(identities: Sequence[Identity]) -> bytes:
    parts = [
        string_bytes(scheme) + string_bytes(id_.partition(":")[0] if scheme == "digest" else id_)
        for scheme, id_ in identities
    ]
    return int_bytes(len(parts)) + b"".join(parts)
