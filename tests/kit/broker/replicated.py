"""A broker that believes to be one of several: what its controller would say is said by the test,
and the other brokers' fetches are the test's requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas import Broker
from barnabas.broker.partitions.alter_partition_queue import PendingProposal
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.parts import Parts
from barnabas.cluster.controller_requests import (
    IsrAnswer,
    IsrProposal,
    LeaderAndIsr,
    PartitionState,
)
from barnabas.cluster.image import PartitionImage
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.types import TopicPartition
from tests.kit.broker.loops import inside, replicas_of
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient

EPOCHS = {0: 100, 1: 101, 2: 102}
"""Of the brokers' registrations."""


def parts_of(broker: Broker) -> Parts:
    return broker.server.parts


def meet(parts: Parts, epochs: Mapping[int, int]) -> None:
    """Have the broker know of these registrations, its own among them."""
    view = parts.network.node.view
    own = view.image.brokers[view.broker_id]
    brokers = {each: own._replace(broker_id=each, epoch=epoch) for each, epoch in epochs.items()}
    view.update(view.image._replace(brokers=brokers))
    parts.partitions.replicas.brokers_changed()
    if view.broker_id in epochs:
        view.on_registered(epochs[view.broker_id])
        parts.partitions.replicas.on_registered(epochs[view.broker_id])


class Shared:
    """A topic of one partition with replicas on brokers 0 (which is real), 1 and 2."""

    def __init__(self, broker: Broker, topic: str, topic_id: bytes) -> None:
        self.broker = broker
        self.name = TopicPartition(topic, 0)
        self.topic_id = topic_id
        self._pending: list[PendingProposal] = []
        self.leader_epoch = 10
        self.partition_epoch = 10
        self.replicas: tuple[int, ...] = (0, 1)
        inside(broker, lambda: meet(parts_of(broker), EPOCHS))

    @property
    def pending(self) -> list[PendingProposal]:
        """What the leader has proposed, with the futures that get the answers."""
        self._pending += inside(self.broker, parts_of(self.broker).partitions.proposals.take_now)
        return [each for each in self._pending if each.proposal.topic_partition == self.name]

    @property
    def proposals(self) -> list[IsrProposal]:
        return [each.proposal for each in self.pending]

    @property
    def replica(self) -> Replica:
        return replicas_of(self.broker).replica_of(self.name)

    def change_role(
        self, leader: int = 0, isr: tuple[int, ...] = (0, 1), *, is_new_epoch: bool = True
    ) -> None:
        """The controller's LeaderAndIsr."""
        self.leader_epoch += is_new_epoch
        self.partition_epoch += 1
        image = PartitionImage(
            leader, self.leader_epoch, isr, self.replicas, self.partition_epoch, 1
        )
        state = PartitionState(self.name, self.topic_id, image, {}, is_new=False)
        request = LeaderAndIsr(0, 1, (state,))
        apply = parts_of(self.broker).partitions.role_changes.apply_leader_and_isr
        codes = inside(self.broker, lambda: apply(request))
        assert codes == {self.name: 0}

    def agree(self) -> None:
        """The controller accepts the last proposal."""
        proposal = self.proposals[-1]
        self.partition_epoch += 1
        isr = tuple(member.broker_id for member in proposal.isr)
        self.answer(IsrAnswer(0, 0, self.leader_epoch, isr, self.partition_epoch))

    def answer(self, answer: IsrAnswer) -> None:
        """The controller answers the last proposal."""
        future = self.pending[-1].answer
        inside(self.broker, lambda: future.set_result(answer))
        inside(self.broker, lambda: None)  # the leader has taken it over

    def proposed(self) -> list[tuple[int, ...]]:
        return [tuple(member.broker_id for member in each.isr) for each in self.proposals]


class Follower:
    """Another broker's fetches, by hand."""

    def __init__(self, client: RawClient, shared: Shared, broker_id: int = 1) -> None:
        self.client = client
        self.shared = shared
        self.broker_id = broker_id
        self.version = FETCH.max_version
        self.session_id, self.session_epoch = 0, -1

    def request(self, offset: int | None, **fields: Any) -> FetchRequest:
        """None: an incremental request that has nothing new to say."""
        own = {
            name: fields.pop(name)
            for name in ("last_fetched_epoch", "current_leader_epoch", "log_start_offset")
            if name in fields
        }
        own.setdefault("current_leader_epoch", self.shared.leader_epoch)
        base: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
        if self.version < 15:
            base["replica_id"] = self.broker_id
        else:
            epoch = EPOCHS.get(self.broker_id, -1)
            base["replica_state"] = ReplicaState(replica_id=self.broker_id, replica_epoch=epoch)
        topics = []
        if offset is not None:
            own.setdefault("log_start_offset", 0)
            wanted = FetchPartition(
                partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **own
            )
            named = (
                {"topic_id": self.shared.topic_id}
                if self.version >= 13
                else {"topic": self.shared.name.topic}
            )
            topics = [FetchTopic(partitions=[wanted], **named)]
        return FetchRequest(
            topics=topics,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            **(base | fields),
        )

    def send(self, offset: int | None, **fields: Any) -> None:
        self.client.send(FETCH, self.version, self.request(offset, **fields))

    def receive(self) -> PartitionData | None:
        """The partition's part of the answer; None if it has none, in a session."""
        _, answer = self.client.receive(FETCH, self.version)
        assert answer.error_code == 0, answer
        if self.session_epoch >= 0:
            self.session_id = answer.session_id
            self.session_epoch += 1
        found = [data for topic in answer.responses for data in topic.partitions]
        return found[0] if found else None

    def fetch(self, offset: int | None, **fields: Any) -> PartitionData:
        self.send(offset, **fields)
        found = self.receive()
        assert found is not None
        return found

    def begin_session(self) -> None:
        self.session_id = self.session_epoch = 0


def fill(client: RawClient, topic: str, *batches: bytes) -> None:
    """Produce with acks=1: the leader has it."""
    for each in batches:
        answer = client.call(PRODUCE, 9, produce_request(topic, {0: each}, acks=1))
        assert answer.responses[0].partition_responses[0].error_code == 0
