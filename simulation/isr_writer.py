"""Writes ISRs as a simulated leader, as below inter.broker.protocol.version 2.7 (RE-9).

It writes the partition's state node on the version that it knows, and announces the write a while
later. A controller learns of the write from the announcement, or when one of its own writes is
overtaken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.store import BadVersion, MetadataError, NoNode, Set
from barnabas.errors import NONE, InvalidUpdateVersion, UnknownTopicOrPartition
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from simulation.hosted import Hosted
    from simulation.sim_broker import SimBroker

_LINGER_MS = 700
_RETRY_MS = 200


class IsrWriter:
    """Writes the ISRs of one broker."""

    __slots__ = ("_broker", "_changed")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._changed: dict[TopicPartition, None] = {}  # written but not announced yet

    async def write(self, hosted: Hosted, proposal: IsrProposal) -> IsrAnswer | None:
        """Write the ISR and return the answer that a controller would give; None if the store
        does not answer."""
        name, session = hosted.name, self._broker.session
        isr = tuple(member.broker_id for member in proposal.isr)
        state = layout.StateNode(
            self._broker.broker_id, proposal.leader_epoch, isr, hosted.partition.controller_epoch
        )
        path = layout.state_path(*name)
        try:
            await session.commit([Set(path, layout.encode_state(state), proposal.partition_epoch)])
            version = proposal.partition_epoch + 1
        except (BadVersion, NoNode):
            node = await session.read(path)
            if node is None:
                return IsrAnswer(UnknownTopicOrPartition.code)
            if layout.decode_state(*name, node.data) != state:
                return IsrAnswer(InvalidUpdateVersion.code)
            version = node.version  # of an earlier attempt that was not answered
        except MetadataError:
            return None
        if not self._changed:
            self._broker.loop.start(self._announce())
        self._changed[name] = None
        return IsrAnswer(NONE, state.leader, state.leader_epoch, isr, version)

    async def _announce(self) -> None:
        world, life = self._broker.cluster.world, self._broker.life
        wait_ms = _LINGER_MS
        while self._changed:
            await world.sleep(life, wait_ms)
            names = list(self._changed)
            try:
                await isr_notifications.announce(self._broker.session, names)
            except MetadataError:
                wait_ms = _RETRY_MS
            else:
                for name in names:
                    del self._changed[name]
