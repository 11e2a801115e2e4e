"""The known log ends of partitions whose election depends on them."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.controller.draft import Draft
from barnabas.controller.guard import LogEnd, largest
from barnabas.controller.leader_election import succeed
from barnabas.types import TopicPartition


class KnownEnds:
    """Log ends by replica; each is valid until a leader is elected or its broker re-registers."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        # With the leader epoch, which has no leader: after it logs have grown.
        self._ends: dict[TopicPartition, tuple[int, dict[int, LogEnd]]] = {}

    def add(self, draft: Draft, name: TopicPartition, reported: Mapping[int, LogEnd]) -> None:
        """Keep these brokers' log ends, unless they are of another registration."""
        partition = draft.get(name)
        assert partition is not None
        epoch, ends = self._ends.get(name, (partition.leader_epoch, {}))
        if epoch != partition.leader_epoch:
            ends = {}
        for broker_id, end in reported.items():
            broker = draft.brokers.get(broker_id)
            if broker is not None and end.broker_epoch in (-1, broker.epoch):
                ends[broker_id] = end._replace(broker_epoch=broker.epoch)
        self._ends[name] = (partition.leader_epoch, ends)

    def lead_by(self, draft: Draft, name: TopicPartition) -> None:
        """Elect the replica whose log ends last, if all ends are known."""
        partition = draft.get(name)
        assert partition is not None
        _, ends = self._ends[name]
        valid = {
            replica: end
            for replica, end in ends.items()
            if replica in draft.brokers and draft.brokers[replica].epoch == end.broker_epoch
        }
        leader = largest(partition, valid)
        if leader not in draft.electable or leader in partition.offline_replicas:
            return
        if leader not in partition.isr:
            draft.note("led by the replica whose log ends last, not by the last in sync", name)
        draft.change(name, succeed(partition, leader, (leader,), draft.epoch))
        del self._ends[name]
