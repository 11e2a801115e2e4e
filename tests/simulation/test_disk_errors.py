"""Log directories that fail, and disks that are full: others lead, and nothing is lost (ST-10)."""

from __future__ import annotations

import pytest

from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.errors import KafkaStorageError
from simulation.wire import Produce, Produced
from tests.simulation.stage import NAME, Stage

TOPIC_ID = b"\x01" * 16


def _restart(stage: Stage, broker_id: int) -> None:
    stage.cluster.kill(broker_id)
    stage.cluster.start(broker_id)


@pytest.mark.parametrize("failing", [1, 4])
def test_others_lead_what_was_in_a_directory_that_failed(failing: int) -> None:
    """KIP-112: the controller learns of it by a notification, or because it is its own."""
    stage = Stage(3, min_isr=2)
    assert stage.write(count=3) == [True] * 3
    if failing == stage.controller:
        # The controller hosts nothing: it moves to the leader first.
        stage.cluster.kill(stage.controller)
        stage.until(lambda: stage.cluster.controller is not None)
        controller = stage.cluster.controller
        assert controller is not None
        stage.cluster.start(stage.controller)
        failing = controller.broker_id
    before = stage.stored[0]
    stage.cluster.brokers[failing].fail_disk("it cannot be read")
    stage.until(lambda: failing not in stage.stored[1])
    assert stage.stored[0] != failing
    assert (before == failing) == (stage.stored[0] != before)
    stage.until(lambda: stage.leads(stage.stored[0]))
    assert stage.write() == [True]
    tree = stage.cluster.ensemble.tree
    stage.until(lambda: not tree.nodes[log_dir_notifications.PATH].children)
    _restart(stage, failing)
    stage.until_well()
    assert stage.values(failing) == [1, 2, 3, 4]


def test_a_broker_without_its_directory_answers_so() -> None:
    stage = Stage(2)
    stage.write()
    broker = stage.cluster.brokers[1]
    broker.fail_disk("it cannot be read")
    assert NAME not in broker.hosted
    answers = stage.append(1, Produce(NAME, TOPIC_ID, 1, -1, 0, 9))
    assert answers == [Produced(KafkaStorageError.code)]
    stage.until_led_by(2)
    assert stage.values(1) == [1], "the disk has it still, once it is repaired"


def test_there_is_no_leader_where_the_last_in_sync_has_no_disk() -> None:
    stage = Stage(2)
    stage.write(count=2)
    stage.cluster.kill(2)
    stage.until(lambda: stage.stored[1] == (1,))
    stage.cluster.brokers[1].fail_disk("it cannot be read")
    stage.until(lambda: stage.stored[0] == -1)
    stage.cluster.start(2)
    stage.wait(3000)
    assert stage.stored == (-1, (1,))
    _restart(stage, 1)
    stage.until_well()
    assert stage.values(2) == [1, 2]


def test_what_a_full_disk_refuses_is_not_acknowledged() -> None:
    stage = Stage(3, min_isr=2)
    assert stage.write() == [True]
    stage.cluster.disks[1].is_full = True
    answers = stage.append(1, Produce(NAME, TOPIC_ID, -1, -1, 0, 77))
    assert answers == [Produced(KafkaStorageError.code)]
    assert stage.cluster.disks[1].has_failed
    stage.until_led_by(2)
    assert stage.write() == [True]
    stage.cluster.disks[1].is_full = False
    _restart(stage, 1)
    stage.until_well()
    assert stage.values(1) == stage.values(3) == [1, 2]
