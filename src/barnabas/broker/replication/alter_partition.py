"""What the leaders of this broker propose to the controller: other ISRs (AlterPartition, KIP-497).

Below inter.broker.protocol.version 2.7 nobody is asked: the leader writes it down (`isr_writes`).

What one turn of the loop brings goes in one request, and one request at a time is under way; what
comes meanwhile goes with the next. A proposal lasts until it is answered: a controller that cannot
be reached, or is none, is asked again, unless the partition has another leader or epoch by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from barnabas.broker.configs import inter_broker_version
from barnabas.broker.inter_broker import alter_partition_wire as wire
from barnabas.broker.replication.zk_alter_partition import IsrWrites
from barnabas.broker.state_changes import is_shrink, shrink_lines, update_lines
from barnabas.errors import NONE, BarnabasError, KafkaError, NotController
from barnabas.protocol.api import ALTER_PARTITION
from barnabas.protocol.messages.alter_partition import AlterPartitionResponse

if TYPE_CHECKING:
    from barnabas.broker.context import Node
    from barnabas.broker.inter_broker.peer_links import PeerLinks
    from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
    from barnabas.replication.partition import Partition
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0


class Proposals:
    """This broker's. `propose` is what `Replicas.on_propose` wants."""

    __slots__ = ("_asked", "_links", "_node", "_task", "_wanted", "_writes")

    def __init__(self, node: Node, links: PeerLinks | None) -> None:
        """`links`: to the controller on another broker; None where there is none.

        Raises ConfigError for an inter.broker.protocol.version that is none.
        """
        said = node.config.str(inter_broker_version.NAME)
        self._writes = IsrWrites(node) if inter_broker_version.writes_isrs(said) else None
        self._node = node
        self._links = links
        self._wanted: dict[TopicPartition, IsrProposal] = {}
        self._asked: dict[TopicPartition, IsrProposal] = {}  # what the log has said, while it runs
        self._task: asyncio.Task[None] | None = None

    def propose(self, proposal: IsrProposal) -> None:
        """Have it asked for, or written; the answer goes to `Replicas.isr_answered`."""
        self._wanted[proposal.topic_partition] = proposal
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Nobody is asked any more."""
        self._wanted.clear()
        if self._task is not None:
            self._task.cancel()
        if self._writes is not None:
            self._writes.close()

    async def _run(self) -> None:
        backoff_s = _BACKOFF_S
        try:
            while self._wanted:
                proposals = [each for each in self._wanted.values() if self._is_wanted(each)]
                self._wanted = {}
                if not proposals:
                    return
                self._tell_shrinks(proposals)
                if await self._settle(proposals):
                    backoff_s = _BACKOFF_S
                else:
                    await asyncio.sleep(backoff_s)
                    backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)
        finally:
            self._task = None
            self._asked.clear()

    async def _settle(self, proposals: Sequence[IsrProposal]) -> bool:
        """Ask once; whether all were agreed to. What was not answered at all is wanted again."""
        try:
            answers = await self._ask(proposals)
        except BarnabasError as error:
            _log.info("%d ISRs wait: %s", len(proposals), error)
        except Exception:
            # A mistake of ours, or an address that cannot even be looked up. Their partitions
            # wait for the answer: without one their ISRs would never change again.
            _log.exception("%d ISRs wait", len(proposals))
        else:
            return self._hand_out(proposals, answers)
        for proposal in proposals:
            # Unless there is a newer one of the same partition already.
            self._wanted.setdefault(proposal.topic_partition, proposal)
        return False

    def _hand_out(
        self, proposals: Sequence[IsrProposal], answers: Mapping[TopicPartition, IsrAnswer]
    ) -> bool:
        """Whether all were agreed to."""
        updates = []
        for proposal in proposals:
            answer = answers[proposal.topic_partition]
            self._node.replicas.isr_answered(proposal, answer)
            if answer.error_code == NONE:
                partition = self._led(proposal)
                updates += [(partition, answer)] if partition is not None else []
        for line in update_lines(updates):
            _log.info("%s", line)
        return all(answers[each.topic_partition].error_code == NONE for each in proposals)

    def _tell_shrinks(self, proposals: Sequence[IsrProposal]) -> None:
        """Once each, however often the controller has to be asked."""
        shrinks = []
        for proposal in proposals:
            if self._asked.get(proposal.topic_partition) != proposal:
                self._asked[proposal.topic_partition] = proposal
                partition = self._led(proposal)
                if partition is not None and is_shrink(partition, proposal):
                    shrinks.append((partition, proposal))
        for line in shrink_lines(shrinks):
            _log.info("%s", line)

    async def _ask(self, proposals: Sequence[IsrProposal]) -> Mapping[TopicPartition, IsrAnswer]:
        """Raises BarnabasError if there is no answer, or one that refuses all of them."""
        node = self._node
        if self._writes is not None:
            return await self._writes.write(proposals)
        if node.controller.is_active:
            return await node.controller.alter_partitions(
                node.broker_id, node.view.broker_epoch, proposals
            )
        controller_id = node.controller.controller_id
        if self._links is None or controller_id in (-1, node.broker_id):
            raise NotController("nobody is controller at the moment")
        message, version = wire.isr_request(proposals, node.broker_id, node.view.broker_epoch)
        timeout_ms = node.config.int("controller.socket.timeout.ms")
        answer = await self._links.ask(controller_id, ALTER_PARTITION, message, timeout_ms, version)
        return wire.isr_answers(proposals, cast(AlterPartitionResponse, answer))

    def _is_wanted(self, proposal: IsrProposal) -> bool:
        """Whether its partition still leads in the epoch in which it was proposed."""
        partition = self._led(proposal)
        return (
            partition is not None
            and partition.leader_epoch == proposal.leader_epoch
            and partition.partition_epoch == proposal.partition_epoch
        )

    def _led(self, proposal: IsrProposal) -> Partition | None:
        """Its partition, if this broker leads that."""
        try:
            return self._node.replicas.leader_of(proposal.topic_partition).partition
        except KafkaError:
            return None
