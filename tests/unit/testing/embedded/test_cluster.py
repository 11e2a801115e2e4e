"""What a cluster logs when it starts from its data, and when a broker fails."""

from __future__ import annotations

import logging

import pytest

from barnabas import Cluster
from barnabas.controller.topics import NewTopic


def test_a_cluster_that_starts_again_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Its brokers start one after the other, and the first one is controller of all data."""
    caplog.set_level("INFO", "barnabas")
    with Cluster(3) as cluster:
        create(cluster, "led", {0: [1, 2], 1: [2, 3], 2: [2, 3], 3: [2, 1]})
        cluster.stop()
        caplog.clear()
        cluster.start()
        warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert [each.getMessage() for each in warnings] == []
        assert "broker 2 has not registered: partitions with a new leader: 1, with none: 2" in (
            caplog.text
        )


def test_a_new_controller_warns_of_the_broker_that_it_has_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Cluster(2) as cluster:
        create(cluster, "led", {0: [1, 2]})
        cluster.faults.kill(1)
        cluster.topic("led").wait_for_leader(0, 2, timeout_s=60)
        assert "broker 1 has failed: partitions with a new leader: 1, with none: 0" in caplog.text


def create(cluster: Cluster, name: str, assignment: dict[int, list[int]]) -> None:
    """By its controller, which is the first broker; every broker knows it then."""
    controller = cluster.server(1).node.controller
    cluster.thread.run(controller.create_topic(NewTopic(name, assignment=assignment)))
    cluster.wait_for_topic(name, len(assignment), timeout_s=60)
