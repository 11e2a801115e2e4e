"""ZS-2: a snapshot of the ZooKeeper server contains everything that clients see of a node."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.sessions import Sessions
from barnabas.zookeeper.transactions import restore, snapshot_bytes
from barnabas.zookeeper.tree import OPEN_ACL, Effect, Node, Tree


def _do(tree: Tree, time_ms: int, effect: Effect) -> None:
    transaction = tree.begin(time_ms)
    transaction.do(effect)
    transaction.commit()


def test_zs_2_a_snapshot_has_the_times_and_counters_of_a_node() -> None:
    tree = Tree()
    _do(tree, 1_000, Effect(trees.CREATE, "/a", b"first", OPEN_ACL))
    _do(tree, 2_000, Effect(trees.SET_DATA, "/a", b"second"))
    _do(tree, 3_000, Effect(trees.CREATE, "/a/b", b"", OPEN_ACL))
    _do(tree, 4_000, Effect(trees.DELETE, "/a/b"))
    found = Tree()
    restore(snapshot_bytes(tree, Sessions(1, 2)), found, Sessions(1, 2))
    node = found.nodes["/a"]
    assert (node.ctime, node.mtime, node.version) == (1_000, 2_000, 1)
    assert (node.czxid, node.mzxid, node.pzxid) == (1, 2, 4)
    assert node.creations == 1, "the next sequential name depends on it"


def test_a_snapshot_without_the_parent_of_a_node_is_corrupt() -> None:
    tree = Tree()
    tree.nodes["/a/b"] = Node(b"", OPEN_ACL)
    with pytest.raises(CorruptData, match="the parent of /a/b is missing"):
        restore(snapshot_bytes(tree, Sessions(1, 2)), Tree(), Sessions(1, 2))
