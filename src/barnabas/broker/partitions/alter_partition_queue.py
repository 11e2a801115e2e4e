"""Queues the ISR changes that leaders on this broker propose to the controller (KIP-497).

    leader --> submit --> queue --> replication.alter_partition --> controller
       ^______________ future ________________________|

Because of the queue, a replica does not have to know who sends the requests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
    from barnabas.metrics import Registry
    from barnabas.replication.follower_state import Lag
    from barnabas.replication.partition import Partition
    from barnabas.types import TopicPartition


_MBEAN = "kafka.server:type=ReplicaManager,name="


class PendingProposal(NamedTuple):
    """A proposed ISR, the leader's view of its partition, and the future that receives the
    response.
    """

    partition: Partition
    proposal: IsrProposal
    answer: asyncio.Future[IsrAnswer]
    lags: tuple[Lag, ...] = ()
    """The replicas that the proposal adds or removes, according to the state machine of the leader.
    """

    @property
    def is_led(self) -> bool:
        """Return whether this broker is still the leader of the partition, in any leader epoch."""
        return self.partition.is_leader and not self.answer.cancelled()

    @property
    def is_current(self) -> bool:
        """Return whether the leader epoch of the proposal is still current and the ISR has not
        changed.
        """
        partition, proposal = self.partition, self.proposal
        epochs = partition.leader_epoch, partition.partition_epoch
        return self.is_led and epochs == (proposal.leader_epoch, proposal.partition_epoch)


class AlterPartitionQueue:
    """The proposals that a broker has queued.

    A newer proposal for a partition replaces the older one.
    """

    __slots__ = ("_arrived", "_pending", "failed_updates", "isr_expands", "isr_shrinks")

    def __init__(self, metrics: Registry) -> None:
        self._pending: dict[TopicPartition, PendingProposal] = {}
        self._arrived = asyncio.Event()
        self.isr_shrinks = metrics.counter(
            f"{_MBEAN}IsrShrinksPerSec", "ISR shrinks of partitions led here"
        )
        self.isr_expands = metrics.counter(
            f"{_MBEAN}IsrExpandsPerSec", "ISR expansions of partitions led here"
        )
        """Counts the ISR changes that the controller has accepted."""
        self.failed_updates = metrics.counter(
            f"{_MBEAN}FailedIsrUpdatesPerSec", "ISR changes that the controller rejected"
        )

    def submit(self, partition: Partition, proposal: IsrProposal) -> asyncio.Future[IsrAnswer]:
        """Propose an ISR to the controller.

        To withdraw the proposal, the caller cancels the future.
        """
        answer: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
        # This replaces any older proposal for the partition. The machine makes only one proposal at
        # a time, so nothing is waiting for the response to the older proposal.
        self._pending[proposal.topic_partition] = PendingProposal(
            partition, proposal, answer, partition.lags
        )
        self._arrived.set()
        return answer

    def put_back(self, pending: PendingProposal) -> None:
        """Queue an unanswered proposal again, unless a newer proposal for the same partition is in
        the queue.
        """
        self._pending.setdefault(pending.proposal.topic_partition, pending)
        self._arrived.set()

    async def take(self) -> list[PendingProposal]:
        """Wait until there are proposals, and take all the current ones."""
        await self._arrived.wait()
        return self.take_now()

    def take_now(self) -> list[PendingProposal]:
        """Take all current proposals. The queue is empty afterwards."""
        self._arrived.clear()
        pending, self._pending = self._pending, {}
        # The other proposals are out of date, or were made when this broker was the leader. The
        # controller would reject them (INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH).
        return [each for each in pending.values() if each.is_current]

    def clear(self) -> None:
        """Discard all proposals without sending them."""
        self._pending.clear()
