"""Events that reach the controller by the store alone: ISRs of old leaders, topics' configs."""

from __future__ import annotations

import pytest

from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.inter_broker import isr_change_notifications
from barnabas.broker.inter_broker.isr_change_notifications import Announced
from barnabas.cluster.store import MetadataStore
from simulation.run import what_is_missing
from simulation.topic_configs import MIN_ISR
from tests.simulation.stage import NAME, Stage


def a_leader_writes_its_isr() -> tuple[int, ...]:
    """As below inter.broker.protocol.version 2.7; the ISR that another broker knows then."""
    stage = Stage(3, min_isr=2, isr_writers=(1, 2, 3))
    stage.write()
    stage.cut(3)
    assert stage.write(acks=1) == [True]
    # The stage's followers may be silent for 8 s before they count as out of sync.
    stage.until(lambda: stage.stored[1] == (1, 2), within_ms=30_000)
    stage.wait(3000)
    known = stage.cluster.brokers[2].image.topics[NAME.topic].partitions[NAME.partition].isr
    stage.heal()
    stage.until_well()
    assert stage.stored == (1, (1, 2, 3))
    return known


def test_re_9_every_broker_gets_an_isr_that_its_leader_has_written() -> None:
    assert a_leader_writes_its_isr() == (1, 2)


def test_re_9_is_seen_where_the_controller_does_not_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(store: MetadataStore) -> Announced:
        return Announced([], [])

    monkeypatch.setattr(isr_change_notifications, "read_announced", nothing)
    assert a_leader_writes_its_isr() == (1, 2, 3)


def test_re_9_a_decision_that_a_leader_has_overtaken_is_made_again() -> None:
    """What the leader has written is read, and the broker leaves for all that."""
    stage = Stage(3, min_isr=2, isr_writers=(1, 2, 3))
    stage.write()
    stage.cut(3)
    assert stage.write(acks=1) == [True]
    stage.until(lambda: stage.stored[1] == (1, 2), within_ms=30_000)
    leaving = stage.cluster.brokers[1]
    stage.cluster.world.start(leaving.life, leaving.leave())  # nothing is announced yet
    stage.until_led_by(2)
    assert stage.cluster.checks.controller_epoch == 1


def a_topic_s_config_is_altered() -> Stage:
    stage = Stage(3, min_isr=2)
    stage.cluster.configs.alter("t0", {MIN_ISR: "3"})
    stage.wait(3000)
    return stage


def test_a_config_that_is_altered_reaches_the_controller_and_the_leader() -> None:
    stage = a_topic_s_config_is_altered()
    assert what_is_missing(stage.cluster) is None
    stage.cluster.kill(3)
    stage.until(lambda: stage.stored[1] == (1, 2))
    assert stage.write() == [False]
    assert stage.hosted(1).topic_partition == NAME


def test_a_config_that_the_controller_is_not_notified_of_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ignored(self: ControllerRunner, topic: str) -> None:
        """It goes on with what it has read."""

    monkeypatch.setattr(ControllerRunner, "topic_config_changed", ignored)
    assert "the controller has" in str(what_is_missing(a_topic_s_config_is_altered().cluster))
