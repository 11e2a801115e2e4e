"""Connects any kind of client to a cluster, and finds the broker for each request.

Nothing here guarantees that a request is executed only once. The caller decides which requests may
be repeated, and passes a complete exchange to `persist`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from barnabas.client.channel import BrokerAddress, Channel, Seams
from barnabas.client.config import ClientConfig, parse_servers
from barnabas.client.errors import Unreachable
from barnabas.client.metadata import Metadata
from barnabas.client.pool import Pool, backoff_ms
from barnabas.client.tasks import Tasks
from barnabas.errors import KafkaError
from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class Cluster:
    """Holds the connections and the metadata of a client."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], config: ClientConfig, seams: Seams
    ) -> None:
        self.config = config
        self.seams = seams
        self.pool = Pool(config, seams)
        self.tasks = Tasks(config.client_id)
        self.servers = parse_servers(bootstrap_servers)
        self.metadata = Metadata(self.servers, self.pool, config, seams, self.tasks)

    async def start(self) -> None:
        """Connect and discover the brokers.

        Raises NoBrokersAvailable once every server has failed.
        """
        self.metadata.take_loop()
        try:
            await self.metadata.start()
        except BaseException:
            await self.pool.close()
            raise

    async def close(self) -> None:
        await self.metadata.close()
        await self.pool.close()

    async def call(
        self,
        node: BrokerAddress,
        api: Api,
        request: Message,
        answer: type[M],
        at_most: int | None = None,
    ) -> M:
        """Send a request in the highest version that both sides support (up to `at_most`)."""
        channel = await self.pool.channel(node)
        return await exchange(channel, api, request, answer, at_most)

    async def call_any(
        self, api: Api, request: Message, answer: type[M], at_most: int | None = None
    ) -> M:
        """Send a request to any available broker."""
        channel = await self.metadata.any_channel()
        return await exchange(channel, api, request, answer, at_most)

    async def call_controller(
        self, api: Api, request: Message, answer: type[M], at_most: int | None = None
    ) -> M:
        """Send a request to the controller or, if unknown, to any broker, which will reject it."""
        view = self.metadata.view
        node = view.nodes.get(view.controller_id)
        if node is None:
            return await self.call_any(api, request, answer, at_most)
        return await self.call(node, api, request, answer, at_most)

    async def persist(self, attempt: Callable[[], Awaitable[T]], timeout_ms: int) -> T:
        """Retry transient errors for `timeout_ms`, with fresh metadata each time."""
        self.metadata.check_loop()
        clock = self.seams.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        failures = 0
        while True:
            try:
                return await attempt()
            except (Unreachable, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                # Start no attempt after the deadline, because the last error says more than a
                # timeout would.
                failures += 1
                pause_ms = backoff_ms(
                    failures,
                    self.config.retry_backoff_ms,
                    self.config.retry_backoff_max_ms,
                    self.seams.random,
                )
                if clock.monotonic_ms() + pause_ms >= deadline_ms:
                    raise
            await asyncio.sleep(pause_ms / 1000)
            # The leader or the controller may have changed.
            self.metadata.request_refresh()


async def exchange(
    channel: Channel, api: Api, request: Message, answer: type[M], at_most: int | None = None
) -> M:
    """Send a request on a channel and return the response as an instance of `answer`."""
    assert api.response is answer, f"{api.name} is not answered by {answer.__name__}"
    return cast(M, await channel.send(api, request, channel.version(api, at_most)))
