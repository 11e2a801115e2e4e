"""Topics that are deleted, and made again under the same name, while brokers come and go (TP-4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.partitions.replicas import Replicas
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.errors import InconsistentTopicId
from simulation.rules import Violation
from simulation.serving import Serving
from simulation.wire import Produce, Produced
from tests.simulation.stage import NAME, Stage

FIRST, SECOND = b"\x01" * 16, b"\x02" * 16


def _delete(stage: Stage) -> None:
    assert stage.cluster.request_deletion("t0")


def _make_again(stage: Stage) -> None:
    stage.until(lambda: not stage.cluster.has_topic("t0"))
    stage.cluster.create_topic("t0")
    stage.until_well()


def _topic_ids(stage: Stage) -> list[bytes]:
    return [disk.logs[NAME].topic_id for disk in stage.cluster.disks.values() if disk.logs]


def _breaks(rule: str, story: Callable[[], object]) -> None:
    with pytest.raises(Violation) as broken:
        story()
    assert broken.value.rule == rule


def test_its_records_go_with_it_and_its_name_is_free() -> None:
    stage = Stage(3, min_isr=2)
    assert stage.write(count=3) == [True] * 3
    _delete(stage)
    stage.until(lambda: not stage.cluster.has_topic("t0"))
    assert all(not disk.logs for disk in stage.cluster.disks.values())
    assert stage.cluster.ensemble.tree.read(layout.topic_config_path("t0")) is None
    _make_again(stage)
    assert stage.write(count=2) == [True] * 2
    stage.until_well()
    assert _topic_ids(stage) == [SECOND] * 3
    assert stage.values(2) == [4, 5]


def test_a_replica_on_a_dead_broker_holds_the_name_until_it_is_back() -> None:
    stage = Stage(3, min_isr=2)
    stage.write(count=3)
    stage.cluster.kill(3)
    _delete(stage)
    stage.wait(6000)
    assert stage.cluster.has_topic("t0")
    assert stage.log(3).topic_id == FIRST
    stage.cluster.start(3)
    _make_again(stage)
    assert _topic_ids(stage) == [SECOND] * 3


def test_the_next_controller_goes_on_with_it() -> None:
    stage = Stage(3, min_isr=2)
    stage.write(count=3)
    stage.cluster.kill(3)
    _delete(stage)
    stage.wait(1000)
    stage.cluster.kill(stage.controller)
    stage.wait(3000)
    stage.cluster.start(3)
    stage.until(lambda: not stage.cluster.has_topic("t0"))
    stage.cluster.start(stage.controller)
    _make_again(stage)
    assert _topic_ids(stage) == [SECOND] * 3


def the_disk_of_a_replica_has_failed(*, is_known: bool) -> Stage:
    """Before the topic was deleted; and whether the controller knows it."""
    stage = Stage(3, min_isr=2)
    stage.write(count=3)
    if not is_known:
        stage.cluster.brokers[3].session.cut_off()
    stage.cluster.brokers[3].fail_disk("it cannot be read")
    if is_known:
        stage.until(lambda: stage.stored[1] == (1, 2))
    _delete(stage)
    stage.wait(1000)
    assert stage.cluster.has_topic("t0")
    stage.cluster.kill(3)
    stage.cluster.start(3)
    _make_again(stage)
    return stage


@pytest.mark.parametrize("is_known", [False, True])
def test_a_replica_whose_disk_has_failed_is_deleted_when_that_is_back(is_known: bool) -> None:
    """KIP-112"""
    stage = the_disk_of_a_replica_has_failed(is_known=is_known)
    assert _topic_ids(stage) == [SECOND] * 3


def test_a_replica_that_is_out_of_reach_is_not_called_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the refusal the topic's nodes go, and the broker keeps its records."""

    monkeypatch.setattr(Replicas, "is_offline", lambda self, name: False)
    _breaks("leftovers", lambda: the_disk_of_a_replica_has_failed(is_known=False))


def a_record_comes_late() -> int:
    """It was meant for the first topic, and arrives when the second one has the name."""
    stage = Stage(2)
    stage.write()
    _delete(stage)
    _make_again(stage)
    answers: list[Produced] = []
    stage.cluster.checks.topics.sends(77, FIRST)
    leader = stage.cluster.brokers[stage.stored[0]]
    leader.receive(Produce(NAME, FIRST, 1, -1, 0, 77), answers.append)
    return answers[0].error_code


def test_a_record_of_the_first_does_not_get_into_the_second() -> None:
    assert a_record_comes_late() != 0


def test_a_record_of_the_first_is_seen_in_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Serving, "is_namesake", lambda self, replica, topic_id: False)
    _breaks("namesake", a_record_comes_late)


def another_topic_has_the_name_on_broker_2() -> Stage:
    """Its replica was moved away while its broker was down."""
    stage = Stage(2)
    stage.write()
    _delete(stage)
    stage.until(lambda: not stage.cluster.has_topic("t0"))
    disk = stage.cluster.disks[2]
    disk.logs[NAME] = stage.cluster.machines.log(NAME, FIRST, disk)
    stage.cluster.create_topic("t0")
    return stage


def test_another_topic_s_log_of_that_name_is_set_aside() -> None:
    stage = another_topic_has_the_name_on_broker_2()
    stage.until_well()
    assert stage.log(2).topic_id != FIRST


def test_a_log_of_this_registration_is_no_stray() -> None:
    """TP-4: another topic's LeaderAndIsr is older than this one."""
    stage = Stage(2)
    stage.write()
    broker = stage.cluster.brokers[2]
    hosted = broker.hosted[NAME]
    state = PartitionState(NAME, SECOND, PartitionImage(1, 9, (1, 2), (1, 2), 9, 1), {}, False)
    codes = broker.loop.call(broker.control.carry_out, LeaderAndIsr(1, 99, (state,)))
    assert codes == {NAME: InconsistentTopicId.code}
    assert broker.hosted[NAME] is hosted
