"""The controller machine: what it decides, event by event; nothing here commits or sends."""

from __future__ import annotations

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import LeaderAndIsr, StopReplica, UpdateMetadata
from barnabas.cluster.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from barnabas.cluster.layout import StateNode
from barnabas.cluster.store import Check, Create, Delete, Set
from barnabas.controller.controller import Controller, Decision
from barnabas.types import TopicPartition

EPOCH, EPOCH_VERSION = 7, 12


def _brokers(*ids: int) -> dict[int, BrokerImage]:
    address = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)
    return {broker_id: BrokerImage(broker_id, address, None, 100 + broker_id) for broker_id in ids}


def _topic(name: str, *replicas: tuple[int, ...]) -> TopicImage:
    partitions = {n: PartitionImage.never_led(ids) for n, ids in enumerate(replicas)}
    return TopicImage(name, name.encode().ljust(16, b"\0"), partitions, {"retention.ms": "1"})


def _led(name: str, leader: int, *isr: int) -> TopicImage:
    partition = PartitionImage(leader, 3, isr, isr, 5, 4)
    return TopicImage(name, name.encode().ljust(16, b"\0"), {0: partition}, {})


def _controller(*topics: TopicImage, live: tuple[int, ...] = (0,)) -> Controller:
    by_name = {topic.name: topic for topic in topics}
    ids = {topic.topic_id: topic.name for topic in topics}
    image = ClusterImage("cluster", 0, EPOCH, _brokers(*live), by_name, ids)
    return Controller(EPOCH_VERSION, image)


def _sent(decision: Decision) -> list[tuple[int, str]]:
    return [(send.broker_id, type(send.request).__name__) for send in decision.requests]


def test_a_new_topic_gets_state_nodes_and_leaders() -> None:
    """ZK-1, ZK-4: the first live replica leads, epochs begin at 0."""
    controller = _controller()
    decision = controller.topics_added([_topic("t", (0,), (0,))])
    state = layout.encode_state(StateNode(leader=0, leader_epoch=0, isr=(0,), controller_epoch=7))
    assert decision.operations == (
        Check("/controller_epoch", EPOCH_VERSION),
        Create("/brokers/topics/t/partitions"),
        Create("/brokers/topics/t/partitions/0"),
        Create("/brokers/topics/t/partitions/0/state", state),
        Create("/brokers/topics/t/partitions/1"),
        Create("/brokers/topics/t/partitions/1/state", state),
    )
    assert _sent(decision) == [(0, "LeaderAndIsr"), (0, "UpdateMetadata")]
    request = decision.requests[0].request
    assert isinstance(request, LeaderAndIsr)
    assert (request.controller_id, request.controller_epoch) == (0, EPOCH)
    assert [each.topic_partition.partition for each in request.partitions] == [0, 1]
    assert all(each.is_new and each.topic_config == {"retention.ms": "1"}
               for each in request.partitions)  # fmt: skip
    assert decision.image.topics["t"].partitions[1] == PartitionImage(0, 0, (0,), (0,), 0, 7)


def test_nothing_has_happened_before_apply() -> None:
    controller = _controller()
    decision = controller.topics_added([_topic("t", (0,))])
    assert "t" not in controller.image.topics
    controller.apply(decision)
    assert "t" in controller.image.topics


def test_each_broker_is_sent_its_own_replicas_and_every_leader() -> None:
    """ZK-3"""
    controller = _controller(live=(0, 1, 2))
    decision = controller.topics_added([_topic("t", (1, 0), (2, 1))])
    hosted = {
        send.broker_id: [state.topic_partition.partition for state in send.request.partitions]
        for send in decision.requests
        if isinstance(send.request, LeaderAndIsr)
    }
    assert hosted == {0: [0], 1: [0, 1], 2: [1]}
    assert _sent(decision)[3:] == [(n, "UpdateMetadata") for n in (0, 1, 2)]


def test_dead_replicas_are_neither_leaders_nor_in_sync() -> None:
    controller = _controller(live=(1, 2))
    decision = controller.topics_added([_topic("t", (0, 2, 1))])
    partition = decision.image.topics["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (2, (2, 1), (0, 2, 1))


def test_without_a_live_replica_there_is_no_leader() -> None:
    decision = _controller(live=(1,)).topics_added([_topic("t", (0,))])
    assert not any(isinstance(op, Create) and op.path.endswith("/state")
                   for op in decision.operations)  # fmt: skip
    assert decision.image.topics["t"].partitions[0].leader == NO_LEADER


def test_a_lone_broker_that_restarts_keeps_its_epochs() -> None:
    """No election where the leader lives: nothing is written at all."""
    controller = _controller(_led("t", 0, 0))
    decision = controller.on_elected([])
    assert decision.operations == ()
    assert decision.image.topics == controller.image.topics
    request = decision.requests[0].request
    assert isinstance(request, LeaderAndIsr)
    (state,) = request.partitions
    assert not state.is_new
    assert state.partition.leader_epoch == 3


def test_a_partition_without_a_leader_gets_one_that_is_in_sync() -> None:
    """RE-10"""
    lost = _led("t", NO_LEADER, 2, 0)
    lost = lost._replace(partitions={0: lost.partitions[0]._replace(replicas=(1, 0, 2))})
    decision = _controller(lost, live=(0, 1, 2)).on_elected([])
    partition = decision.image.topics["t"].partitions[0]
    assert partition == PartitionImage(0, 4, (2, 0), (1, 0, 2), 6, EPOCH)
    written = decision.operations[1]
    assert isinstance(written, Set)
    assert (written.path, written.version) == ("/brokers/topics/t/partitions/0/state", 5)


def test_a_new_controller_sends_no_brokers_before_topics() -> None:
    """RE-13: what began while there was none would call every topic unknown."""
    decision = _controller(_led("t", 0, 0, 1), live=(0, 1)).on_elected([])
    sent = [each.request for each in decision.requests if each.broker_id == 1]
    assert isinstance(sent[0], UpdateMetadata)
    assert {broker.broker_id for broker in sent[0].brokers} == {0, 1}
    assert [topic.name for topic in sent[0].topics] == ["t"]
    assert isinstance(sent[1], LeaderAndIsr)


def test_an_interrupted_creation_is_finished_by_the_next_controller() -> None:
    decision = _controller(_led("old", 0, 0), _topic("new", (0,))).on_elected([])
    assert [op.path for op in decision.operations] == [
        "/controller_epoch",
        "/brokers/topics/new/partitions",
        "/brokers/topics/new/partitions/0",
        "/brokers/topics/new/partitions/0/state",
    ]
    request = decision.requests[0].request
    assert isinstance(request, LeaderAndIsr)
    assert [(each.topic_partition.topic, each.is_new) for each in request.partitions] == [
        ("old", False),
        ("new", True),
    ]


def test_deletion_in_kafkas_order() -> None:
    """ZK-4: first the leaders go, then every replica, the nodes, and last the request.

    One live replica after the other leaves the ISR, as Kafka's do.
    """
    controller = _controller(_led("t", 0, 0, 1), _led("other", 0, 0), live=(0, 1))
    first = controller.deletions_requested(["t"])
    state = StateNode(leader=NO_LEADER, leader_epoch=4, isr=(1,), controller_epoch=7)
    assert first.operations == (
        Check("/controller_epoch", EPOCH_VERSION),
        Set("/brokers/topics/t/partitions/0/state", layout.encode_state(state), 5),
        Set(
            "/brokers/topics/t/partitions/0/state",
            layout.encode_state(state._replace(leader_epoch=5)),
            6,
        ),
    )
    assert _sent(first) == [
        (0, "UpdateMetadata"),
        (1, "UpdateMetadata"),
        (0, "StopReplica"),
        (1, "StopReplica"),
    ]
    update, stop = first.requests[0].request, first.requests[2].request
    assert isinstance(update, UpdateMetadata) and update.removed_topics == ("t",)
    assert isinstance(stop, StopReplica) and stop.delete
    assert stop.partitions == (TopicPartition("t", 0),)
    controller.apply(first)
    assert "t" in controller.image.topics, "the name is taken until its nodes are gone"

    paths = ["/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"]
    second = controller.replicas_deleted(["t"], paths)
    assert second.operations == (
        Check("/controller_epoch", EPOCH_VERSION),
        *(Delete(path) for path in paths),
    )
    assert second.requests == ()
    controller.apply(second)
    assert list(controller.image.topics) == ["other"]


def test_a_topic_that_is_to_go_is_not_led_again() -> None:
    decision = _controller(_led("t", 0, 0), _led("other", 0, 0)).on_elected(["t"])
    request = decision.requests[0].request
    assert isinstance(request, LeaderAndIsr)
    assert [each.topic_partition.topic for each in request.partitions] == ["other"]


def test_a_request_to_delete_an_unknown_topic_is_just_removed() -> None:
    controller = _controller()
    first = controller.deletions_requested(["ghost"])
    assert first.operations == ()
    second = controller.replicas_deleted(["ghost"], ["/admin/delete_topics/ghost"])
    assert second.operations[1:] == (Delete("/admin/delete_topics/ghost"),)


def test_growth_is_sent_for_new_partitions_alone() -> None:
    """TP-5: no broker is made leader again of what it leads."""
    old = _led("t", 0, 0, 1)
    controller = _controller(old, live=(0, 1))
    new = {1: PartitionImage.never_led((1, 0)), 2: PartitionImage.never_led((0,), latest_epoch=8)}
    decision = controller.partitions_added([old._replace(partitions={**old.partitions, **new})])
    assert [op.path for op in decision.operations] == [
        "/controller_epoch",
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/1/state",
        "/brokers/topics/t/partitions/2",
        "/brokers/topics/t/partitions/2/state",
    ]
    assert _sent(decision) == [
        (0, "LeaderAndIsr"),
        (1, "LeaderAndIsr"),
        (0, "UpdateMetadata"),
        (1, "UpdateMetadata"),
    ]
    sent = [send.request for send in decision.requests[:2]]
    assert [
        [(each.topic_partition.partition, each.is_new) for each in request.partitions]
        for request in sent
        if isinstance(request, LeaderAndIsr)
    ] == [[(1, True), (2, False)], [(1, True)]]
    partitions = decision.image.topics["t"].partitions
    assert partitions[0] == old.partitions[0]
    assert partitions[2].leader_epoch == 9, "above what its log has seen"


def test_another_member_leads_when_a_directory_is_lost() -> None:
    """RE-10: one of the ISR; the broker that lost it learns which, and may begin again (ST-8)."""
    controller = _controller(_led("t", 0, 0, 1), live=(0, 1))
    decision = controller.replicas_offline(0, [TopicPartition("t", 0)])
    state = StateNode(leader=1, leader_epoch=4, isr=(1,), controller_epoch=7)
    assert decision.operations == (
        Check("/controller_epoch", EPOCH_VERSION),
        Set("/brokers/topics/t/partitions/0/state", layout.encode_state(state), 5),
    )
    assert _sent(decision) == [(0, "LeaderAndIsr"), (1, "LeaderAndIsr"),
                               (0, "UpdateMetadata"), (1, "UpdateMetadata")]  # fmt: skip
    assert decision.image.topics["t"].partitions[0].offline_replicas == (0,)


def test_a_follower_whose_directory_is_lost_leaves_the_isr() -> None:
    controller = _controller(_led("t", 1, 0, 1), live=(0, 1))
    decision = controller.replicas_offline(0, [TopicPartition("t", 0)])
    partition = decision.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 4, (1,))


def test_the_last_member_is_waited_for() -> None:
    controller = _controller(_led("t", 0, 0), live=(0, 1))
    lost = [TopicPartition("t", 0)]
    decision = controller.replicas_offline(0, lost)
    partition = decision.image.topics["t"].partitions[0]
    assert (partition.leader, partition.isr) == (NO_LEADER, (0,))
    controller.apply(decision)
    again = controller.replicas_offline(0, lost)
    assert (again.operations, again.requests) == ((), ()), "once is enough"
    assert controller.on_elected([]).operations == (), "its broker lives, and may not lead it"


def test_a_replica_outside_of_the_isr_changes_no_state() -> None:
    topic = _led("t", 0, 0)
    partition = topic.partitions[0]._replace(replicas=(0, 1))
    controller = _controller(topic._replace(partitions={0: partition}), live=(0, 1))
    decision = controller.replicas_offline(1, [TopicPartition("t", 0), TopicPartition("u", 0)])
    assert decision.operations == ()
    assert decision.image.topics["t"].partitions[0].offline_replicas == (1,)
    assert _sent(decision) == [(0, "UpdateMetadata"), (1, "UpdateMetadata")]


def test_new_settings_are_sent_to_all_brokers() -> None:
    controller = _controller(_led("t", 0, 0), live=(0, 1))
    decision = controller.configs_changed({"t": {"retention.ms": "9"}})
    assert decision.operations == ()
    assert _sent(decision) == [(0, "UpdateMetadata"), (1, "UpdateMetadata")]
    assert decision.image.topics["t"].config == {"retention.ms": "9"}


def test_deletion_is_begun_once() -> None:
    """A request that has to wait for a disk raises no epoch when it is seen again."""
    controller = _controller(_led("t", 0, 0))
    controller.apply(controller.deletions_requested(["t"]))
    assert controller.deletions_requested(["t"]).operations == ()
