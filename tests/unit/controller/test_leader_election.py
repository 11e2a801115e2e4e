"""Who leads, partition by partition."""

from __future__ import annotations

import pytest

from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.controller.leader_election import (
    elect,
    elect_unclean,
    hand_over,
    leader_last,
    prefer,
    succeed,
    without,
)
from tests.unit.controller.stage import led


def _brief(partition: PartitionImage | None) -> tuple[int, tuple[int, ...]] | None:
    return None if partition is None else (partition.leader, partition.isr)


def test_a_successor_keeps_all_other_fields() -> None:
    before = PartitionImage(1, 3, (1, 2), (1, 2, 3), 5, 4, (3,), (3,), (2,))
    assert succeed(before, 2, (2, 1), 9) == before._replace(
        leader=2, leader_epoch=4, isr=(2, 1), partition_epoch=6, controller_epoch=9
    )


@pytest.mark.parametrize(
    ("isr", "live", "outcome"),
    [
        ((3, 2, 1), {2, 3}, (2, (3, 2))),
        ((1, 3), {2, 3}, (3, (3,))),
        ((1,), {2, 3}, None),
        ((3, 2, 1), {1, 2, 3}, None),
    ],
)
def test_the_first_assigned_that_is_in_sync_and_lives(
    isr: tuple[int, ...], live: set[int], outcome: tuple[int, tuple[int, ...]] | None
) -> None:
    """RE-10"""
    partition = led(*isr, replicas=(1, 2, 3), leader=1)
    assert _brief(elect(partition, live, 7)) == outcome


def test_offline_replicas_lead_nothing() -> None:
    partition = led(1, 2, 3)._replace(offline_replicas=(1, 2))
    assert _brief(elect(partition, {1, 2, 3}, 7)) == (3, (3,))
    assert _brief(elect_unclean(partition, {1, 2, 3}, 7)) == (3, (3,))
    assert prefer(partition, {1, 2, 3}, 7) is None
    assert _brief(hand_over(partition, {1, 2, 3}, 7)) == (3, (1, 2, 3))


def test_unclean_is_the_first_that_lives() -> None:
    """RE-11"""
    assert _brief(elect_unclean(led(1, replicas=(1, 2, 3)), {2, 3}, 7)) == (2, (2,))
    assert elect_unclean(led(1), set(), 7) is None


def test_the_last_member_stays() -> None:
    assert _brief(without(led(1, 2), 1, 7)) == (NO_LEADER, (2,))
    assert _brief(without(led(1, 2), 2, 7)) == (1, (1,))
    assert _brief(without(led(1), 1, 7)) == (NO_LEADER, (1,))
    assert leader_last(led(1, 2, 3), [1, 2, 3]) == [2, 3, 1]


def test_a_leader_hands_over_to_who_stays() -> None:
    """RE-13"""
    assert _brief(hand_over(led(1, 3, 2, replicas=(1, 2, 3)), {2, 3}, 7)) == (2, (3, 2))
    assert hand_over(led(1, replicas=(1, 2)), {2}, 7) is None


def test_the_preferred_replica_leads_only_if_it_is_in_sync() -> None:
    behind = PartitionImage(2, 3, (2, 3), (1, 2, 3), 5, 4, (), (), ())
    assert prefer(behind, {1, 2, 3}, 7) is None
    assert _brief(prefer(behind._replace(isr=(2, 1)), {1, 2, 3}, 7)) == (1, (2, 1))
