"""GC-2, CO-3, CO-4: one group of four clients, none of them ours, through everything that happens.

Different assignors, one in common; joins, an orderly leave, a kill -9, a static member that comes
back, a broker that is restarted. Every record is read, and no partition has two owners.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from barnabas.client.admin.group_admin import GroupDescription
from tests.kit.clients.mixed_group import OPTIONS, staged
from tests.kit.processes.broker_process import broker_process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_group_of_four_clients_goes_through_everything(tmp_path: Path) -> None:
    with (
        broker_process(tmp_path, *OPTIONS) as broker,
        staged(broker.bootstrap_servers, tmp_path) as stage,
    ):
        stage.member("confluent")
        stage.settles("confluent")
        stage.member("kafka-python")
        leaving = stage.member("aiokafka")
        java = stage.java_member()
        group = stage.settles("confluent", "kafka-python", "aiokafka", "java")
        assert group.assignor == "range", "the only one that all four have"
        stage.progresses()

        leaving.leave()
        stage.settles("confluent", "kafka-python", "java")
        java.kill()  # it does not leave; its session has to end
        stage.settles("confluent", "kafka-python")
        stage.progresses()

        before = stage.member("aiokafka", "static-1")
        group = stage.settles("confluent", "kafka-python", "aiokafka")
        generation = _generation(group)
        before.kill()
        stage.member("aiokafka", "static-1")
        time.sleep(1)
        group = stage.settles("confluent", "kafka-python", "aiokafka")
        assert _generation(group) == generation, "a static member that returns disturbs no other"
        stage.progresses()

        broker.stop()
        broker.start()
        stage.settles("confluent", "kafka-python", "aiokafka")
        stage.progresses()
        broker.kill()
        broker.start()
        stage.settles("confluent", "kafka-python", "aiokafka")
        sent, read = stage.end()
    print(f"{sent} records read by a group of four clients, {read - sent} of them again")


def _generation(group: GroupDescription) -> int:
    return max((event.generation for event in group.events), default=0)
