"""ZK-7: offsets of consumers from before 0.9 are found, whatever else lies beside them."""

from __future__ import annotations

import asyncio

from barnabas.cluster.consumer_offsets import ConsumerOffsets, load_consumer_offsets
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create
from barnabas.types import TopicPartition


def _load(nodes: dict[str, bytes | None]) -> list[ConsumerOffsets]:
    async def load() -> list[ConsumerOffsets]:
        store = EmbeddedStore()
        paths = {path[:end] for path in nodes for end in range(len(path)) if path[end] == "/"}
        for path in sorted({*paths, *nodes} - {""}):
            await store.commit([Create(path, nodes.get(path))])
        return await load_consumer_offsets(store)

    return asyncio.run(load())


def test_offsets_of_several_groups() -> None:
    """ZK-7"""
    assert _load(
        {
            "/consumers/orders/offsets/t/10": b"7",
            "/consumers/orders/offsets/t/2": b" 9223372036854775807\n",
            "/consumers/orders/offsets/a.b_c-d/0": b"0",
            "/consumers/orders/owners/t/0": b"orders_host-1",
            "/consumers/orders/ids/orders_host-1": b"{}",
            "/consumers/orders/ids/orders_host-2": b"{}",
            "/consumers/live/offsets/t/0": b"5",
        }
    ) == [
        ConsumerOffsets("live", {TopicPartition("t", 0): 5}, 0),
        ConsumerOffsets(
            "orders",
            {
                TopicPartition("a.b_c-d", 0): 0,
                TopicPartition("t", 2): 2**63 - 1,
                TopicPartition("t", 10): 7,
            },
            2,
        ),
    ]


def test_groups_without_offsets_are_none() -> None:
    assert _load({}) == []
    assert _load({"/consumers": None}) == []
    assert _load({"/consumers/idle/ids": None, "/consumers/new/offsets/t": None}) == []


def test_what_is_no_offset_is_named() -> None:
    """ZK-7: nothing is guessed, and nothing stops the others."""
    top = "/consumers/g/offsets/t"
    bad = {
        f"{top}/{n}": data for n, data in enumerate([b"", None, b"-1", b"1.0", b"9" * 20, b"\xff"])
    }
    (found,) = _load({**bad, f"{top}/x": b"1", f"{top}/4294967296": b"1", f"{top}/77": b"3"})
    assert found.offsets == {TopicPartition("t", 77): 3}
    assert sorted(found.unreadable) == sorted([*bad, f"{top}/x", f"{top}/4294967296"])
