"""A broker's first steps in the metadata tree: base nodes, cluster id, registration, election; and
a controller's, who gives the topics of old brokers their ids.

Each step is one commit, and each is safe to repeat: a broker that died between two of them goes
through all of them again at its next start.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage
from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    MetadataStore,
    NodeExists,
    Operation,
    Set,
)
from barnabas.errors import ConfigError


async def ensure_base(store: MetadataStore, cluster_id: str | None, random: Random) -> str:
    """Make the nodes that every tree has, where they are missing; returns the cluster's id.

    `cluster_id`: what the data directories say; it becomes the tree's if that has none yet. Raises
    ConfigError if the two belong to different clusters.
    """
    operations: list[Operation] = [
        Create(path) for path in layout.BASE_PATHS if await store.read(path) is None
    ]
    node = await store.read(layout.CLUSTER_ID)
    known = None if node is None else layout.decode_cluster_id(node.data)
    if known is not None and cluster_id not in (None, known):
        raise ConfigError(
            f"the data belongs to cluster {cluster_id}, the metadata to cluster {known}: "
            "put the two together that belong together, or start with empty log.dirs"
        )
    found = known or cluster_id or layout.uuid_text(random.uuid())
    if known is None:
        operations.append(Create(layout.CLUSTER_ID, layout.encode_cluster_id(found)))
    if operations:
        await store.commit(operations)
    return found


async def register(store: MetadataStore, broker: BrokerImage, clock: Clock) -> BrokerImage:
    """Announce the broker for as long as the session lives; returns it with its broker epoch.

    Raises ConfigError if another one has this id.
    """
    path = layout.broker_path(broker.broker_id)
    try:
        # Two steps, as Kafka does it: the data version of a registration is never 0.
        await store.commit(
            [
                Create(path, ephemeral=True),
                Set(path, layout.encode_broker(broker, clock.now_ms()), version=0),
            ]
        )
    except NodeExists:
        raise ConfigError(
            f"broker.id={broker.broker_id} is taken by a broker that is running; choose another one"
        ) from None
    node = await store.read(path)
    assert node is not None, "our own registration is gone while the session lives"
    return broker._replace(epoch=node.czxid)


async def become_controller(
    store: MetadataStore, broker_id: int, clock: Clock
) -> tuple[int, int] | None:
    """Take the office if it is free; returns the new controller epoch and its data version.

    None: another broker has it. The epoch's version fences whoever had the office before.
    """
    node = await store.read(layout.CONTROLLER_EPOCH)
    operations: list[Operation] = []
    epoch, version = 0, 0
    if node is None:
        operations.append(Create(layout.CONTROLLER_EPOCH, layout.encode_epoch(0)))
    else:
        epoch, version = layout.decode_epoch(node.data), node.version
    operations += [
        Create(
            layout.CONTROLLER,
            layout.encode_controller(broker_id, clock.now_ms()),
            ephemeral=True,
        ),
        Set(layout.CONTROLLER_EPOCH, layout.encode_epoch(epoch + 1), version),
    ]
    if await store.read(layout.FEATURE) is None:
        operations.append(Create(layout.FEATURE, layout.FEATURE_NODE))
    try:
        await store.commit(operations)
    except (NodeExists, BadVersion):
        return None
    return epoch + 1, version + 1


async def give_topic_ids(
    store: MetadataStore, names: Iterable[str], epoch_version: int, random: Random
) -> None:
    """Give those of these topics an id that have none: Kafka did not before 2.8 (KIP-516).

    `epoch_version` is the controller's, whose commit it is.
    """
    operations: list[Operation] = [Check(layout.CONTROLLER_EPOCH, epoch_version)]
    for name in names:
        path = layout.topic_path(name)
        node = await store.read(path)
        topic = None if node is None else layout.decode_topic(name, node.data)
        if node is not None and topic is not None and topic.topic_id is None:
            data = layout.encode_topic_node(topic._replace(topic_id=random.uuid()))
            operations.append(Set(path, data, node.version))
    if len(operations) > 1:
        await store.commit(operations)
