"""Encodes and decodes commits and whole trees, for the embedded store's journal and snapshot.

    commit:    i64 zxid | effects, up to the end
    effect:    u8 kind (1 create, 2 set, 3 delete) | node
    node:      i64 owner | u16 length, path (UTF-8) | i32 length (-1: null), data

    snapshot:  i64 zxid | entries, up to the end, parents before their children
    entry:     i32 version | i32 children created | i64 czxid | node                  (big-endian)

The frame contains the checksum. Bytes that pass it but are malformed come from a bug, and raise
CorruptData.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from barnabas.cluster.nodes import Effect, Node, Stage, Tree
from barnabas.errors import CorruptData

_ZXID = Struct(">q")
_KIND = Struct(">B")
_NODE = Struct(">qH")
_LENGTH = Struct(">i")
_ENTRY = Struct(">iiq")


def commit_to_bytes(stage: Stage) -> bytes:
    parts = [_ZXID.pack(stage.zxid)]
    for effect in stage.effects:
        parts.append(_KIND.pack(effect.kind))
        parts.append(_node_to_bytes(effect.path, effect.owner, effect.data))
    return b"".join(parts)


def commit_from_bytes(payload: bytes, tree: Tree) -> Stage | None:
    """Stage the commit on the tree.

    If the tree is a snapshot that already contains the commit, return None.
    """
    reader = _Reader(payload)
    (zxid,) = reader.unpack(_ZXID)
    if zxid <= tree.zxid:
        return None
    stage = Stage(tree, zxid)
    while reader.has_more():
        (kind,) = reader.unpack(_KIND)
        owner, path, data = reader.node()
        try:
            stage.do(Effect(kind, path, data, owner))
        except KeyError:
            raise CorruptData(f"commit {zxid} changes {path}, which does not exist") from None
    return stage


def tree_to_bytes(tree: Tree) -> bytes:
    parts = [_ZXID.pack(tree.zxid)]
    for path, node in sorted(tree.nodes.items()):
        parts.append(_ENTRY.pack(node.version, node.children_created, node.czxid))
        parts.append(_node_to_bytes(path, node.owner, node.data))
    return b"".join(parts)


def tree_from_bytes(payload: bytes) -> Tree:
    tree = Tree()
    reader = _Reader(payload)
    (tree.zxid,) = reader.unpack(_ZXID)
    while reader.has_more():
        version, children_created, czxid = reader.unpack(_ENTRY)
        owner, path, data = reader.node()
        node = tree.nodes[path] = Node(data, owner, czxid)
        node.version = version
        node.children_created = children_created
        if path != "/":
            parent, _, name = path.rpartition("/")
            tree.nodes[parent or "/"].children.add(name)
    return tree


def _node_to_bytes(path: str, owner: int, data: bytes | None) -> bytes:
    name = path.encode()
    length = -1 if data is None else len(data)
    return _NODE.pack(owner, len(name)) + name + _LENGTH.pack(length) + (data or b"")


class _Reader:
    """Reads a payload one field at a time."""

    __slots__ = ("_payload", "_position")

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def has_more(self) -> bool:
        return self._position < len(self._payload)

    def unpack(self, struct: Struct) -> tuple[int, ...]:
        try:
            fields: tuple[int, ...] = struct.unpack_from(self._payload, self._position)
        except StructError:
            raise CorruptData("metadata ends in the middle of a field") from None
        self._position += struct.size
        return fields

    def node(self) -> tuple[int, str, bytes | None]:
        owner, length = self.unpack(_NODE)
        path = self._take(length).decode()
        (length,) = self.unpack(_LENGTH)
        return owner, path, None if length < 0 else self._take(length)

    def _take(self, length: int) -> bytes:
        start = self._position
        self._position += length
        if self._position > len(self._payload):
            raise CorruptData("metadata ends in the middle of a field")
        return self._payload[start : self._position]
