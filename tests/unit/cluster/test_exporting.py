"""ZK-6: a tree goes into a file and comes back the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.exporting import export_tree
from barnabas.cluster.importing import import_tree
from barnabas.cluster.loading import no_log
from barnabas.cluster.store import Create, Set, Znode
from barnabas.errors import CorruptData
from barnabas.types import TopicPartition
from tests.kit.whole_tree import load_topics


def run(scenario: Callable[[EmbeddedStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = EmbeddedStore()
        await scenario(store)
        await store.close()

    asyncio.run(whole())


async def exported(store: EmbeddedStore, *, has_others: bool = False) -> dict[str, Any]:
    """The tree, as a file has it."""
    found = await export_tree(store, has_others=has_others)
    tree: dict[str, Any] = json.loads(json.dumps(found.tree))
    return tree


async def contents(store: EmbeddedStore) -> dict[str, bytes | None]:
    """The data of each persistent node."""
    return {path: node.data for path, node in store.tree.nodes.items() if not node.owner}


@pytest.mark.foreign
def test_a_tree_of_kafkas_comes_back_unchanged(shared: Path) -> None:
    """ZK-6: through the file every node, known or not, is as it was."""
    text = (shared / "fixtures/kafka-3.9/zookeeper/cluster-final-broker3-down.json").read_text()

    async def scenario(store: EmbeddedStore) -> None:
        summary = await import_tree(store, json.loads(text), no_log)
        tree = await exported(store)
        other = EmbeddedStore()
        again = await import_tree(other, tree, no_log)
        assert (again.topics, again.partitions) == (summary.topics, summary.partitions)
        assert again.new_states == again.raised_epochs == ()
        assert await contents(other) == await contents(store)
        before, now = await load_topics(store), await load_topics(other)
        assert {name: topic.topic_id for name, topic in before.items()} == {
            name: topic.topic_id for name, topic in now.items()
        }
        await other.close()

    run(scenario)


def test_ephemeral_nodes_are_marked_and_bytes_survive() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        await store.commit(
            [
                Create("/brokers"),
                Create("/brokers/ids"),
                Create("/brokers/ids/0", b"{}", ephemeral=True),
                Create("/config", b"\xff\x00"),
                Create("/zookeeper"),
                Create("/zookeeper/quota"),
            ]
        )
        tree = await exported(store)
        assert sorted(tree) == ["/", "/brokers", "/brokers/ids", "/brokers/ids/0", "/config"]
        assert tree["/brokers/ids/0"]["ephemeral"] is True
        assert tree["/config"]["base64"] == "/wA="
        other = EmbeddedStore()
        summary = await import_tree(other, tree, no_log)
        assert summary.ephemeral_nodes == 1
        node = await other.read("/config")
        assert node is not None and node.data == b"\xff\x00"
        tree["/config"]["base64"] = "?"
        with pytest.raises(CorruptData, match="/config has invalid base64"):
            await import_tree(EmbeddedStore(), tree, no_log)
        await other.close()

    run(scenario)


def test_other_programs_in_the_root_are_left_out() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        await store.commit([Create("/brokers"), Create("/hbase"), Create("/hbase/rs")])
        found = await export_tree(store, has_others=True)
        assert found.others == ("/hbase",) and sorted(found.tree) == ["/", "/brokers"]
        assert "/hbase/rs" in await exported(store)

    run(scenario)


class RestlessStore(EmbeddedStore):
    """A store whose controller epoch rises with each of the first `changes` looks at the root."""

    changes = 0

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        nodes = await super().read_many(paths)
        if "/controller_epoch" in paths and self.changes:
            self.changes -= 1
            await self.commit([Set("/controller_epoch", b"2")])
        return nodes


@pytest.mark.parametrize(("changes", "named"), [(2, None), (9, "/controller_epoch")])
def test_a_tree_that_changes_is_read_again(changes: int, named: str | None) -> None:
    """ZK-6: what is exported is of one moment, or a node that kept changing is named."""

    async def scenario() -> None:
        store = RestlessStore()
        await store.commit([Create("/controller_epoch", b"1")])
        store.changes = changes
        found = await export_tree(store, has_others=False)
        assert found.changed == named
        if named is None:
            assert found.tree["/controller_epoch"]["version"] == changes
        await store.close()

    asyncio.run(scenario())


def test_a_backup_older_than_the_log_does_not_assign_an_epoch_again() -> None:
    """ZK-6: the epoch history of the log goes on above its end."""
    state = '{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":3,"isr":[0]}'
    path = "/brokers/topics/t/partitions/0"
    tree = {
        "/brokers": {"data": None},
        "/brokers/topics": {"data": None},
        "/brokers/topics/t": {"data": '{"version":1,"partitions":{"0":[0]}}'},
        "/brokers/topics/t/partitions": {"data": None},
        path: {"data": None},
        f"{path}/state": {"data": state},
    }

    async def scenario() -> None:
        for in_log, expected, is_raised in ((2, 3, False), (3, 3, False), (6, 7, True)):
            store = EmbeddedStore()
            summary = await import_tree(store, tree, lambda _, epoch=in_log: epoch)
            topics = await load_topics(store)
            assert topics["t"].partitions[0].leader_epoch == expected
            assert summary.raised_epochs == ((TopicPartition("t", 0),) if is_raised else ())
            await store.close()

    asyncio.run(scenario())
