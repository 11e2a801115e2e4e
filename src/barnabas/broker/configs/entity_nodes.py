"""Nodes of users, client ids and addresses below `/config`: written with what leads to them, and
removed when they hold nothing any more.

As Kafka does it: an emptied node without children is removed; with a user's last client its
`clients` node is, and with that a user that has no configs of its own. Configs that others keep in
the same node (a user's credentials, which share it with its quotas) stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cluster import layout
from barnabas.cluster.config_changes import config_path
from barnabas.cluster.store import Create, Delete, MetadataStore, Operation, Set, Znode


async def write_operations(
    store: MetadataStore, entity: str, node: Znode | None, configs: Mapping[str, str]
) -> list[Operation]:
    """Return the operations that make an entity's node hold these configs.

    `node`: as it was read. The commit fails, and is to be tried again, if another one changes it or
    one of those above meanwhile. Nothing is to be done if it is not there and nothing to be held.
    """
    path = config_path(entity)
    if configs:
        data = layout.encode_config(configs)
        if node is not None:
            return [Set(path, data, node.version)]
        return [*await _creations_above(store, entity), Create(path, data)]
    if node is None:
        return []
    # A user's clients may have configs, and the node above them has to stay.
    if node.children:
        return [Set(path, layout.encode_config({}), node.version)]
    return [Delete(path, node.version), *await _deletions_above(store, entity)]


async def _creations_above(store: MetadataStore, entity: str) -> list[Operation]:
    """Return the operations that create the missing nodes above."""
    operations: list[Operation] = []
    above = entity.rpartition("/")[0]
    while above and await store.read(config_path(above)) is None:
        operations.insert(0, Create(config_path(above)))
        above = above.rpartition("/")[0]
    return operations


async def _deletions_above(store: MetadataStore, entity: str) -> list[Operation]:
    """Return the operations that delete the nodes above of which this was the last child; kinds of
    entities stay."""
    operations: list[Operation] = []
    below, above = entity, entity.rpartition("/")[0]
    while "/" in above:
        path = config_path(above)
        node = await store.read(path)
        is_last = node is not None and node.children == (below.rpartition("/")[2],)
        if node is None or not is_last or layout.decode_config(path, node.data):
            break
        operations.append(Delete(path, node.version))
        below, above = above, above.rpartition("/")[0]
    return operations
