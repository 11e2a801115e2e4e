"""The tree's rules are ZooKeeper's: versions, sequential names, all or nothing."""

from __future__ import annotations

import pytest

from barnabas.cluster.node_bytes import tree_from_bytes, tree_to_bytes
from barnabas.cluster.nodes import Tree
from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataError,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
)

SESSION = 7


def _tree(*operations: Operation) -> Tree:
    tree = Tree()
    _commit(tree, *operations)
    return tree


def _commit(tree: Tree, *operations: Operation) -> list[str | int]:
    stage = tree.stage(operations, SESSION)
    tree.merge(stage)
    return stage.results


def test_a_node_has_data_version_czxid_and_children() -> None:
    tree = _tree(Create("/a", b"1"))
    assert _commit(tree, Create("/a/b"), Create("/a/c"), Set("/a", b"2")) == ["/a/b", "/a/c", 1]
    node = tree.read("/a")
    assert node is not None
    assert (node.data, node.version, node.czxid, node.owner) == (b"2", 1, 1, 0)
    assert node.children == ("b", "c")
    assert tree.read("/missing") is None


def test_results_come_in_the_order_of_the_operations() -> None:
    tree = _tree(Create("/a"), Create("/b"))
    results = _commit(tree, Check("/a", 0), Set("/a", b"x", 0), Set("/a", b"y", 1), Delete("/b", 0))
    assert results == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create("/a"), NodeExists),
        (Create("/missing/x"), NoNode),
        (Create("/session/x"), NoNode),
        (Set("/missing", b""), NoNode),
        (Set("/a", b"", 3), BadVersion),
        (Delete("/missing"), NoNode),
        (Delete("/a", 3), BadVersion),
        (Delete("/a"), NotEmpty),
        (Check("/missing", 0), NoNode),
        (Check("/a", 3), BadVersion),
    ],
)
def test_an_impossible_operation_leaves_nothing_of_its_commit(
    operation: Operation, error: type[MetadataError]
) -> None:
    tree = _tree(Create("/a"), Create("/a/b"), Create("/session", ephemeral=True))
    before = {path: tree.read(path) for path in tree.nodes}
    with pytest.raises(error) as caught:
        tree.stage([Create("/new"), Set("/a", b"new"), operation], SESSION)
    assert caught.value.path == operation.path
    assert {path: tree.read(path) for path in tree.nodes} == before
    assert tree.zxid == 1


def test_operations_see_what_those_before_them_did() -> None:
    tree = _tree(Create("/a"), Create("/a/b"))
    _commit(tree, Delete("/a/b"), Delete("/a"), Create("/a", b"again"), Create("/a/c"))
    node = tree.read("/a")
    assert node is not None
    assert (node.data, node.version, node.czxid, node.children) == (b"again", 0, 2, ("c",))
    with pytest.raises(NoNode):
        tree.stage([Delete("/a/c"), Set("/a/c", b"")], SESSION)


def test_sequential_names_are_never_given_twice() -> None:
    tree = _tree(Create("/q"))
    assert _commit(tree, Create("/q/n_", sequential=True)) == ["/q/n_0000000000"]
    _commit(tree, Delete("/q/n_0000000000"))
    made = _commit(tree, Create("/q/n_", sequential=True), Create("/q/n_", sequential=True))
    assert made == ["/q/n_0000000001", "/q/n_0000000002"]


def test_a_sequence_runs_ahead_of_every_number_that_is_there() -> None:
    """What came from another tree had been counted there."""
    tree = _tree(Create("/q"), Create("/q/t-9999999999"), Create("/q/n_0000000041"))
    assert _commit(tree, Create("/q/n_", sequential=True)) == ["/q/n_0000000042"]
    again = tree_from_bytes(tree_to_bytes(tree))
    assert _commit(again, Create("/q/n_", sequential=True)) == ["/q/n_0000000043"]


def test_ephemeral_nodes_belong_to_their_session() -> None:
    tree = _tree(Create("/a"), Create("/e", b"x", ephemeral=True))
    node = tree.read("/e")
    assert node is not None and node.owner == SESSION
    assert tree.ephemeral_paths() == tree.ephemeral_paths(SESSION) == ["/e"]
    assert tree.ephemeral_paths(SESSION + 1) == []


def test_a_commit_touches_the_parent_whose_children_change() -> None:
    tree = _tree(Create("/a"), Create("/b"))
    assert set(tree.stage([Create("/a/x"), Set("/b", b"")], SESSION).nodes) == {"/a", "/a/x", "/b"}
