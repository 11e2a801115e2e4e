"""The recipients of a decision, and its notes."""

from __future__ import annotations

from barnabas.controller.recipients import all_roles, note, roles
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, led, topic

T1 = TopicPartition("t", 1)


def test_each_broker_is_sent_what_it_hosts_and_whether_it_is_new() -> None:
    changed_topic = topic("t", led(1, 2), led(2, 3))
    changed = {"t": (changed_topic, dict(changed_topic.partitions))}
    hosted = roles(changed, [T0, T1], {T1: (3,)}, [2, 3])
    brief = {
        broker_id: [(state.topic_partition, state.is_new) for state in states]
        for broker_id, states in hosted.items()
    }
    assert brief == {2: [(T0, False), (T1, False)], 3: [(T1, True)]}
    assert all_roles([changed_topic], {T1: (3,)}, {2, 3}) == hosted


def test_a_note_names_the_first_few() -> None:
    names = [TopicPartition("t", number) for number in range(7)]
    assert note("are odd", names) == "7 partitions are odd: t-0, t-1, t-2, t-3, t-4 and 2 more"
    assert note("is odd", names[:1]) == "1 partition is odd: t-0"
