"""The nodes by which leaders below inter.broker.protocol.version 2.7 announce other ISRs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.cluster import layout
from barnabas.cluster.layout import StateNode
from barnabas.cluster.store import BadVersion, Check, Create, Delete, Set
from barnabas.controller.isr import Written
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import empty_tree

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STATE = StateNode(1, 3, (1, 2), 7)


def test_what_was_announced_is_there_until_it_is_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-9: each partition once; what is not understood is said, and removed like the others."""

    async def scenario() -> None:
        store = await empty_tree()
        await isr_notifications.announce(store, [T1, T0])
        await isr_notifications.announce(store, [U0, T0])
        await isr_notifications.announce(store, [])
        node = await store.read("/isr_change_notification/isr_change_0000000000")
        assert node is not None and node.owner == 0
        assert node.data == (
            b'{"version":1,"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":0}]}'
        )
        await store.commit([Create("/isr_change_notification/isr_change_x", b"{}")])
        for _ in range(2):
            said = await isr_notifications.read_announced(store)
            assert said.partitions == [T1, T0, U0]
            assert len(said.paths) == 3
        assert "isr_change_x cannot be read" in caplog.text
        await store.commit([Delete(said.paths[1])])
        await isr_notifications.remove(store, said.paths, 0)
        assert await isr_notifications.read_announced(store) == ([], [])
        await store.close()

    asyncio.run(scenario())


def test_a_deposed_controller_removes_nothing() -> None:
    """ZK-3: its successor would never hear of it."""

    async def scenario() -> None:
        store = await empty_tree()
        await isr_notifications.announce(store, [T0])
        said = await isr_notifications.read_announced(store)
        with pytest.raises(BadVersion):
            await isr_notifications.remove(store, said.paths, 7)
        assert await isr_notifications.read_announced(store) == said
        await store.close()

    asyncio.run(scenario())


def test_many_changes_go_into_nodes_of_bearable_size() -> None:
    async def scenario() -> None:
        store = await empty_tree()
        names = [TopicPartition("t" * 249, number) for number in range(5_000)]
        await isr_notifications.announce(store, names)
        said = await isr_notifications.read_announced(store)
        assert said.partitions == names
        nodes = await store.read_many(said.paths)
        assert [len(each.data or b"") < 1_000_000 for each in nodes if each] == [True] * 3
        await store.close()

    asyncio.run(scenario())


def test_states_are_read_where_there_are_any() -> None:
    async def scenario() -> None:
        store = await empty_tree()
        for path in (
            "/brokers/topics/t",
            "/brokers/topics/t/partitions",
            "/brokers/topics/t/partitions/0",
        ):
            await store.commit([Create(path)])
        path = layout.state_path(*T0)
        await store.commit([Create(path, layout.encode_state(STATE))])
        await store.commit([Set(path, layout.encode_state(STATE))])
        assert await isr_notifications.read_states(store, [T1, T0]) == {T0: Written(STATE, 1)}
        await store.close()

    asyncio.run(scenario())


def test_which_states_operations_write() -> None:
    operations = [
        Check("/controller_epoch", 1),
        Set("/brokers/topics/t", b""),
        Set(layout.state_path(*T1), b"", 3),
        Create(layout.state_path(*U0), b""),
        Set(layout.state_path(*T1), b"", 4),
        Set(layout.state_path(*T0), b"", 1),
    ]
    assert isr_notifications.states_written(operations) == [T1, T0]


@pytest.mark.foreign
def test_kafkas_own_announcement_is_understood(shared: Path) -> None:
    """RE-9: recorded with inter.broker.protocol.version 2.6."""
    lines = (shared / "fixtures/kafka-3.9/zookeeper/cluster-ibp2.6-timeline.jsonl").read_text()
    events = [json.loads(line) for line in lines.splitlines()]
    (seen,) = [
        each
        for each in events
        if each.get("op") == "seen" and each.get("path", "").startswith(layout.ISR_CHANGES + "/")
    ]
    names = layout.decode_isr_change(seen["path"], seen["data"].encode())
    assert sorted(names) == [TopicPartition("r2", number) for number in range(4)]
    assert layout.encode_isr_change(names) == seen["data"].encode()
