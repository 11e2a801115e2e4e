"""Exports a metadata tree (ZK-6). `cluster/importing.py` does the reverse.

The result maps each path to its node in the JSON form that is described in that module. ZooKeeper's
own nodes are left out.

On a server, nodes may change while they are read one by one, so the tree is read until two
consecutive passes give the same result. The files of an embedded store are read at a single point
in time.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from barnabas.cluster import layout
from barnabas.cluster.store import MetadataStore, Znode

ROOT: Final = "/"
ZOOKEEPERS_OWN: Final = "/zookeeper"
CLUSTER_TOPS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/consumers",
    "/controller",
    "/controller_epoch",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/migration",
)
"""The top-level nodes of a cluster.

If there is no chroot, the root also contains nodes of other programs.
"""

_MAX_PASSES = 5

Nodes = dict[str, Znode]


class Export(NamedTuple):
    """The JSON form of a tree."""

    tree: dict[str, dict[str, Any]]
    topics: int
    others: tuple[str, ...]
    """The nodes that were left out because they belong to other programs."""
    changed: str | None
    """A node that changed again in the last pass, or None if the tree is consistent."""


async def export_tree(store: MetadataStore, *, has_others: bool) -> Export:
    """Read the whole tree or, if `has_others` is set, only the nodes of a cluster in a server's
    root.

    Raises MetadataError if the store cannot be read.
    """
    nodes, others = await _one_pass(store, has_others)
    changed = None
    for _ in range(_MAX_PASSES - 1):
        before = nodes
        nodes, others = await _one_pass(store, has_others)
        changed = _change(before, nodes)
        if changed is None:
            break
    topics = nodes.get(layout.TOPICS)
    return Export(
        {path: _to_json(node) for path, node in sorted(nodes.items())},
        0 if topics is None else len(topics.children),
        tuple(others),
        changed,
    )


async def nodes_below(store: MetadataStore, tops: Iterable[str]) -> Nodes:
    """Read the nodes at these paths and all nodes below them. Each node follows its parent.

    The nodes are read level by level. If a node is deleted in the meantime, it is left out.
    """
    found: Nodes = {}
    level = list(tops)
    while level:
        nodes = zip(level, await store.read_many(level), strict=True)
        there = {path: node for path, node in nodes if node is not None}
        found |= there
        level = [
            f"{path.rstrip('/')}/{name}" for path, node in there.items() for name in node.children
        ]
    return found


async def _one_pass(store: MetadataStore, has_others: bool) -> tuple[Nodes, list[str]]:
    """Return the nodes of the cluster, and the paths of the nodes of other programs."""
    root = await store.read(ROOT)
    if root is None:
        return {}, []
    tops = {f"/{name}" for name in root.children} - {ZOOKEEPERS_OWN}
    others = sorted(tops.difference(CLUSTER_TOPS)) if has_others else []
    return {ROOT: root} | await nodes_below(store, sorted(tops.difference(others))), others


def _change(before: Nodes, now: Nodes) -> str | None:
    """Return the first path whose node was created, written or deleted between the two passes."""
    return next(
        (path for path in sorted({*before, *now}) if not _is_same(before.get(path), now.get(path))),
        None,
    )


def _is_same(one: Znode | None, other: Znode | None) -> bool:
    if one is None or other is None:
        return False
    # Children that were created or deleted have their own paths, and ephemeral nodes do not matter
    # for an import.
    return (one.czxid, one.version) == (other.czxid, other.version)


def _to_json(node: Znode) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    try:
        shown["data"] = None if node.data is None else node.data.decode()
    except UnicodeDecodeError:
        shown["base64"] = b64encode(node.data or b"").decode()
    shown["version"] = node.version
    if node.owner:
        shown["ephemeral"] = True
    return shown
