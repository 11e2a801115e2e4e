"""A controller whose decisions are carried out on a tree of versions, for the tests beside this."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    IsrAnswer,
    IsrMember,
    IsrProposal,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from barnabas.cluster.store import Check, Create, Set
from barnabas.controller.controller import Controller, Decision, Settings
from barnabas.types import TopicPartition

EPOCH, EPOCH_VERSION = 7, 12
_ADDRESS = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)

T0 = TopicPartition("t", 0)


def broker(broker_id: int, epoch: int = 0, *, lossy: bool = False) -> BrokerImage:
    """`lossy`: it may have lost the end of its logs."""
    return BrokerImage(broker_id, _ADDRESS, None, epoch or 100 + broker_id, lossy)


def brokers(*ids: int) -> dict[int, BrokerImage]:
    return {broker_id: broker(broker_id) for broker_id in ids}


def led(*isr: int, replicas: tuple[int, ...] = (), leader: int | None = None) -> PartitionImage:
    """In leader epoch 3 and partition epoch 5; the first of the ISR leads."""
    first = isr[0] if leader is None else leader
    return PartitionImage(first, 3, isr, replicas or isr, 5, 4)


def topic(name: str, *partitions: PartitionImage, **config: str) -> TopicImage:
    configs = {key.replace("_", "."): value for key, value in config.items()}
    return TopicImage(name, name.encode().ljust(16, b"\0"), dict(enumerate(partitions)), configs)


class Stage:
    """Three brokers live, if nothing else is said."""

    def __init__(
        self,
        *topics: TopicImage,
        live: Mapping[int, BrokerImage] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.live = dict(brokers(1, 2, 3) if live is None else live)
        by_name = {each.name: each for each in topics}
        ids = {each.topic_id: each.name for each in topics}
        image = ClusterImage("cluster", 1, EPOCH, dict(self.live), by_name, ids)
        self.controller = Controller(EPOCH_VERSION, image, settings)
        self.decision = Decision((), image, ())
        self.written: list[tuple[TopicPartition, layout.StateNode]] = []

    def __getitem__(self, name: TopicPartition) -> PartitionImage:
        return self.controller.image.topics[name.topic].partitions[name.partition]

    def carry_out(self, decision: Decision) -> Decision:
        """Commit it: each write follows on the version that is there, and the image is the tree."""
        self.decision = decision
        before = self.controller.image.topics
        versions: dict[str, int] = {}
        for position, operation in enumerate(decision.operations):
            if position == 0:
                assert operation == Check("/controller_epoch", EPOCH_VERSION)
            elif isinstance(operation, Create | Set) and operation.path.endswith("/state"):
                self._write(operation, before, versions)
        for path, version in versions.items():
            name = _name_of(path)
            after = decision.image.topics[name.topic].partitions[name.partition]
            assert after.partition_epoch == version, f"{name}: {after}"
            assert layout.state_of(after) == self.written_of(name)[-1]
        self.controller.apply(decision)
        return decision

    def _write(
        self, operation: Create | Set, before: Mapping[str, TopicImage], versions: dict[str, int]
    ) -> None:
        name = _name_of(operation.path)
        known = before[name.topic].partitions.get(name.partition) if name.topic in before else None
        current = versions.get(operation.path, -1 if known is None else known.partition_epoch)
        if isinstance(operation, Set):
            assert operation.version == current >= 0, operation
        else:
            assert current == -1, operation
        versions[operation.path] = current + 1
        self.written.append((name, layout.decode_state(*name, operation.data)))

    def written_of(self, name: TopicPartition) -> list[layout.StateNode]:
        return [state for each, state in self.written if each == name]

    # --- events ----------------------------------------------------------------------------------

    def go(self, *ids: int) -> Decision:
        for broker_id in ids:
            del self.live[broker_id]
        return self.carry_out(self.controller.brokers_changed(dict(self.live)))

    def come(self, *images: BrokerImage) -> Decision:
        self.live.update({each.broker_id: each for each in images})
        return self.carry_out(self.controller.brokers_changed(dict(self.live)))

    def propose(self, *isr: int, name: TopicPartition = T0) -> IsrAnswer:
        """The leader proposes this ISR, with the registrations that it knows."""
        partition = self[name]
        members = [IsrMember(each, self.live[each].epoch) for each in isr]
        proposal = self.proposal(*members, name=name)
        leader = partition.leader
        decision, answers = self.controller.isr_proposed(
            leader, self.live[leader].epoch, [proposal]
        )
        self.carry_out(decision)
        return answers[name]

    def proposal(self, *members: IsrMember, name: TopicPartition = T0) -> IsrProposal:
        partition = self[name]
        topic_id = self.controller.image.topics[name.topic].topic_id
        return IsrProposal(
            name, topic_id, partition.leader_epoch, members, partition.partition_epoch
        )

    # --- what was sent ---------------------------------------------------------------------------

    def sent(self) -> list[tuple[int, str]]:
        return [(to, type(request).__name__) for to, request in self.decision.requests]

    def notified(self, broker_id: int) -> dict[TopicPartition, PartitionImage]:
        """The partitions that the broker was notified to lead or to follow."""
        return {
            state.topic_partition: state.partition
            for request in self._requests(broker_id)
            if isinstance(request, LeaderAndIsr)
            for state in request.partitions
        }

    def stopped(self, broker_id: int) -> list[tuple[TopicPartition, bool]]:
        """The partitions that the broker has to stop hosting, and whether to delete them."""
        return [
            (name, request.delete)
            for request in self._requests(broker_id)
            if isinstance(request, StopReplica)
            for name in request.partitions
        ]

    def stop_epochs(self, broker_id: int) -> dict[TopicPartition, int]:
        """The leader epochs of these requests."""
        return {
            name: request.leader_epoch(name)
            for request in self._requests(broker_id)
            if isinstance(request, StopReplica)
            for name in request.partitions
        }

    def known_to(self, broker_id: int) -> list[list[str]]:
        """The topics in each metadata update that the broker got."""
        return [
            [each.name for each in request.topics]
            for request in self._requests(broker_id)
            if isinstance(request, UpdateMetadata)
        ]

    def _requests(self, broker_id: int) -> list[ControlRequest]:
        return [request for to, request in self.decision.requests if to == broker_id]


def _name_of(path: str) -> TopicPartition:
    _, _, _, name, _, partition, _ = path.split("/")
    return TopicPartition(name, int(partition))
