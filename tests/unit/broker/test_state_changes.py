"""RE-14: leader changes, ISR changes and reassignments in the log, in Kafka's words."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from barnabas import Cluster
from barnabas.broker.state_changes import (
    MOST_LINES,
    RoleChange,
    is_shrink,
    reassignment_lines,
    role_lines,
    shrink_lines,
    update_lines,
)
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

TOPIC_ID = bytes(range(16))


def image(leader: int, epoch: int = 4, **others: tuple[int, ...]) -> PartitionImage:
    return PartitionImage(leader, epoch, (1, 2, 3), (1, 2, 3), 7, 1)._replace(**others)


def replica(number: int, state: PartitionImage, end: int = 10) -> Partition:
    """On broker 1, which leads or follows; the followers have fetched up to two before the end."""
    partition = Partition(
        TopicPartition("t", number), 1, topic_id=TOPIC_ID, min_insync_replicas=2, high_watermark=8
    )
    if state.leader != 1:
        partition.become_follower(state)
        return partition
    partition.become_leader(state, end)
    for broker_id in (2, 3):
        partition.on_fetch(FollowerFetch(broker_id, end - 2, state.leader_epoch), 0)
    return partition


def changed(number: int, state: PartitionImage) -> RoleChange:
    return RoleChange(replica(number, state), state, 10, 2, 3)


def test_who_leads_and_who_follows() -> None:
    leading = changed(0, image(1, adding=(3,)))
    following = changed(1, image(2))._replace(previous_leader=-1, previous_epoch=-1)
    assert role_lines(1, [following, leading]) == [
        "[Broker id=1] Leader t-0 with topic id Some(AAECAwQFBgcICQoLDA0ODw) starts at leader "
        "epoch 4 from offset 10 with partition epoch 7, high watermark 8, ISR [1,2,3], adding "
        "replicas [3] and removing replicas []. Previous leader Some(2) and previous leader epoch "
        "was 3.",
        "[Broker id=1] Follower t-1 starts at leader epoch 4 from offset 10 with partition epoch 7 "
        "and high watermark 8. Current leader is 2. Previous leader None and previous leader epoch "
        "was -1.",
    ]


def test_an_isr_that_shrinks_and_what_is_made_of_it() -> None:
    partition = replica(0, image(1))
    fewer = proposal(0, 1, 2)
    assert is_shrink(partition, fewer)
    assert not is_shrink(replica(0, image(1, isr=(1, 2))), proposal(0, 1, 2, 3))
    assert shrink_lines([(partition, fewer)]) == [
        "[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 8, "
        "endOffset: 10). Out of sync replicas: (brokerId: 3, endOffset: 8)."
    ]
    answer = IsrAnswer(0, 1, 4, (1, 2), 8)
    assert update_lines([(partition, answer)]) == [
        "[Partition t-0 broker=1] ISR updated to 1,2 and version updated to 8"
    ]
    small = replica(0, image(1, isr=(1,)))
    (line,) = update_lines([(small, answer._replace(isr=(1,)))])
    assert line.endswith("ISR updated to 1 (under-min-isr) and version updated to 8")


def proposal(number: int, *isr: int) -> IsrProposal:
    members = tuple(IsrMember(broker_id, -1) for broker_id in isr)
    return IsrProposal(TopicPartition("t", number), TOPIC_ID, 4, members, 7)


def test_a_move_from_its_beginning_to_its_end() -> None:
    t0 = TopicPartition("t", 0)
    before = image(1, replicas=(1, 2))
    moving = image(1, replicas=(3, 2, 1), adding=(3,), removing=(1,))
    after = image(3, replicas=(3, 2))
    assert reassignment_lines(5, [(t0, before, moving)]) == [
        "[Controller id=5] Updating assignment of partition t-0 from 1,2 to 3,2: adding replicas "
        "[3], removing replicas [1]"
    ]
    for was in (moving, before):
        assert reassignment_lines(5, [(t0, was, after)]) == [
            "[Controller id=5] Updated assigned replicas for partition t-0 being reassigned to 3,2"
        ]
    assert reassignment_lines(5, [(t0, moving, moving), (t0, before, before)]) == []


MANY = range(MOST_LINES + 1)


@pytest.mark.parametrize(
    ("lines_of", "start"),
    [
        (
            lambda numbers: role_lines(1, [changed(number, image(1)) for number in numbers]),
            "[Broker id=1] Transitioning 11 partition(s) to local leaders: t-0, t-1, t-2",
        ),
        (
            lambda numbers: shrink_lines(
                [(replica(number, image(1)), proposal(number, 1)) for number in numbers]
            ),
            "[Broker id=1] Shrinking ISR of 11 partition(s): t-0 from 1,2,3 to 1, t-1 from",
        ),
        (
            lambda numbers: update_lines(
                [(replica(n, image(1)), IsrAnswer(0, 1, 4, (1, 2), 8)) for n in numbers]
            ),
            "[Broker id=1] ISR updated of 11 partition(s): t-0 to 1,2, t-1 to 1,2, t-2 to 1,2",
        ),
        (
            lambda numbers: reassignment_lines(
                1,
                [
                    (TopicPartition("t", n), image(1, removing=(3,)), image(1, replicas=(1, 2)))
                    for n in numbers
                ],
            ),
            "[Controller id=1] Updated assigned replicas for 11 partition(s) being reassigned: t-0",
        ),
    ],
)
def test_many_share_a_line(lines_of: Callable[[range], list[str]], start: str) -> None:
    (line,) = lines_of(MANY)
    assert line.startswith(start)
    assert line.endswith(" and 8 more")
    assert len(lines_of(MANY[:-1])) == MOST_LINES
    assert lines_of(range(0)) == []


def test_a_cluster_says_what_happens_to_its_partitions(caplog: pytest.LogCaptureFixture) -> None:
    """RE-8, RE-10: the leader, its ISR, a move to other brokers; each line once."""
    caplog.set_level(logging.INFO, "barnabas")
    settings = {"replica.lag.time.max.ms": 500, "replica.fetch.wait.max.ms": 100}
    with Cluster(3, config=settings) as cluster, SyncAdmin(cluster.bootstrap_servers) as admin:

        def said(text: str) -> int:
            return sum(text in record.getMessage() for record in caplog.records)

        admin.create_topics([NewTopic("t", assignment={0: [1, 2]})])
        assert said("[Broker id=1] Leader t-0 with topic id Some(") == 1
        wait_until(lambda: said("[Broker id=2] Follower t-0 starts at leader epoch 0 from offset"))
        admin.alter_partition_reassignments({TopicPartition("t", 0): [1, 3]})
        wait_until(lambda: said("Updated assigned replicas for partition t-0 being reassigned to"))
        assert (
            said("Updating assignment of partition t-0 from 1,2 to 1,3: adding replicas [3]") == 1
        )
        wait_until(
            lambda: said("[Partition t-0 broker=1] ISR updated to 1,2,3 and version updated")
        )

        def stop_following() -> None:
            others = cluster.server(3).parts.partitions.others
            assert others is not None
            cluster.thread.run(others.fetchers.stop())

        stop_following()
        with SyncProducer(cluster.bootstrap_servers, acks=1) as producer:
            producer.send("t", b"v").result()
        wait_until(lambda: said("ISR updated to 1 and version updated to"))
        shrinking = "[Partition t-0 broker=1] Shrinking ISR from 1,3 to 1. Leader: (highWatermark"
        assert said(shrinking) == 1


def test_an_embedded_broker_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    """TK-1: none of it is a warning."""
    with Cluster(3) as cluster, SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 5, 3)])
        cluster.stop_broker(3)
    assert capfd.readouterr() == ("", "")
