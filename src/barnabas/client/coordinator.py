"""Finds the coordinators of groups and transactional ids, and finds them again after they move.

Requests to a coordinator use a separate connection. Responses arrive in the order of the requests,
so on the data connection a fetch that waits for records would delay every heartbeat sent after it.
A join waits for the other members, so a finder created with `aside` uses a third connection, and
the second connection remains free for heartbeats and commits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, TypeVar

from barnabas.client.channel import BrokerAddress, Channel
from barnabas.client.cluster import Cluster, exchange
from barnabas.client.errors import Unreachable, broker_error, check, reason
from barnabas.client.retry_log import MOMENT_MS, RetryLog
from barnabas.errors import (
    BarnabasError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    error_for_code,
)
from barnabas.protocol.api import FIND_COORDINATOR, Api
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_log = logging.getLogger(__name__)

GROUP: Final = 0
TRANSACTION: Final = 1
"""The key types (`FindCoordinatorRequest.key_type`)."""

_SUBJECTS: Final = ("group", "transactional id")
_ELSEWHERE = (NotCoordinator.code, CoordinatorNotAvailable.code)
_NOT_NOW = (*_ELSEWHERE, CoordinatorLoadInProgress.code)
_MANY_FROM = 4  # the first version with several keys (KIP-699)
_OWN_CONNECTIONS = 1 << 30  # added to a broker's id for a separate connection in the pool
_ASIDE_CONNECTIONS = _OWN_CONNECTIONS + (1 << 29)

M = TypeVar("M", bound=Message)


class CoordinatorFinder:
    """Finds and caches the coordinators of groups or of transactional ids."""

    def __init__(self, cluster: Cluster, key_type: int, *, aside: bool = False) -> None:
        self._cluster = cluster
        self._connections = _ASIDE_CONNECTIONS if aside else _OWN_CONNECTIONS
        self._key_type = key_type
        self._nodes: dict[str, BrokerAddress] = {}
        self._retries = RetryLog(MOMENT_MS)

    async def nodes(self, keys: Iterable[str]) -> dict[str, BrokerAddress]:
        """Return the coordinator node of each key. Raises the first KafkaError, or Unreachable."""
        wanted = list(keys)
        unknown = [key for key in wanted if key not in self._nodes]
        if unknown:
            channel = await self._cluster.metadata.any_channel()
            # One request covers all keys (KIP-699); older brokers need one per key.
            if channel.version(FIND_COORDINATOR) >= _MANY_FROM:
                request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=unknown)
                answer = await exchange(channel, FIND_COORDINATOR, request, FindCoordinatorResponse)
                for each in answer.coordinators:
                    self._found(each.key, each)
            else:
                for key in unknown:
                    request = FindCoordinatorRequest(key_type=self._key_type, key=key)
                    self._found(
                        key,
                        await exchange(channel, FIND_COORDINATOR, request, FindCoordinatorResponse),
                    )
        return {key: self._nodes[key] for key in wanted}

    async def channel(self, key: str) -> Channel:
        """Return a connection to the coordinator of `key`."""
        try:
            node = (await self.nodes([key]))[key]
            return await self._cluster.pool.channel(node)
        except Unreachable as error:
            self._lost(key, error)
            raise

    async def call(
        self, key: str, api: Api, request: Message, answer: type[M], timeout_ms: int | None = None
    ) -> M:
        """Send a request to the coordinator of `key`. Raises Unreachable or an error of `nodes`.

        `timeout_ms` replaces `request.timeout.ms` if the response may take longer.
        """
        channel = await self.channel(key)
        try:
            response = await channel.send(api, request, channel.version(api), timeout_ms=timeout_ms)
        except Unreachable as error:
            self._lost(key, error)
            raise
        assert isinstance(response, answer)
        return response

    def check(self, key: str, code: int, subject: str = "") -> None:
        """Raise the error in the response. If the coordinator has moved, forget it first."""
        # These errors mean that another broker, or none, has the key's partition. A broker that is
        # still loading the partition is the right one.
        if code in _ELSEWHERE:
            self.forget(key)
        if code in _NOT_NOW:
            kind = error_for_code(code)
            self._warn(key, kind, reason(kind))
        else:
            self._retries.over(key)
        check(code, subject or self._subject(key))

    async def broker(self, key: str) -> BrokerAddress:
        """Return the coordinator of `key` with its real broker id."""
        node = (await self.nodes([key]))[key]
        return node._replace(node_id=node.node_id - self._connections)

    def hang_up(self, key: str) -> None:
        """Close the connection, because a broker answers this request before it reads another."""
        node = self._nodes.get(key)
        channel = None if node is None else self._cluster.pool.ready_channel(node)
        if channel is not None:
            channel.close()

    def forget(self, key: str) -> None:
        self._nodes.pop(key, None)

    def _found(self, key: str, at: Coordinator | FindCoordinatorResponse) -> None:
        if at.error_code:
            message = at.error_message or None
            error = broker_error(at.error_code, f"coordinator of {self._subject(key)}", message)
            if error.retriable:
                why = f"{error.name}: {message}" if message else reason(error)
                self._warn(key, type(error), why)
            raise error
        # A separate id yields a separate connection in the pool; see the module's docstring.
        self._nodes[key] = BrokerAddress(self._connections + at.node_id, at.host, at.port)

    def _lost(self, key: str, error: Unreachable) -> None:
        self.forget(key)
        self._warn(key, type(error), str(error))

    def _warn(self, key: str, kind: type[BarnabasError], why: str) -> None:
        """Log why callers have to wait. They retry until a coordinator is found."""
        if self._retries.is_news(key, kind, self._cluster.seams.clock.monotonic_ms()):
            subject = self._subject(key)
            _log.warning("the coordinator of %s is not available, retrying: %s", subject, why)

    def _subject(self, key: str) -> str:
        return f"{_SUBJECTS[self._key_type]} {key!r}"
