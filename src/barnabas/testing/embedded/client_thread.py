"""Runs a handle's own clients in a thread: an admin client and, if needed, a producer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from barnabas.client import arguments
from barnabas.client.admin.admin import Admin
from barnabas.client.loop_thread import LoopThread
from barnabas.client.producer.producer import Producer
from barnabas.errors import UnknownTopicOrPartition
from barnabas.testing.embedded.waiting import Sight, WaitTimeout, is_wait_timeout, wait_until

__tracebackhide__ = is_wait_timeout

T = TypeVar("T")

_CLIENT_ID: Final = "barnabas-testing"
_GRACE_S: Final = 1.0
_ATTEMPT_MS: Final = 500
_REQUEST_MS: Final = 1000
"""The timeout for a request to one broker. If that broker is paused, the next request goes to
another broker.
"""


class ClientThread:
    """A thread that runs clients. It is started on first use, and again on the first use after
    `close`.

    `bootstrap_servers` and `options` are called for each new client, because a cluster's addresses
    may change. `options` returns the options for all clients.
    """

    def __init__(
        self, bootstrap_servers: Callable[[], str], options: Callable[[], dict[str, Any]]
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.options = options
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._admin: Admin | None = None
        self._producer: Producer | None = None
        self._starting = asyncio.Lock()

    def run(self, work: Callable[[], Awaitable[T]], what: str, timeout_s: float) -> T:
        """Run `work` until it succeeds or fails with a non-transient error, and return its result.
        Raises WaitTimeout.

        If a topic is unknown, this fails immediately. Call `wait_for_topic` first if a topic is
        still to be created.
        """

        async def look() -> Sight[T | UnknownTopicOrPartition]:
            try:
                return Sight(await work(), True, "")
            # In Kafka, this error is retriable, but a test with a mistyped name should fail without
            # waiting.
            except UnknownTopicOrPartition as error:
                return Sight(error, True, "")

        result = self.wait(look, what, timeout_s)
        if isinstance(result, UnknownTopicOrPartition):
            raise result
        return result

    def run_once(self, work: Coroutine[Any, Any, T], what: str, timeout_s: float) -> T:
        """Run `work` only once, and return its result. Raises TimeoutError."""
        return self._open().run(_in_time(work, what, timeout_s))

    def wait(self, look: Callable[[], Awaitable[Sight[T]]], wanted: str, timeout_s: float) -> T:
        """Wait for a state as `wait_until` does, but never without a deadline."""
        arguments.duration(timeout_s, "timeout_s")
        try:
            return self._open().run(wait_until(look, wanted, timeout_s))
        except WaitTimeout as late:
            # Leave out frames of the loop's thread, which are irrelevant to the test.
            raise late.with_traceback(None) from None

    def close(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            # A forked process inherits this object but not the thread, and must not close its
            # parent's clients.
            if thread is None or not thread.is_own:
                return
            try:
                thread.run(self._close())
            finally:
                thread.stop()

    def _open(self) -> LoopThread:
        with self._lock:
            if self._thread is None or not self._thread.is_own:
                self._thread = LoopThread(_CLIENT_ID)
                # Clients belong to the loop on which they were created.
                self._admin = self._producer = None
                self._starting = asyncio.Lock()
            return self._thread

    # ---- methods that run on the loop ----

    async def admin(self) -> Admin:
        """Return the admin client. Raises NoBrokersAvailable; the next call then tries again."""
        async with self._starting:
            if self._admin is None:
                admin = Admin(
                    self.bootstrap_servers(),
                    **self.options(),
                    client_id=_CLIENT_ID,
                    # Short timeouts let a waiting caller retry, and report what went wrong.
                    default_api_timeout_ms=_ATTEMPT_MS,
                    request_timeout_ms=_REQUEST_MS,
                )
                await admin.start()
                self._admin = admin
            return self._admin

    async def producer(self) -> Producer:
        """Return the producer, which is created on first use. Raises NoBrokersAvailable, like
        `admin`.
        """
        async with self._starting:
            if self._producer is None:
                producer = Producer(
                    self.bootstrap_servers(),
                    **self.options(),
                    client_id=_CLIENT_ID,
                    request_timeout_ms=_REQUEST_MS,
                    # A topic that the test deletes must not be recreated.
                    allow_auto_create_topics=False,
                )
                await producer.start()
                self._producer = producer
            return self._producer

    async def look_at(self, topic: str) -> None:
        """Refresh the producer's metadata for a topic. If the topic was recreated with fewer
        partitions, records for partitions that no longer exist would otherwise wait.
        """
        if self._producer is not None:
            await self._producer.partitions_for(topic)

    async def _close(self) -> None:
        if self._producer is not None:
            # All records were awaited, so the only ones that may be left are those that timed out.
            try:
                async with asyncio.timeout(_GRACE_S):
                    await self._producer.close()
            except TimeoutError:
                pass
        if self._admin is not None:
            await self._admin.close()


async def _in_time(work: Coroutine[Any, Any, T], what: str, timeout_s: float) -> T:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"{what} did not finish within {timeout_s:g} s") from None
