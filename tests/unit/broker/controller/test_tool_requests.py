"""RE-13: requests that tools leave in nodes are carried out, as by the controller of Kafka."""

from __future__ import annotations

import logging

import pytest

from barnabas.cluster.store import Create
from barnabas.controller.topics import NewTopic
from barnabas.types import TopicPartition
from tests.kit.broker.controller_host import Host, run
from tests.kit.waiting import until

ELECTION, MOVES = "/admin/preferred_replica_election", "/admin/reassign_partitions"


def test_an_election_is_held_and_its_node_removed(caplog: pytest.LogCaptureFixture) -> None:
    """Of a partition that is led as preferred, and of one that does not exist."""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t"))
        for _ in range(2):  # the watch is set again
            data = (
                b'{"version":1,"partitions":[{"topic":"t","partition":0},'
                b'{"topic":"none","partition":3}]}'
            )
            await host.store.commit([Create(ELECTION, data)])
            await until(lambda: ELECTION not in host.paths())

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert caplog.text.count("cannot elect the preferred leader of none-3") == 2
    assert "t-0" not in caplog.text


def test_a_move_stays_in_its_node_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """What is there already, or cannot be moved, leaves the node at once."""

    async def scenario(host: Host) -> None:
        await host.runner.create_topic(NewTopic("t"))
        name = TopicPartition("t", 0)
        entry = b'{"topic":"t","partition":0,"replicas":[%d]}'
        await host.store.commit([Create(MOVES, b'{"version":1,"partitions":[%s]}' % (entry % 0))])
        await until(lambda: MOVES not in host.paths())
        assert caplog.text == ""
        wrong = b'{"version":1,"partitions":[%s,{"topic":"u","partition":0,"replicas":[0]}]}'
        await host.store.commit([Create(MOVES, wrong % (entry % 7))])
        await until(lambda: MOVES not in host.paths())
        assert host.image.topics["t"].partitions[0].replicas == (0,)
        assert f"{MOVES}: cannot reassign {name}" in caplog.text
        assert f"{MOVES}: cannot reassign u-0" in caplog.text

    with caplog.at_level(logging.WARNING):
        run(scenario)


@pytest.mark.parametrize("path", [ELECTION, MOVES])
@pytest.mark.parametrize("data", [b"", b"[]", b'{"partitions":[7]}', b"\xff"])
def test_what_is_not_understood_is_logged_and_removed(
    path: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-4: it would be in the way of all later ones."""

    async def scenario(host: Host) -> None:
        await host.store.commit([Create(path, data)])
        await until(lambda: path not in host.paths())

    run(scenario)
    assert f"removing malformed {path}" in caplog.text
