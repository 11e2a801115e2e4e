"""Settings of a topic that change while a broker starts, and has just read them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from barnabas.broker.server import Server
from barnabas.cluster import config_changes, layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, MetadataStore, Set, Znode
from barnabas.config import BrokerConfig
from barnabas.controller.topics import NewTopic
from tests.kit.forwarding_store import ForwardingStore
from tests.kit.waiting import until


class AlteredMeanwhile(ForwardingStore):
    """A metadata store where something happens right after a node was read among others."""

    def __init__(
        self, store: MetadataStore, path: str, happens: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(store)
        self._path = path
        self._happens = [happens]

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        nodes = await super().read_many(paths)
        if self._path in paths and self._happens:
            await self._happens.pop()()
        return nodes


def test_a_change_made_while_a_broker_starts_is_taken_up(tmp_path: Path) -> None:
    """TP-5: its controller has read the topic's settings a moment before."""

    async def scenario() -> None:
        store = EmbeddedStore()
        config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
        server = Server(config, store=store.session())
        await server.start()
        await server.node.controller.create_topic(NewTopic("t", configs={"flush.ms": "5"}))
        await server.stop()

        async def alter() -> None:
            change = config_changes.encode_change("topics/t")
            await store.commit(
                [
                    Set("/config/topics/t", layout.encode_config({"flush.ms": "7"})),
                    Create(config_changes.CHANGE_PREFIX, change, sequential=True),
                ]
            )

        path = layout.topic_config_path("t")
        server = Server(config, store=AlteredMeanwhile(store.session(), path, alter))
        await server.start()
        try:
            replica = server.node.replicas.replica_of(("t", 0))
            await until(lambda: replica.log.config.flush_ms == 7)
            assert server.node.image.topics["t"].config == {"flush.ms": "7"}
            controller = server.node.controller
            await until(lambda: controller.image.topics["t"].config == {"flush.ms": "7"})
        finally:
            await server.stop()

    asyncio.run(scenario())
