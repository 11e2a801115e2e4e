"""Exports a metadata tree (ZK-6), the counterpart of `cluster/importing.py`.

Each path is mapped to its node in JSON form, which that module describes. ZooKeeper's own nodes are
omitted.

A server's nodes may change while they are read one by one, so the tree is read until two passes
agree. The embedded store's files are read at a single moment.
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
"""The top nodes of a cluster. Without a chroot, the root also contains other programs' nodes."""

_MAX_PASSES = 5

Nodes = dict[str, Znode]


class Export(NamedTuple):
    """A tree in its JSON form."""

    tree: dict[str, dict[str, Any]]
    topics: int
    others: tuple[str, ...]
    """The nodes of other programs, which were omitted."""
    changed: str | None
    """A node that was still changing in the last pass; None if the tree is consistent."""


async def export_tree(store: MetadataStore, *, has_others: bool) -> Export:
    """Read the whole tree or, with `has_others`, only a cluster's nodes in a server's root.

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
    """Read the nodes at and under these paths, each after its parent.

    They are read level by level; nodes that are deleted in the meantime are omitted.
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
    """Return the nodes, and the paths of other programs' nodes."""
    root = await store.read(ROOT)
    if root is None:
        return {}, []
    tops = {f"/{name}" for name in root.children} - {ZOOKEEPERS_OWN}
    others = sorted(tops.difference(CLUSTER_TOPS)) if has_others else []
    return {ROOT: root} | await nodes_below(store, sorted(tops.difference(others))), others


def _change(before: Nodes, now: Nodes) -> str | None:
    """Return the first path whose node was written, created or deleted between two passes."""
    return next(
        (path for path in sorted({*before, *now}) if not _is_same(before.get(path), now.get(path))),
        None,
    )


def _is_same(one: Znode | None, other: Znode | None) -> bool:
    if one is None or other is None:
        return False
    # Created or deleted children have their own paths; ephemeral nodes are irrelevant to an import.
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
