"""Caches encoded Metadata responses, so that equal requests share one response.

For example, when three hundred clients of a cluster with two thousand partitions start, the
partitions are described and encoded once instead of three hundred times.

    version, body of the request, listener, client --> body of the response

Invariant: a cached response is used only while the cluster image and the client's grants are the
same objects from which the response was built. A response that contains an error for a topic is
never cached, because each denial must be logged and the next request may create a missing topic.

While a response is being built, other equal requests wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.broker.network.response_queue import Encoded
from barnabas.protocol.codec import encode
from barnabas.protocol.frame import frame_response
from barnabas.protocol.message import Message
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.broker.node import Node
    from barnabas.cluster.image import ClusterImage
    from barnabas.protocol.frame import RequestHeader

_MOST_BYTES = 32 * 1024 * 1024  # of all cached bodies and keys; beyond it, the cache is cleared
_LONG_ANSWER = 2_000  # partitions; longer responses are encoded in a thread, off the loop

_AGAIN: Final = b""  # stands for a body whose client disconnected while building it

Build = Callable[[memoryview], Message | Coroutine[Any, Any, Any]]
"""Decodes the body of a request, calls the handler and returns the handler's outcome."""

Key = tuple[object, ...]


class MetadataAnswers:
    """Builds and caches the responses for the connections of one listener."""

    __slots__ = ("_building", "_grants", "_image", "_kept", "_most_bytes", "_node", "kept_bytes")

    def __init__(self, node: Node, most_bytes: int = _MOST_BYTES) -> None:
        self._node = node
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._image: ClusterImage | None = None
        self._grants: object | None = None
        self._kept: dict[Key, bytes] = {}
        self._building: dict[Key, asyncio.Future[bytes | None]] = {}

    def answer(
        self, context: Context, header: RequestHeader, build: Build
    ) -> Encoded | Coroutine[Any, Any, Encoded]:
        """Return the response if it is cached or is already being built. Otherwise, build it."""
        self._forget_old()
        key = self._key(context, bytes(header.body))
        body = self._kept.get(key)
        if body is not None:
            return _frame(context, header.correlation_id, body)
        # Even a short response is built in a later turn of the loop, so that equal requests in this
        # turn can share it.
        return self._answer_later(context, header.correlation_id, key, build)

    async def _answer_later(
        self, context: Context, correlation_id: int, key: Key, build: Build
    ) -> Encoded:
        body: bytes | None = _AGAIN
        while body == _AGAIN:
            self._forget_old()
            body = self._kept.get(key)
            # If the request that is building the response is cancelled, another request builds it.
            building = self._building.get(key)
            if body is None and building is not None and self._grants is not None:
                body = await shielded(building)
            elif body is None:
                return await self._build(context, key, correlation_id, build)
        if body is None:  # the response contained an error
            return await self._build(context, key, correlation_id, build)
        return _frame(context, correlation_id, body)

    async def _build(
        self, context: Context, key: Key, correlation_id: int, build: Build
    ) -> Encoded:
        # Read both before building the response. If one of them is replaced in the meantime, the
        # response must not be cached.
        image, grants = self._image, self._grants
        built: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._building.setdefault(key, built)
        shared: bytes | None = _AGAIN  # if the request is cancelled or fails
        try:
            outcome = build(memoryview(cast(bytes, key[1])))
            answer: Any = await outcome if isinstance(outcome, Coroutine) else outcome
            body = await _encode(answer, context.version)
            has_error = any(topic.error_code for topic in answer.topics)
            shared = None if has_error or grants is None else body
            self._forget_old()
            if shared is not None and image is self._image and grants is self._grants:
                self._keep(key, body)
            return _frame(context, correlation_id, body)
        finally:
            if self._building.get(key) is built:
                del self._building[key]
            built.set_result(shared)

    def _keep(self, key: Key, body: bytes) -> None:
        size = len(body) + len(cast(bytes, key[1]))
        # Clear the whole cache. It is not known which responses will be requested again, and the
        # common ones are soon rebuilt.
        if self.kept_bytes + size > self._most_bytes:
            self._kept.clear()
            self.kept_bytes = 0
        if size <= self._most_bytes:
            self._kept[key] = body
            self.kept_bytes += size

    def _forget_old(self) -> None:
        image, grants = self._node.image, self._node.authorizer.grants
        if image is not self._image or grants is not self._grants:
            self._image, self._grants = image, grants
            self._kept.clear()
            self.kept_bytes = 0
            self._building.clear()  # requests waiting for this response arrived before the change

    def _key(self, context: Context, request_body: bytes) -> Key:
        client = context.client
        place = (context.version, request_body, client.listener, client.local_host)
        # Without ACLs, all clients see the same topics.
        if self._node.authorizer.acls is None:
            return place
        return (*place, client.principal, client.address)


async def _encode(answer: Message, version: int) -> bytes:
    topics: Any = answer.topics  # type: ignore[attr-defined]
    if sum(len(topic.partitions) for topic in topics) <= _LONG_ANSWER:
        return _encode_joined(answer, version)
    # The thread only encodes the message, which is complete and no longer changes.
    loop = asyncio.get_running_loop()
    return await shielded(loop.run_in_executor(None, _encode_joined, answer, version))


def _encode_joined(answer: Message, version: int) -> bytes:
    return b"".join(encode(answer, version))  # type: ignore[arg-type]  # it has no slices of files


def _frame(context: Context, correlation_id: int, body: bytes) -> Encoded:
    return Encoded(frame_response(context.api, context.version, correlation_id, body))
