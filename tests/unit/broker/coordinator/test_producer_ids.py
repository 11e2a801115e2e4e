"""Producer ids while the metadata store has no answer: no client waits for long (PR-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from barnabas.broker.server import Server
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import SessionExpired, Znode
from barnabas.errors import CoordinatorLoadInProgress
from barnabas.protocol.api import INIT_PRODUCER_ID
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.kit.broker.transactional import TransactionalProducer, running, talk
from tests.kit.raw_client import PATIENCE_S, RawClient


class FarStore(EmbeddedStore):
    """Its servers are away for a while: who reads the block waits until they are back."""

    is_away = False
    is_expired = False

    def __init__(self) -> None:
        super().__init__()
        self.back = asyncio.Event()
        self.asked = 0

    async def read(self, path: str) -> Znode | None:
        if path == layout.PRODUCER_ID_BLOCK:
            self.asked += 1
            if self.is_expired:
                raise SessionExpired(path, "the session is over")
            if self.is_away:
                await self.back.wait()
        return await super().read(path)


def play(directory: Path, test: Callable[[Server, FarStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = FarStore()
        async with running(directory, store) as server:
            store.asked = 0
            await asyncio.wait_for(test(server, store), 2 * PATIENCE_S)

    asyncio.run(whole())


def ask(client: RawClient) -> Any:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    return client.call(INIT_PRODUCER_ID, 4, request)


def test_pr_6_a_store_that_is_away_is_a_reason_to_try_again(tmp_path: Path) -> None:
    """As Kafka 3.9 says it when it has no block; no block is lost, however often it was asked."""

    def in_vain(client: RawClient) -> None:
        for _ in range(2):
            answer = ask(client)
            assert answer.error_code == CoordinatorLoadInProgress.code
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    def in_time(client: RawClient) -> None:
        assert (ask(client).error_code, ask(client).producer_id) == (0, 1)

    async def test(server: Server, store: FarStore) -> None:
        store.is_away = True
        await talk(server, in_vain)
        assert store.asked == 1
        store.back.set()
        await talk(server, in_time)

    play(tmp_path, test)


def test_a_session_that_is_over_is_a_reason_to_try_again(tmp_path: Path) -> None:
    """PR-6, PR-7: also for who has a transactional id."""

    def use_up(client: RawClient) -> None:
        assert TransactionalProducer(client, "first").init() == 0
        for _ in range(999):
            assert ask(client).error_code == 0

    def in_vain(client: RawClient) -> None:
        request = InitProducerIdRequest(transactional_id="next", transaction_timeout_ms=60_000)
        answer: Any = client.call(INIT_PRODUCER_ID, 4, request)
        for code in (answer.error_code, ask(client).error_code):
            assert code == CoordinatorLoadInProgress.code

    def in_time(client: RawClient) -> None:
        assert TransactionalProducer(client, "next").init() == 0

    async def test(server: Server, store: FarStore) -> None:
        await talk(server, use_up)
        store.is_expired = True
        await talk(server, in_vain)
        store.is_expired = False
        await talk(server, in_time)

    play(tmp_path, test)


def test_all_who_wait_share_one_block(tmp_path: Path) -> None:
    async def test(server: Server, store: FarStore) -> None:
        ids = server.node.producer_ids
        found = await asyncio.gather(*(ids.next_from_new_block() for _ in range(1500)))
        assert sorted(found) == list(range(1500))
        assert store.asked == 2

    play(tmp_path, test)
