"""Implements a tree of nodes in memory, and the commits that change it.

A commit is first staged: its operations are checked in order, and applied to copies of the nodes
that they change. If all operations are possible, the copies replace the nodes (`merge`); otherwise,
the copies are dropped. It is therefore never necessary to undo a change. The journal contains the
effects of the operations, which do not have to be checked again; a replay stages and merges them.

Invariant: a commit is staged on the tree that resulted from the last commit. Sessions, watches and
the disk are handled by the stores, not by this module, in which an owner is just a number.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cluster.store import (
    ANY_VERSION,
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
    Znode,
)
from barnabas.named_tuple import NamedTuple

CREATE, SET, DELETE = 1, 2, 3

_SEQUENCE_DIGITS = 10
_LAST_NUMBER = 0x7FFFFFFF


class Effect(NamedTuple):
    """A change to one node of the tree.

    If it creates an ephemeral node, `owner` is the node's session.
    """

    kind: int
    path: str
    data: bytes | None = None
    owner: int = 0


class Node:
    """A node. `children_created` counts all children ever created, for sequential names.

    If a numbered child was imported from another tree, the count is higher, because the next number
    must be greater than the number of that child.
    """

    __slots__ = ("children", "children_created", "czxid", "data", "owner", "version")

    def __init__(self, data: bytes | None, owner: int, czxid: int) -> None:
        self.data = data
        self.owner = owner
        self.czxid = czxid
        self.version = 0
        self.children: set[str] = set()
        self.children_created = 0

    def copy(self) -> Node:
        made = Node(self.data, self.owner, self.czxid)
        made.version = self.version
        made.children = set(self.children)
        made.children_created = self.children_created
        return made


class Tree:
    """All nodes by path. `zxid` is the number of the commit that was merged last."""

    __slots__ = ("nodes", "zxid")

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(None, 0, 0)}
        self.zxid = 0

    def read(self, path: str) -> Znode | None:
        node = self.nodes.get(path)
        if node is None:
            return None
        return Znode(node.data, node.version, node.czxid, node.owner, tuple(sorted(node.children)))

    def stage(self, operations: Sequence[Operation], session_id: int) -> Stage:
        """Stage these operations as a commit.

        If an operation is impossible, raises its MetadataError.
        """
        stage = Stage(self)
        for operation in operations:
            stage.add(operation, session_id)
        return stage

    def merge(self, stage: Stage) -> None:
        """Apply a commit that has been staged.

        No other commit may have been merged in the meantime.
        """
        assert stage.zxid > self.zxid, f"commit {stage.zxid} after {self.zxid}"
        for path, node in stage.nodes.items():
            if node is None:
                self.nodes.pop(path, None)
            else:
                self.nodes[path] = node
        self.zxid = stage.zxid

    def ephemeral_paths(self, session_id: int | None = None) -> list[str]:
        """Return the paths of the ephemeral nodes of one session, or of all ephemeral nodes."""
        return [
            path
            for path, node in self.nodes.items()
            if node.owner and session_id in (None, node.owner)
        ]


class Stage:
    """A commit that is being staged: copies of its nodes (None if deleted), effects, and results.

    The watches on all paths in `nodes` fire. The paths include the parents of nodes that were
    created or deleted.
    """

    __slots__ = ("_tree", "effects", "nodes", "results", "zxid")

    def __init__(self, tree: Tree, zxid: int | None = None) -> None:
        self._tree = tree
        self.zxid = tree.zxid + 1 if zxid is None else zxid
        self.nodes: dict[str, Node | None] = {}
        self.effects: list[Effect] = []
        self.results: list[str | int] = []

    def add(self, operation: Operation, session_id: int) -> None:
        """Check the operation against the results of the earlier ones, and stage its effects."""
        path = operation.path
        if isinstance(operation, Create):
            path = self._path_to_create(operation)
            owner = session_id if operation.ephemeral else 0
            self.results.append(path)
            self.do(Effect(CREATE, path, operation.data, owner))
            return
        node = self._at_version(path, operation.version)
        # As in ZooKeeper, this is the data version, which starts at 0.
        if isinstance(operation, Set):
            self.results.append(node.version + 1)
            self.do(Effect(SET, path, operation.data))
            return
        self.results.append(node.version)
        if isinstance(operation, Delete):
            if node.children:
                raise NotEmpty(path, f"has {len(node.children)} children")
            self.do(Effect(DELETE, path))

    def do(self, effect: Effect) -> None:
        """Stage an effect that has just been checked, or that is replayed from the journal."""
        self.effects.append(effect)
        path = effect.path
        if effect.kind == SET:
            node = self._copy(path)
            node.data = effect.data
            node.version += 1
            return
        parent_path, _, name = path.rpartition("/")
        parent = self._copy(parent_path or "/")
        if effect.kind == CREATE:
            parent.children.add(name)
            parent.children_created = max(parent.children_created, _number_of(name)) + 1
            self.nodes[path] = Node(effect.data, effect.owner, self.zxid)
        else:
            parent.children.discard(name)
            self.nodes[path] = None

    def _path_to_create(self, operation: Create) -> str:
        path = operation.path
        assert path.startswith("/") and not path.endswith("/"), path
        parent_path = path.rpartition("/")[0] or "/"
        parent = self._find(parent_path)
        if parent is None:
            raise NoNode(path, f"its parent {parent_path} does not exist")
        # ZooKeeper does not allow this, because the children would have to be removed when the
        # session ends.
        if parent.owner:
            raise NoNode(path, f"its parent {parent_path} is ephemeral and has no children")
        if operation.sequential:
            # A number is never used again, even after its node has been deleted.
            path = f"{path}{parent.children_created:0{_SEQUENCE_DIGITS}d}"
        if self._find(path) is not None:
            raise NodeExists(path, "already exists")
        return path

    def _at_version(self, path: str, version: int) -> Node:
        node = self._find(path)
        if node is None:
            raise NoNode(path, "does not exist")
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, f"is at version {node.version}, not {version}")
        return node

    def _find(self, path: str) -> Node | None:
        if path in self.nodes:
            return self.nodes[path]
        return self._tree.nodes.get(path)

    def _copy(self, path: str) -> Node:
        staged = self.nodes.get(path)
        if staged is None:
            staged = self.nodes[path] = self._tree.nodes[path].copy()
        return staged


def _number_of(name: str) -> int:
    """Return the number at the end of a sequential name, as an int32, or -1 for other names."""
    # If the number would overflow the counter (an int32), it is treated as part of the name.
    digits = name[-_SEQUENCE_DIGITS:]
    if len(digits) == _SEQUENCE_DIGITS and digits.isascii() and digits.isdecimal():
        number = int(digits)
        return number if number < _LAST_NUMBER else -1
    return -1
