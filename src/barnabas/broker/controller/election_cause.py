"""Says why the controller changed, as far as the new controller can see it (IN-1).

A broker knows who the last controller was if it has watched `/controller`. ZooKeeper deletes that
node and the broker's registration together when a session ends. So if the registration is still
the one that was known, the session has not ended, and somebody deleted the node. What cannot be
seen, such as why a session ended, is called unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.store import SessionExpired
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.cluster.store import MetadataStore

UNKNOWN = -1
_FIRST_EPOCH = 1


class Previous(NamedTuple):
    """What this broker knows about the last controller that it has seen."""

    broker_id: int = UNKNOWN
    broker_epoch: int = UNKNOWN
    """The epoch of its registration while it was the controller."""
    own_end: Exception | None = None
    """What ended this broker's own last term, if it has been the controller."""


async def election_cause(
    store: MetadataStore, broker_id: int, epoch: int, previous: Previous
) -> str:
    """Return why there was no controller before this broker was elected in this epoch."""
    last, known_epoch, own_end = previous
    if last == broker_id:
        if own_end is None:
            return f"the session of an earlier run of broker {broker_id}, the controller, ended"
        if isinstance(own_end, SessionExpired):
            return f"the session of broker {broker_id}, the previous controller, expired"
        return f"broker {broker_id}, the previous controller, resigned: {own_end}"
    if epoch == _FIRST_EPOCH:
        return "this is the first controller of the cluster"
    if last == UNKNOWN:
        return (
            "not known: there was no controller when this broker started, and it has not seen the "
            "previous one"
        )
    node = await store.read(layout.broker_path(last))
    if node is not None and node.czxid == known_epoch:
        return (
            f"broker {last}, the previous controller, is still registered: it resigned, or a tool "
            "deleted /controller"
        )
    if node is not None and known_epoch == UNKNOWN:
        return f"broker {last} was the previous controller; why it no longer is is not known"
    return (
        f"the session of broker {last}, the previous controller, ended: it stopped, failed or "
        "lost its connection to the metadata store"
    )
