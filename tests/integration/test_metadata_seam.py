"""The metadata seam is one: the embedded store and a real ZooKeeper do the same."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.cluster.store import (
    Delete,
    MetadataError,
    MetadataStore,
    Operation,
)
from tests.kit.effort import examples
from tests.kit.metadata_commits import commits
from tests.kit.metadata_seam import MetadataSeamSuite, Run, node_of
from tests.kit.metadata_stores import EmbeddedStores, Stores, ZooKeeperStores
from tests.kit.processes.zookeeper_process import ZooKeeperProcess


@pytest.fixture(params=["embedded", "zookeeper"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario on a tree of its own."""
    if request.param == "embedded":
        return lambda scenario: asyncio.run(_run(EmbeddedStores, scenario))
    connect: str = request.getfixturevalue("root")
    return lambda scenario: asyncio.run(_run(lambda: ZooKeeperStores(connect), scenario))


async def _run(
    make: Callable[[], EmbeddedStores | ZooKeeperStores],
    scenario: Callable[[Stores], Awaitable[None]],
) -> None:
    stores = make()
    try:
        await scenario(stores)
    finally:
        await stores.close()


class TestEmbeddedAndZooKeeper(MetadataSeamSuite):
    pass


NUMBERS = itertools.count()


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(commits, min_size=1, max_size=12))
def test_both_stores_make_the_same_of_any_commits(
    zookeeper: ZooKeeperProcess, batches: list[list[Operation]]
) -> None:
    connect = f"{zookeeper.connect}/model{next(NUMBERS)}"

    async def outcome(store: MetadataStore, batch: list[Operation]) -> object:
        try:
            results = await store.commit(batch)
        except MetadataError as error:
            return type(error), error.path
        return [
            None if isinstance(operation, Delete) else result
            for operation, result in zip(batch, results, strict=True)
        ]

    async def tree(store: MetadataStore, path: str = "/") -> dict[str, object]:
        node = await node_of(store, path)
        found: dict[str, object] = {path: (node.data, node.version if path != "/" else 0)}
        for name in sorted(node.children):
            found |= await tree(store, f"{path.rstrip('/')}/{name}")
        return found

    async def both() -> None:
        all_stores = EmbeddedStores(), ZooKeeperStores(connect)
        try:
            ours, theirs = [await stores.open() for stores in all_stores]
            for batch in batches:
                assert await outcome(ours, batch) == await outcome(theirs, batch)
            assert await tree(ours) == await tree(theirs)
        finally:
            for stores in all_stores:
                await stores.close()

    asyncio.run(both())
