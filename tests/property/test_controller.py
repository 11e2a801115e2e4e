"""The controller machine on a real tree, through whatever may happen to it.

Brokers go, come, come back as others, shut down, lose directories, may have lost records; leaders
propose ISRs; people create, move, elect and delete; and at any moment, between two pieces of one
decision too, the controller is replaced by one that knows what the tree says and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrMember, IsrProposal, LeaderAndIsr, StopReplica
from barnabas.cluster.image import (
    NEVER_LED,
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from barnabas.cluster.nodes import Tree
from barnabas.cluster.store import Create, Operation
from barnabas.controller.controller import Controller, Decision, LogEnd, Settings
from barnabas.controller.decision import split
from barnabas.controller.lost_log_ends import is_in_doubt, waits_for_ends
from barnabas.types import TopicPartition
from tests.kit.effort import examples

BROKERS = (1, 2, 3, 4)
CONFIGS = {
    "plain": {},
    "safe": {"min.insync.replicas": "2"},
    "loose": {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
}
_EPOCH_OF_NO_LIFE = 99  # first registrations are in lower ones, later ones in higher ones
_ADDRESS = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)
_BASE = ("/controller_epoch", "/brokers", "/brokers/topics", "/config", "/config/topics")

broker_ids = st.sampled_from(BROKERS)
names = st.sampled_from([TopicPartition(topic, number) for topic in CONFIGS for number in (0, 1)])
replicas = st.permutations(BROKERS).flatmap(
    lambda order: st.integers(1, 3).map(lambda size: tuple(order[:size]))
)
events = st.one_of(
    st.tuples(st.just("go"), broker_ids),
    st.tuples(st.just("come"), broker_ids, st.booleans()),
    st.tuples(st.just("come"), broker_ids, st.booleans()),
    st.tuples(st.just("shut_down"), broker_ids),
    st.tuples(st.just("lose_directory"), broker_ids, names),
    st.tuples(st.just("host_again"), broker_ids, names),
    st.tuples(st.just("lost_before"), broker_ids, names),
    st.tuples(st.just("propose"), names, st.sets(broker_ids)),
    st.tuples(st.just("propose"), names, st.just(set(BROKERS))),
    st.tuples(st.just("reassign"), names, st.none() | replicas),
    st.tuples(st.just("elect"), names, st.booleans()),
    st.tuples(st.just("rebalance")),
    st.tuples(st.just("create"), st.sampled_from(sorted(CONFIGS)), replicas, replicas),
    st.tuples(st.just("delete"), st.sampled_from(sorted(CONFIGS))),
    st.tuples(st.just("say_ends"), broker_ids, st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("replace"), st.integers(0, 3)),
)


class World:
    """A tree, a controller, and the requests that each live broker has received."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.commit([Create(path) for path in _BASE])
        self.czxids = count(100)
        self.live = {each: BrokerImage(each, _ADDRESS, None, each) for each in BROKERS}
        self.roles: dict[int, dict[TopicPartition, PartitionImage]] = {b: {} for b in BROKERS}
        self.images = {broker_id: ClusterImage.empty() for broker_id in BROKERS}
        self.trusted: set[tuple[TopicPartition, int, int]] = set()
        self.deleting: set[str] = set()
        self.epoch = 0
        self.controller: Controller
        self.lost: set[tuple[TopicPartition, int, int]] = set()
        self.carry_out(self.replace(0))

    def commit(self, operations: Sequence[Operation]) -> None:
        self.tree.merge(self.tree.stage(operations, 0))

    def carry_out(self, decision: Decision, pieces: int | None = None) -> None:
        """Commit and send; or only the first pieces of it, and then fall silent."""
        parts = split(decision.operations, max_bytes=1 if pieces is not None else 500_000)
        for operations in parts[:pieces]:
            self.commit(operations)
        if pieces is not None:
            return
        self._trust_beginners(decision)
        self.controller.apply(decision)
        for broker_id, request in decision.requests:
            roles = self.roles[broker_id]
            if isinstance(request, LeaderAndIsr):
                for state in request.partitions:
                    known = roles.get(state.topic_partition)
                    assert known is None or known.leader_epoch <= state.partition.leader_epoch
                    roles[state.topic_partition] = state.partition
            elif isinstance(request, StopReplica):
                for name in request.partitions if request.delete else ():
                    roles.pop(name, None)
            else:
                self.images[broker_id] = self.images[broker_id].apply(request)

    def _trust_beginners(self, decision: Decision) -> None:
        """Of what begins no broker can have lost anything."""
        for operation in decision.operations:
            if isinstance(operation, Create) and operation.path.endswith("/state"):
                _, _, _, topic, _, number, _ = operation.path.split("/")
                name = TopicPartition(topic, int(number))
                isr = layout.decode_state(*name, operation.data).isr
                self.trusted.update((name, each, self.live[each].epoch) for each in isr)

    # --- events ----------------------------------------------------------------------------------

    def go(self, broker_id: int) -> Decision:
        self.live.pop(broker_id, None)
        return self.controller.brokers_changed(dict(self.live))

    def come(self, broker_id: int, lossy: bool) -> Decision:
        """It starts; if it lived it has bounced."""
        epoch = next(self.czxids)
        self.live[broker_id] = BrokerImage(broker_id, _ADDRESS, None, epoch, lossy)
        self.roles[broker_id], self.images[broker_id] = {}, ClusterImage.empty()
        return self.controller.brokers_changed(dict(self.live))

    def shut_down(self, broker_id: int) -> Decision | None:
        if broker_id not in self.live:
            return None
        decision, remaining = self.controller.shutdown_requested(broker_id)
        for name in remaining:
            assert decision.image.topics[name.topic].partitions[name.partition].leader == broker_id
        return decision

    def lose_directory(self, broker_id: int, name: TopicPartition) -> Decision | None:
        if broker_id not in self.live:
            return None
        self.lost.add((name, broker_id, self.live[broker_id].epoch))
        return self.controller.replicas_offline(broker_id, [name])

    def host_again(self, broker_id: int, name: TopicPartition) -> Decision | None:
        """A log that was damaged begins again."""
        if broker_id not in self.live:
            return None
        epoch = self.live[broker_id].epoch
        return self.controller.replicas_online(broker_id, [name], epoch)

    def lost_before(self, broker_id: int, name: TopicPartition) -> Decision:
        """It had lost a directory in a life that is over, whether it has another one or not."""
        return self.controller.replicas_offline(broker_id, [name], _EPOCH_OF_NO_LIFE)

    def propose(self, name: TopicPartition, wanted: set[int]) -> Decision | None:
        """As a leader does that has heard everything: of its live replicas, itself always."""
        partition = self.partition(name)
        if partition is None or partition.leader not in self.live:
            return None
        leader = partition.leader
        isr = [each for each in partition.replicas
               if each == leader or (each in wanted and each in self.live)]  # fmt: skip
        topic = self.controller.image.topics[name.topic]
        proposal = IsrProposal(
            name,
            topic.topic_id,
            partition.leader_epoch,
            tuple(IsrMember(each, self.live[each].epoch) for each in isr),
            partition.partition_epoch,
        )
        decision, answers = self.controller.isr_proposed(
            leader, self.live[leader].epoch, [proposal]
        )
        if answers[name].error_code in (0, 108):
            self.trusted.update((name, each, self.live[each].epoch) for each in isr)
        return decision

    def reassign(self, name: TopicPartition, targets: tuple[int, ...] | None) -> Decision:
        topic = self.controller.image.topics.get(name.topic)
        partition = topic.partitions.get(name.partition) if topic is not None else None
        if partition is not None and len(partition.replicas) == 1 and partition.leader in self.live:
            # Whatever it has lost, it leads: no other had more.
            self.trusted.add((name, partition.leader, self.live[partition.leader].epoch))
        return self.controller.reassign({name: targets})[0]

    def elect(self, name: TopicPartition, unclean: bool) -> Decision:
        decision, outcomes = self.controller.elect_leaders([name], unclean=unclean)
        if unclean and outcomes[name] is None:
            leader = decision.image.topics[name.topic].partitions[name.partition].leader
            self.trusted.add((name, leader, self.live[leader].epoch))
        return decision

    def rebalance(self) -> Decision:
        return self.controller.rebalance_leaders(10)

    def create(self, topic: str, *assignment: tuple[int, ...]) -> Decision | None:
        if topic in self.controller.image.topics or topic in self.deleting:
            return None
        topic_id = str(self.tree.zxid).encode().ljust(16)
        node = layout.encode_topic(topic_id, dict(enumerate(assignment)))
        self.commit([Create(layout.topic_path(topic), node)])
        return self.controller.topics_added([self.load(topic)])

    def delete(self, topic: str) -> Decision | None:
        """First it is begun; when it is wished again and all replicas live, it is completed."""
        known = self.controller.image.topics.get(topic)
        if known is None:
            return None
        hosts = {each for p in known.partitions.values() for each in p.replicas}
        if topic not in self.deleting:
            self.deleting.add(topic)
            return self.controller.deletions_requested([topic])
        if not hosts.issubset(self.live):
            return None
        self.deleting.discard(topic)
        prefix = layout.topic_path(topic)
        paths = [
            path for path in self.tree.nodes if path == prefix or path.startswith(f"{prefix}/")
        ]
        self.trusted = {each for each in self.trusted if each[0].topic != topic}
        return self.controller.replicas_deleted([topic], sorted(paths, reverse=True))

    def say_ends(self, broker_id: int, epoch: int, end_offset: int) -> Decision:
        """A broker says of all that is asked where its logs end."""
        wanted = self.controller.ends_wanted
        end = {broker_id: LogEnd(epoch, end_offset)}
        decision = self.controller.ends_known(dict.fromkeys(wanted, end))
        for name in wanted:
            leader = decision.image.topics[name.topic].partitions[name.partition].leader
            if leader != NO_LEADER:
                self.trusted.add((name, leader, self.live[leader].epoch))
        return decision

    def replace(self, pieces: int) -> Decision:
        """Another controller, which has lost everything that is not in the tree."""
        if self.epoch:
            self.carry_out(self.controller.rebalance_leaders(0), pieces)
        self.epoch += 1
        self.trusted.clear()
        topics = {name: self.load(name) for name in self.topic_names()}
        ids = {topic.topic_id: name for name, topic in topics.items()}
        image = ClusterImage("c", 1, self.epoch, dict(self.live), topics, ids)
        self.controller = Controller(0, image, Settings())
        return self.controller.on_elected(self.deleting)

    # --- the tree --------------------------------------------------------------------------------

    def topic_names(self) -> list[str]:
        node = self.tree.read(layout.TOPICS)
        assert node is not None
        return list(node.children)

    def load(self, name: str) -> TopicImage:
        node = self.tree.nodes[layout.topic_path(name)]
        topic = layout.decode_topic(name, node.data)
        partitions = {}
        for number, ids in topic.replicas.items():
            state = self.tree.read(layout.state_path(name, number))
            if state is None:
                partitions[number] = PartitionImage.never_led(ids)
                continue
            read = layout.decode_state(name, number, state.data)
            partitions[number] = PartitionImage(
                read.leader, read.leader_epoch, read.isr, tuple(ids), state.version,
                read.controller_epoch, (), tuple(topic.adding.get(number, ())),
                tuple(topic.removing.get(number, ())),
            )  # fmt: skip
        return TopicImage(name, topic.topic_id or b"", partitions, CONFIGS[name])

    def partition(self, name: TopicPartition) -> PartitionImage | None:
        topic = self.controller.image.topics.get(name.topic)
        return None if topic is None else topic.partitions.get(name.partition)

    # --- what always holds -----------------------------------------------------------------------

    def check(self, epochs: dict[TopicPartition, int]) -> None:
        image = self.controller.image
        assert set(image.topics) == set(self.topic_names())
        for topic in image.topics.values():
            written = self.load(topic.name)
            for number, partition in topic.partitions.items():
                name = TopicPartition(topic.name, number)
                stored = _without_departing(written.partitions[number])
                assert partition._replace(offline_replicas=()) == stored, name
                if topic.name not in self.deleting:
                    self._check_partition(name, topic, partition)
                assert partition.leader_epoch >= epochs.get(name, NEVER_LED), name
                epochs[name] = partition.leader_epoch
        for name in [name for name in epochs if name.topic not in image.topics]:
            del epochs[name]
        for broker_id in self.live:
            self._check_known(broker_id)

    def _check_partition(
        self, name: TopicPartition, topic: TopicImage, partition: PartitionImage
    ) -> None:
        assert len(set(partition.replicas)) == len(partition.replicas) > 0, name
        assert set(partition.adding) | set(partition.removing) <= set(partition.replicas)
        for each in partition.offline_replicas:
            assert each in self.live, (name, partition)
            assert (name, each, self.live[each].epoch) in self.lost, (name, partition)
        if partition.partition_epoch == NEVER_LED:
            assert self.live.keys().isdisjoint(partition.replicas) or self._unelectable(partition)
            return
        assert partition.isr and set(partition.isr) <= set(partition.replicas), (name, partition)
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr, (name, partition)
            assert partition.leader in self.live, (name, partition)
            self._check_trust(name, topic, partition)
            return
        # A partition has no leader only where no broker may lead.
        waits = is_in_doubt(partition, self.live) and waits_for_ends(topic, Settings())
        assert waits or self._unelectable(partition._replace(replicas=partition.isr)), name

    def _unelectable(self, partition: PartitionImage) -> bool:
        leaving = self.controller._leaving
        return all(
            each not in self.live
            or leaving.get(each) == self.live[each].epoch
            or each in partition.offline_replicas
            for each in partition.replicas
        )

    def _check_trust(
        self, name: TopicPartition, topic: TopicImage, partition: PartitionImage
    ) -> None:
        """KIP-966: no broker leads by an ISR that it was in before it may have lost records."""
        leader = self.live[partition.leader]
        if len(partition.replicas) > 1 and leader.may_have_lost and topic.name == "safe":
            key = (name, leader.broker_id, leader.epoch)
            assert key in self.trusted, (name, partition)

    def _check_known(self, broker_id: int) -> None:
        """ZK-3: it knows who leads, and of its own replicas in which epoch."""
        image, known = self.controller.image, self.images[broker_id]
        staying = {name: t for name, t in image.topics.items() if name not in self.deleting}
        assert known.brokers == self.live
        assert known.topics == staying, broker_id
        roles = self.roles[broker_id]
        for topic in staying.values():
            for number, partition in topic.partitions.items():
                name = TopicPartition(topic.name, number)
                epoch = self.live[broker_id].epoch
                if broker_id in partition.replicas and (name, broker_id, epoch) not in self.lost:
                    role = roles[name]
                    assert role.leader_epoch == partition.leader_epoch, (broker_id, name)
                    assert role.leader == partition.leader


_LOST_AND_JOINED: list[tuple[Any, ...]] = [
    ("go", 1),
    ("come", 1, False),
    ("create", "safe", (3,), (1,)),
    ("come", 3, True),
    ("reassign", TopicPartition("safe", 0), (1,)),
]
"""The only replica of a partition may have lost records; then it gets another one beside it."""


def _without_departing(stored: PartitionImage) -> PartitionImage:
    """As the image has it: the topic's node keeps who has yet to delete its log, as both."""
    departing = set(stored.adding) & set(stored.removing)
    replicas, adding, removing = (
        tuple(each for each in some if each not in departing)
        for some in (stored.replicas, stored.adding, stored.removing)
    )
    return stored._replace(replicas=replicas, adding=adding, removing=removing)


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(st.lists(events, min_size=5, max_size=40))
@example(_LOST_AND_JOINED)
def test_whatever_happens_the_tree_is_sound_and_everybody_knows_it(
    happened: list[tuple[Any, ...]],
) -> None:
    """ZK-3, ZK-5, RE-10, RE-11, RE-13: and no partition is without a leader that could have one."""
    world = World()
    epochs: dict[TopicPartition, int] = {}
    for name, *arguments in happened:
        decision = getattr(world, name)(*arguments)
        if decision is not None:
            world.carry_out(decision)
        world.check(epochs)
