"""Takes a broker's first steps in the metadata tree, from the base nodes and the cluster id to the
registration and the election.

Each step is a single commit and can safely be repeated. A broker that died between two steps
repeats all of them when it is started again. If another broker takes the same step at the same
time, or the response to a commit is lost, the broker reads the tree to find out what was committed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from barnabas.clock import Clock, Random
from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage
from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataError,
    MetadataStore,
    NodeExists,
    NoNode,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    Set,
    Znode,
)
from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple
from barnabas.types import uuid_text

_log = logging.getLogger(__name__)


class Elected(NamedTuple):
    """The controller epoch, and the data version of `/controller_epoch`, which fences other
    controllers.
    """

    epoch: int
    version: int


async def ensure_base(store: MetadataStore, cluster_id: str | None, random: Random) -> str:
    """Create any missing base nodes, and return the cluster id.

    `cluster_id` is the id found in the data directories. It is written to the tree if the tree has
    no id. Raises ConfigError if the tree has a different id.
    """
    while True:
        operations: list[Operation] = [
            Create(path) for path in layout.BASE_PATHS if await store.read(path) is None
        ]
        node = await store.read(layout.CLUSTER_ID)
        known = None if node is None else layout.decode_cluster_id(node.data)
        # As in Kafka (InconsistentClusterId), a broker must never use the logs of another cluster.
        if known is not None and cluster_id not in (None, known):
            raise ConfigError(
                f"the data in log.dirs belongs to cluster {cluster_id}, but the metadata belongs "
                f"to cluster {known}: start with the data of that cluster or with empty log.dirs"
            )
        found = known or cluster_id or uuid_text(random.uuid())
        if known is None:
            operations.append(Create(layout.CLUSTER_ID, layout.encode_cluster_id(found)))
        if not operations:
            return found
        with suppress(NodeExists):  # if another broker starts at the same time, read again
            await store.commit(operations)
            return found


async def register(
    store: MetadataStore, broker: BrokerImage, clock: Clock, wait_ms: int = 0
) -> BrokerImage:
    """Register the broker in this session, and return the registration with its broker epoch.

    `wait_ms` limits the wait for the previous registration's session to end. Raises ConfigError if
    that session does not end, because then another broker is using this id.
    """
    path = layout.broker_path(broker.broker_id)
    deadline_ms = clock.monotonic_ms() + wait_ms
    is_logged = False
    while True:
        gone = asyncio.Event()
        store.watch(path, gone.set)
        node = await store.read(path)
        if node is None:
            with suppress(NodeExists):  # if the node exists, read it next
                return broker._replace(epoch=await _announce(store, path, broker, clock))
            continue
        left_ms = deadline_ms - clock.monotonic_ms()
        # ZK-2: another live broker is using this id.
        if left_ms <= 0 or node.owner == store.session_id:
            raise ConfigError(
                f"broker.id={broker.broker_id} is in use by a running broker; choose another id"
            )
        if not is_logged:
            is_logged = True
            _log.info(
                "broker.id=%d is already registered by a previous run or another broker; waiting "
                "up to %.0f s for that session to expire",
                *(broker.broker_id, left_ms / 1000),
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(left_ms / 1000):
                await gone.wait()


async def _announce(store: MetadataStore, path: str, broker: BrokerImage, clock: Clock) -> int:
    """Create the broker's node, and return its czxid.

    Raises NodeExists. Raises OutcomeUnknown or SessionExpired if the node does not exist
    afterwards.
    """
    absent: MetadataError = SessionExpired(path, "the session expired right after the registration")
    try:
        # As in Kafka, write the node twice, so that the data version of a registration is never 0.
        data = layout.encode_broker(broker, clock.wall_ms())
        await store.commit([Create(path, ephemeral=True), Set(path, data, version=0)])
    except OutcomeUnknown as error:
        absent = error
    node = await store.read(path)
    # The node exists, so the commit did succeed. The broker epoch is the node's czxid (KIP-380).
    if node is not None and node.owner == store.session_id:
        return node.czxid
    raise absent


async def become_controller(store: MetadataStore, broker_id: int, clock: Clock) -> Elected | None:
    """Become the controller if there is none, and return the new controller epoch and its data
    version.

    Returns None if another broker is the controller. The data version is used to fence earlier
    controllers.
    """
    node = await store.read(layout.CONTROLLER_EPOCH)
    operations: list[Operation] = []
    epoch, version = 0, 0
    if node is None:
        operations.append(Create(layout.CONTROLLER_EPOCH, layout.encode_epoch(0)))
    else:
        epoch, version = layout.decode_epoch(node.data), node.version
    operations += [
        # Use a single commit, so that no broker can become controller without incrementing the
        # epoch (ZK-3).
        Create(
            layout.CONTROLLER,
            layout.encode_controller(broker_id, clock.wall_ms()),
            ephemeral=True,
        ),
        Set(layout.CONTROLLER_EPOCH, layout.encode_epoch(epoch + 1), version),
    ]
    # KIP-584: Kafka stores its feature levels in this node.
    if await store.read(layout.FEATURE) is None:
        operations.append(Create(layout.FEATURE, layout.FEATURE_NODE))
    try:
        await store.commit(operations)
    # Another broker became controller first.
    except (NodeExists, BadVersion):
        return None
    except OutcomeUnknown:
        elected = await elected_term(store, broker_id)
        if elected is None and await store.read(layout.CONTROLLER) is None:
            raise  # the commit failed although no other broker is the controller
        return elected
    return Elected(epoch + 1, version + 1)


async def elected_term(store: MetadataStore, broker_id: int) -> Elected | None:
    """Return the controller epoch if the tree names this broker as the controller, or None
    otherwise.
    """
    # Read the epoch first, so that the controller that is read afterwards was elected in that epoch
    # or a later one.
    epoch = await store.read(layout.CONTROLLER_EPOCH)
    node = await store.read(layout.CONTROLLER)
    if epoch is None or node is None or not is_own(store, node, broker_id):
        return None
    return Elected(layout.decode_epoch(epoch.data), epoch.version)


async def resign(store: MetadataStore, broker_id: int) -> None:
    """Resign if this broker is still the controller, so that another broker can be elected."""
    elected = await elected_term(store, broker_id)
    if elected is not None:
        # If another broker has been elected in the meantime, it has incremented the epoch.
        with suppress(NoNode, BadVersion):
            await store.commit(
                [Check(layout.CONTROLLER_EPOCH, elected.version), Delete(layout.CONTROLLER)]
            )


def is_own(store: MetadataStore, node: Znode, broker_id: int) -> bool:
    """Return whether this `/controller` node was created by this broker in this session."""
    return node.owner == store.session_id and layout.decode_controller(node.data) == broker_id
