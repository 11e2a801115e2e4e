"""The counts over all partitions."""

from __future__ import annotations

from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.controller.counts import Counts
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, brokers, led, topic


def test_what_is_counted_and_what_is_not() -> None:
    """RE-14: topics on their way out have no trouble any more."""
    stage = Stage(
        topic("t", led(1, 2), led(2, 1, replicas=(1, 2)), led(9, leader=NO_LEADER)),
        topic("u", PartitionImage.never_led((9,))),
        topic("gone", led(9, leader=NO_LEADER)),
        live=brokers(1, 2),
    )
    stage.carry_out(stage.controller.deletions_requested(["gone"]))
    assert stage.controller.counts == Counts(2, 4, offline_partitions=2, preferred_imbalance=3)
    assert stage.controller.offline_partitions == {
        TopicPartition("t", 2),
        TopicPartition("u", 0),
    }


def test_a_replica_whose_directory_failed_does_not_count_as_led() -> None:
    stage = Stage(topic("t", led(1)))
    assert stage.controller.counts.offline_partitions == 0
    stage.carry_out(stage.controller.replicas_offline(1, [T0]))
    assert stage.controller.counts.offline_partitions == 1
