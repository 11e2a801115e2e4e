"""What a broker has only where there are others: connections to them, and what is asked on them.

Copies what other brokers lead (RE-3), has its own ISRs agreed to, sends markers and asks about
transactions where their other half lives elsewhere, and takes its leave before it stops (RE-13). A
broker that is alone has none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordination.marker_channel import MarkerChannels
from barnabas.broker.coordination.verifier import Verifier
from barnabas.broker.inter_broker.controlled_shutdown import leave
from barnabas.broker.inter_broker.peer_links import PeerLinks
from barnabas.broker.replication.alter_partition import Proposals
from barnabas.broker.replication.fetchers import Fetchers

if TYPE_CHECKING:
    from barnabas.broker.context import Node
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.broker.partitions.replica import Replica


class Neighbours:
    """Made with the node, and made known to its parts; `leave` and `stop` once each."""

    __slots__ = ("_coordination", "_links", "_markers", "_node", "_proposals", "fetchers")

    def __init__(self, node: Node, peers: Peers) -> None:
        self._node = node
        self._links = PeerLinks(node, peers, "broker")
        # Verification waits for a coordinator's disk; a vote on an ISR must not wait behind it.
        self._coordination = PeerLinks(node, peers, "transactions")
        self.fetchers = Fetchers(node, peers)
        self._proposals = Proposals(node, self._links)
        node.verifier = Verifier(node, self._coordination)
        self._markers = node.markers = MarkerChannels(node, self._coordination)
        replicas = node.replicas
        replicas.on_propose = self._proposals.propose
        replicas.on_following = self.fetchers.follow_id
        replicas.on_stopped_following = self.fetchers.unfollow
        replicas.on_left = self._left
        node.config_listeners.append(self.fetchers.configure)
        node.brokers_listeners += [self._links.drop_old, self._coordination.drop_old]

    def _left(self, replica: Replica) -> None:
        assert self._node.verifier is not None
        self._node.verifier.left(replica.topic_partition)
        self._node.coordinators.left(replica)

    async def leave(self) -> None:
        """Have others lead what this broker leads, as far as they can."""
        await leave(self._node, self._links)

    async def stop(self) -> None:
        """Copy, ask and send nothing any more."""
        self._proposals.close()
        self._markers.close()
        await self.fetchers.stop()
        self._links.close()
        self._coordination.close()
