"""Writes the config nodes of users, client ids and addresses below `/config`, and their parent
nodes.

Like Kafka, this code removes a node that has no configs and no children. When a user's last client
is removed, the user's `clients` node is removed too, and so is the user's own node if it is then
empty. A user's credentials and quotas are stored in the same node, so all other configs in a node
are preserved.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cluster import layout
from barnabas.cluster.config_changes import config_path
from barnabas.cluster.store import Create, Delete, MetadataStore, Operation, Set, Znode


async def write_operations(
    store: MetadataStore, entity: str, node: Znode | None, configs: Mapping[str, str]
) -> list[Operation]:
    """Return the operations that store these configs in an entity's node.

    `node` is the node as it was read. If that node or one of its parents is changed concurrently,
    the commit fails and must be retried. If the node does not exist and there are no configs to
    store, no operations are returned.
    """
    path = config_path(entity)
    if configs:
        data = layout.encode_config(configs)
        if node is not None:
            return [Set(path, data, node.version)]
        return [*await _creations_above(store, entity), Create(path, data)]
    if node is None:
        return []
    # Keep the node because it is the parent of the user's clients, which may have configs.
    if node.children:
        return [Set(path, layout.encode_config({}), node.version)]
    return [Delete(path, node.version), *await _deletions_above(store, entity)]


async def _creations_above(store: MetadataStore, entity: str) -> list[Operation]:
    """Return the operations that create any missing parent nodes."""
    operations: list[Operation] = []
    above = entity.rpartition("/")[0]
    while above and await store.read(config_path(above)) is None:
        operations.insert(0, Create(config_path(above)))
        above = above.rpartition("/")[0]
    return operations


async def _deletions_above(store: MetadataStore, entity: str) -> list[Operation]:
    """Return the operations that delete parent nodes which would otherwise be left without
    children.

    The nodes for the entity types are never deleted.
    """
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
