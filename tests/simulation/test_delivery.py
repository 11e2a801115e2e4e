"""What each level of acknowledgement is worth, as stories (DL-3, DL-4), and RE-4 to RE-6."""

from __future__ import annotations

from typing import cast

import pytest

from barnabas.broker.replication.followed import Followed
from barnabas.replication.follower import Append, FetchFrom
from simulation.sim_replica import SimReplica
from simulation.wire import Fetch, FetchedPart, Produce, Produced, Wanted
from tests.simulation.stage import CLIENT, NAME, Stage

TOPIC_ID = b"\x01" * 16


def test_dl_3_acks_0_is_lost_with_its_broker_without_an_error() -> None:
    stage = Stage(2)
    stage.write()
    stage.cluster.network.cut(CLIENT, 1)  # it is on its way when the broker dies
    assert stage.write(acks=0) == [True]
    stage.cluster.kill(1)
    stage.until_led_by(2)
    stage.cluster.start(1)
    stage.until_well()
    assert stage.values(1) == stage.values(2) == [1]


def test_dl_3_acks_1_is_lost_with_its_leader() -> None:
    stage = Stage(2)
    stage.write()
    stage.cut(2)
    assert stage.write(acks=1) == [True]
    stage.cluster.kill(1)
    stage.heal()
    stage.until_led_by(2)
    stage.cluster.start(1)
    stage.until_well()
    assert stage.values(1) == stage.values(2) == [1]


@pytest.mark.parametrize(("idempotent", "values"), [(False, [1, 2, 2]), (True, [1, 2])])
def test_dl_3_acks_all_is_sent_again_when_the_answer_is_lost(
    idempotent: bool, values: list[int]
) -> None:
    stage = Stage(3, min_isr=2)
    producer = stage.producer(-1, idempotent=idempotent)
    first = stage.begin(producer)
    stage.until(lambda: bool(first))
    stage.cluster.network.cut(1, CLIENT)
    outcome = stage.begin(producer)
    stage.until(lambda: stage.values(2) == stage.values(3) == [1, 2])
    stage.cluster.kill(1)
    stage.until(lambda: bool(outcome))
    assert outcome == [True]
    stage.cluster.start(1)
    stage.until_well()
    assert stage.values(1) == stage.values(2) == stage.values(3) == values


def _shrunk_to_the_leader(min_isr: int) -> Stage:
    stage = Stage(3, min_isr=min_isr)
    stage.write()
    for broker_id in (2, 3):
        stage.cluster.kill(broker_id)
    stage.until(lambda: stage.stored[1] == (1,))
    return stage


def test_dl_3_acks_all_with_one_in_sync_is_lost_with_its_disk() -> None:
    stage = _shrunk_to_the_leader(min_isr=1)
    assert stage.write() == [True]
    assert stage.values(1) == [1, 2]
    stage.lose_power(1, keep=0)
    for broker_id in (1, 2, 3):
        stage.cluster.start(broker_id)
    stage.until_well()
    assert 2 not in stage.values(1)


def test_dl_3_acks_all_with_one_in_sync_is_refused_where_two_are_asked_for() -> None:
    stage = _shrunk_to_the_leader(min_isr=2)
    assert stage.write() == [False]
    assert stage.values(1) == [1]


def test_dl_4_two_of_three_in_sync_may_fail() -> None:
    stage = Stage(3, min_isr=2)
    assert stage.write(count=4) == [True] * 4
    stage.cluster.kill(1)
    stage.cluster.kill(2)
    stage.until_led_by(3)
    assert stage.values(3) == [1, 2, 3, 4]


def _produce(stage: Stage) -> list[Produced]:
    return stage.append(1, Produce(NAME, TOPIC_ID, 1, -1, 0, 7))


def _fetch(stage: Stage, sent: FetchFrom, *, is_first: bool = True) -> FetchedPart:
    return stage.fetch(1, Fetch(2, -1, (Wanted(NAME, TOPIC_ID, sent),), 0), is_first=is_first)


def _take(followed: Followed, sent: FetchFrom, part: FetchedPart) -> None:
    step = followed.on_answer(sent, part.got, cast(memoryview, part.entries), 0)
    assert type(step) is Append


def _state(leader: SimReplica, follower: SimReplica) -> tuple[int, int, int, int, int]:
    """Leader's LEO, remote LEO, leader's HW, follower's LEO, follower's HW."""
    return (
        leader.partition.log_end_offset,
        leader.partition.follower_end_offset(2),
        leader.partition.high_watermark,
        follower.log.log_end_offset,
        follower.partition.high_watermark,
    )


@pytest.mark.parametrize("is_parked", [False, True])
def test_re_4_5_6_watermarks_step_by_step(is_parked: bool) -> None:
    """RE-4, RE-5, RE-6: the exact table, with the fetch after the produce and parked before it."""
    stage = Stage(2)
    stage.wait(600)
    stage.cut(1, 2)
    leader, follower = stage.hosted(1), stage.hosted(2)
    assert _state(leader, follower) == (0, 0, 0, 0, 0)
    followed = stage.cluster.brokers[2].fetchers.followed(NAME)
    sent = followed.fetch_from()
    if is_parked:
        assert _fetch(stage, sent).entries == ()
        answers = _produce(stage)
        assert _state(leader, follower) == (1, 0, 0, 0, 0)
        part = _fetch(stage, sent, is_first=False)
    else:
        answers = _produce(stage)
        assert _state(leader, follower) == (1, 0, 0, 0, 0)
        part = _fetch(stage, sent)
    assert answers == [Produced(0, 0)]
    assert (len(part.entries), part.got.high_watermark) == (1, 0)
    _take(followed, sent, part)
    assert _state(leader, follower) == (1, 0, 0, 1, 0)
    sent = followed.fetch_from()
    assert sent.offset == 1
    part = _fetch(stage, sent)
    assert (len(part.entries), part.got.high_watermark) == (0, 1)
    assert _state(leader, follower) == (1, 1, 1, 1, 0)
    _take(followed, sent, part)
    assert _state(leader, follower) == (1, 1, 1, 1, 1)
