"""Holds ZooKeeper's tree of nodes in memory. Pure.

A transaction changes the tree at once, and remembers how to restore it, so a transaction that fails
halfway leaves no trace. Each transaction that is committed takes the next number (zxid). A node
counts the children that were ever created in it; this number is the suffix of sequential nodes, and
`cversion` is derived from it. The checks of requests are in `changes`.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.named_tuple import NamedTuple
from barnabas.zookeeper.codes import Perm
from barnabas.zookeeper.jute import Acl, Stat

CONTAINER_OWNER = -(1 << 63)
"""The owner of a container."""

MOST_TTL_MS = (1 << 40) - 1
# As in ZooKeeper: the upper bits are set, and the lower 40 bits are the time to live.
_TTL_OWNER = -(1 << 56)

OPEN_ACL = (Acl(Perm.ALL, "world", "anyone"),)
_READ_ONLY_ACL = (Acl(Perm.READ, "world", "anyone"),)

RESERVED = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
"""The nodes of every tree, which cannot be deleted."""


class Node:
    """A node of the tree."""

    __slots__ = (
        *("data", "acl", "owner", "czxid", "mzxid", "pzxid", "ctime", "mtime"),
        *("version", "aversion", "creations", "children"),
    )

    def __init__(self, data: bytes | None, acl: tuple[Acl, ...], owner: int = 0) -> None:
        self.data = data
        self.acl = acl
        self.owner = owner
        self.czxid = self.mzxid = self.pzxid = self.ctime = self.mtime = 0
        self.version = self.aversion = self.creations = 0
        self.children: dict[str, None] = {}

    @property
    def is_ephemeral(self) -> bool:
        return self.owner not in (0, CONTAINER_OWNER) and not self.ttl_ms

    @property
    def ttl_ms(self) -> int:
        """The time that the node lives without children and changes, or 0 for an unlimited one."""
        return ttl_of(self.owner)

    @property
    def stat(self) -> Stat:
        count = len(self.children)
        return Stat(
            *(self.czxid, self.mzxid, self.ctime, self.mtime, self.version),
            # ZooKeeper counts creations, and reports creations plus deletions.
            self.creations * 2 - count,
            # Clients see only the owners of ephemeral nodes.
            *(self.aversion, self.owner if self.is_ephemeral else 0),
            *(len(self.data or b""), count, self.pzxid),
        )


class Tree:
    """The nodes by path, and which of them are ephemeral, containers or have a time to live."""

    __slots__ = ("_acls", "accepts_ttl", "containers", "ephemerals", "nodes", "with_ttl", "zxid")

    def __init__(self, *, accepts_ttl: bool = False) -> None:
        """`accepts_ttl`: clients may create nodes with a time to live."""
        self.accepts_ttl = accepts_ttl
        self.zxid = 0
        self.nodes: dict[str, Node] = {}
        self.ephemerals: dict[int, dict[str, None]] = {}
        """The paths of ephemeral nodes by session, in the order of their creation."""
        self.containers: dict[str, None] = {}
        self.with_ttl: dict[str, None] = {}
        self._acls: dict[tuple[Acl, ...], tuple[Acl, ...]] = {}
        for path in RESERVED:
            is_config = path == "/zookeeper/config"
            self.insert(path, Node(b"", _READ_ONLY_ACL if is_config else OPEN_ACL))

    def begin(self, time_ms: int) -> Transaction:
        return Transaction(self, self.zxid + 1, time_ms)

    def insert(self, path: str, node: Node) -> None:
        """Add a node without any effect on the counters of its parent."""
        # Most nodes have one of a few ACLs, so they share them.
        node.acl = self._acls.setdefault(node.acl, node.acl)
        self.nodes[path] = node
        if path != "/":
            self.nodes[parent_of(path)].children[name_of(path)] = None
        if node.owner == CONTAINER_OWNER:
            self.containers[path] = None
        elif ttl_of(node.owner):
            self.with_ttl[path] = None
        elif node.owner:
            self.ephemerals.setdefault(node.owner, {})[path] = None

    def remove(self, path: str) -> Node:
        node = self.nodes.pop(path)
        del self.nodes[parent_of(path)].children[name_of(path)]
        if node.owner == CONTAINER_OWNER:
            del self.containers[path]
        elif ttl_of(node.owner):
            del self.with_ttl[path]
        elif node.owner:
            paths = self.ephemerals[node.owner]
            del paths[path]
            if not paths:
                del self.ephemerals[node.owner]
        return node


class Effect(NamedTuple):
    """A change to one node or session. Its transaction adds the number and the time."""

    kind: int
    path: str
    data: bytes | None = None
    acl: tuple[Acl, ...] = ()
    number: int = 0
    """The owner of a created node; the id of a session."""
    timeout_ms: int = 0


CREATE, DELETE, SET_DATA, SET_ACL, OPEN_SESSION, CLOSE_SESSION = range(1, 7)


class Transaction:
    """Changes that become permanent together with `commit`, or are undone by `roll_back`."""

    __slots__ = ("_tree", "_undo", "effects", "time_ms", "zxid")

    def __init__(self, tree: Tree, zxid: int, time_ms: int) -> None:
        self._tree = tree
        self.zxid = zxid
        self.time_ms = time_ms
        self.effects: list[Effect] = []
        self._undo: list[Callable[[], object]] = []

    def do(self, effect: Effect) -> None:
        """Apply an effect. Raises KeyError if its node does not exist."""
        tree, path = self._tree, effect.path
        if effect.kind == CREATE:
            self._create(effect)
        elif effect.kind == DELETE:
            self._delete(path)
        elif effect.kind == SET_DATA:
            node = tree.nodes[path]
            self._undo.append(_restoring(node, "data", "version", "mzxid", "mtime"))
            node.data = effect.data
            node.version = _next_version(node.version)
            node.mzxid, node.mtime = self.zxid, self.time_ms
        elif effect.kind == SET_ACL:
            node = tree.nodes[path]
            self._undo.append(_restoring(node, "acl", "aversion"))
            node.acl = effect.acl
            node.aversion = _next_version(node.aversion)
        self.effects.append(effect)

    def commit(self) -> None:
        self._tree.zxid = self.zxid

    def roll_back(self) -> None:
        for step in reversed(self._undo):
            step()

    def _create(self, effect: Effect) -> None:
        tree, path = self._tree, effect.path
        node = Node(effect.data, effect.acl, effect.number)
        node.czxid = node.mzxid = node.pzxid = self.zxid
        node.ctime = node.mtime = self.time_ms
        parent = tree.nodes[parent_of(path)]
        self._undo.append(_restoring(parent, "creations", "pzxid"))
        tree.insert(path, node)
        self._undo.append(lambda: tree.remove(path))
        parent.creations += 1
        parent.pzxid = self.zxid

    def _delete(self, path: str) -> None:
        tree = self._tree
        parent = tree.nodes[parent_of(path)]
        node = tree.remove(path)
        self._undo.append(lambda: tree.insert(path, node))
        self._undo.append(_restoring(parent, "pzxid"))
        parent.pzxid = self.zxid


def ttl_owner(ttl_ms: int) -> int:
    """Return the owner of a node with a time to live."""
    return _TTL_OWNER | ttl_ms


def ttl_of(owner: int) -> int:
    return owner - _TTL_OWNER if _TTL_OWNER < owner < 0 else 0


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or "/"


def name_of(path: str) -> str:
    return path[path.rindex("/") + 1 :]


def _next_version(version: int) -> int:
    # Versions are 32-bit numbers. ZooKeeper skips -1, because it means "any version".
    return -(1 << 31) if version == (1 << 31) - 1 else 0 if version == -2 else version + 1


def _restoring(node: Node, *names: str) -> Callable[[], None]:
    values = [getattr(node, name) for name in names]

    def restore() -> None:
        for name, value in zip(names, values, strict=True):
            setattr(node, name, value)

    return restore
