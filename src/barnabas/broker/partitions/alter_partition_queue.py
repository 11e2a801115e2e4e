"""Queues the ISR changes that leaders on this broker propose, until they are answered (KIP-497).

    leader --> submit --> queue --> replication.alter_partition --> controller
       ^______________ future ________________________|

The queue decouples the replicas from the sender of the requests.
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
    """A proposal, the leader's view of its partition, and the future that receives the response."""

    partition: Partition
    proposal: IsrProposal
    answer: asyncio.Future[IsrAnswer]
    lags: tuple[Lag, ...] = ()
    """The replicas that the proposal adds or removes, as reported by the leader's machine."""

    @property
    def is_led(self) -> bool:
        """Return whether this broker still leads the partition, in any leader epoch."""
        return self.partition.is_leader and not self.answer.cancelled()

    @property
    def is_current(self) -> bool:
        """Return whether the proposal's leader epoch is still current and the ISR is unchanged."""
        partition, proposal = self.partition, self.proposal
        epochs = partition.leader_epoch, partition.partition_epoch
        return self.is_led and epochs == (proposal.leader_epoch, proposal.partition_epoch)


class AlterPartitionQueue:
    """The queued proposals of a broker. A newer proposal for a partition replaces the older one."""

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
        """Counts the ISR changes that the controller accepted."""
        self.failed_updates = metrics.counter(
            f"{_MBEAN}FailedIsrUpdatesPerSec", "ISR changes that the controller rejected"
        )

    def submit(self, partition: Partition, proposal: IsrProposal) -> asyncio.Future[IsrAnswer]:
        """Propose an ISR to the controller. The caller cancels the future to withdraw it."""
        answer: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
        # This replaces any older proposal for the partition. The machine makes one proposal at a
        # time, so nothing waits for the response to the older one.
        self._pending[proposal.topic_partition] = PendingProposal(
            partition, proposal, answer, partition.lags
        )
        self._arrived.set()
        return answer

    def put_back(self, pending: PendingProposal) -> None:
        """Requeue an unanswered proposal unless a newer one for its partition is already queued."""
        self._pending.setdefault(pending.proposal.topic_partition, pending)
        self._arrived.set()

    async def take(self) -> list[PendingProposal]:
        """Wait for proposals and take all that are current."""
        await self._arrived.wait()
        return self.take_now()

    def take_now(self) -> list[PendingProposal]:
        """Take all current proposals; the queue is empty afterwards."""
        self._arrived.clear()
        pending, self._pending = self._pending, {}
        # The other proposals are out of date, or this broker is no longer the leader; the
        # controller would reject them (INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH).
        return [each for each in pending.values() if each.is_current]

    def clear(self) -> None:
        """Discard all proposals without sending them."""
        self._pending.clear()
