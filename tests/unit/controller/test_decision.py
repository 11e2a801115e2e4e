"""Large decisions in several commits, the recipients of a decision, and its notes."""

from __future__ import annotations

from barnabas.cluster.image import PartitionImage
from barnabas.cluster.nodes import Tree
from barnabas.cluster.store import Check, Create
from barnabas.controller.decision import all_roles, note, roles, split
from barnabas.types import TopicPartition
from tests.unit.controller.stage import EPOCH_VERSION, T0, Stage, led, topic

T1 = TopicPartition("t", 1)
FENCE = Check("/controller_epoch", EPOCH_VERSION)


def test_each_piece_is_fenced_and_none_is_larger_than_asked() -> None:
    """ZK-3: what a deposed controller has begun, it cannot go on with."""
    stage = Stage(topic("t", *[led(1, 2)] * 100))
    decision = stage.go(1)
    pieces = split(decision.operations, max_bytes=2_000)
    assert len(pieces) > 3
    assert all(piece[0] == FENCE and len(piece) > 1 for piece in pieces)
    assert [op for piece in pieces for op in piece[1:]] == list(decision.operations[1:])
    sizes = [sum(len(op.path) + len(getattr(op, "data", b"")) for op in piece) for piece in pieces]
    assert max(sizes) < 2_100


def test_a_small_decision_is_one_commit() -> None:
    stage = Stage(topic("t", led(1, 2)))
    decision = stage.go(1)
    assert split(decision.operations) == [decision.operations]
    assert split(stage.go(3).operations) == []


def test_a_topics_first_node_comes_with_its_first_partition() -> None:
    """A broker that finds the one without the other would make it again."""
    stage = Stage()
    never = PartitionImage.never_led((1,))
    decision = stage.controller.topics_added([topic("t", never, never), topic("u", never)])
    pieces = split(decision.operations, max_bytes=1)
    assert [[op.path for op in piece[1:]] for piece in pieces] == [
        [
            "/brokers/topics/t/partitions",
            "/brokers/topics/t/partitions/0",
            "/brokers/topics/t/partitions/0/state",
        ],
        ["/brokers/topics/t/partitions/1", "/brokers/topics/t/partitions/1/state"],
        [
            "/brokers/topics/u/partitions",
            "/brokers/topics/u/partitions/0",
            "/brokers/topics/u/partitions/0/state",
        ],
    ]


def test_the_next_controller_can_go_on_from_between_two_pieces() -> None:
    """Whatever was committed of a creation, the next controller completes it."""
    never = PartitionImage.never_led((1,))
    whole = Stage().controller.topics_added([topic("t", *[never] * 5)])
    pieces = split(whole.operations, max_bytes=1)
    assert len(pieces) == 5
    for done in range(6):
        tree = _tree("/controller_epoch", "/brokers", "/brokers/topics", "/brokers/topics/t")
        for piece in pieces[:done]:
            tree.merge(tree.stage(piece[1:], 0))
        begun = PartitionImage(1, 0, (1,), (1,), 0, 7)
        stage = Stage(topic("t", *[begun] * done, *[never] * (5 - done)))
        decision = stage.carry_out(stage.controller.on_elected([]))
        tree.merge(tree.stage(decision.operations[1:], 0))
        states = [path for path in tree.nodes if path.endswith("/state")]
        assert len(states) == 5


def _tree(*paths: str) -> Tree:
    tree = Tree()
    tree.merge(tree.stage([Create(path) for path in paths], 0))
    return tree


def test_each_broker_is_sent_what_it_hosts_and_whether_it_is_new() -> None:
    changed_topic = topic("t", led(1, 2), led(2, 3))
    changed = {"t": (changed_topic, dict(changed_topic.partitions))}
    hosted = roles(changed, [T0, T1], {T1: (3,)}, {T1: ["one", "two"]}, [2, 3])
    brief = {
        broker_id: [(state.topic_partition, state.is_new) for state in states]
        for broker_id, states in hosted.items()
    }
    assert brief == {2: [(T0, False), (T1, False)], 3: [(T1, True)]}
    assert [state.cause for state in hosted[2]] == ["", "one, two"]
    assert all_roles([changed_topic], {T1: (3,)}, {T1: ["one", "two"]}, {2, 3}) == hosted


def test_a_note_names_the_first_few() -> None:
    names = [TopicPartition("t", number) for number in range(7)]
    assert note("are odd", names) == "7 partitions are odd: t-0, t-1, t-2, t-3, t-4 and 2 more"
    assert note("is odd", names[:1]) == "1 partition is odd: t-0"
