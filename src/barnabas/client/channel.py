"""Manages one connection to a broker: version handshake, correlation, pipelining and timeouts.

Requests are sent in the order of the `send` calls, and the protocol guarantees that responses
arrive in the same order. If a request is not answered in time, the connection is closed, because
the broker may be stuck and a late response could be mistaken for the response to a later request.
All pending requests then fail with "outcome unknown".
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas._version import __version__
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionLost, CorruptAnswer, NoAnswer
from barnabas.clock import Clock, Random, SystemClock, SystemRandom
from barnabas.errors import BarnabasError, CorruptData, UnsupportedVersion
from barnabas.net.connection import Connection
from barnabas.net.memory import MemoryPool
from barnabas.protocol.api import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import decode_response, encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.shielded import again
from barnabas.types import Part

if TYPE_CHECKING:
    from barnabas.client.security.tls import ClientTls

_HANDSHAKE_VERSION = 3
_MAX_RESPONSE_BYTES = 1 << 30
_CORRELATION_LIMIT = 2**31
_NEXT_ADDRESS_S = 2.0  # the time limit for each address of a host but the last

Dial = Callable[[Callable[[], Connection], str, int, "ClientTls | None"], Awaitable[Connection]]
"""Opens a connection, given a factory for the Connection, a host, a port and any TLS context."""


class Seams(NamedTuple):
    """A client's access to the clock, to entropy and to the network. The simulator replaces it."""

    clock: Clock
    random: Random
    dial: Dial


async def dial_tcp(
    make: Callable[[], Connection], host: str, port: int, tls: ClientTls | None = None
) -> Connection:
    """Connect over TCP, with a TLS handshake if `tls` is given. Raises OSError or ConfigError.

    Each address of the host gets its own time limit, so that an unresponsive address does not use
    up the time for the other addresses (KIP-302).
    """
    addresses = await _addresses(host, port)
    failures: dict[str, OSError] = {}
    for place, address in enumerate(addresses):
        # The last address may use all of the remaining time, which the caller limits.
        is_last = place == len(addresses) - 1
        try:
            async with asyncio.timeout(None if is_last else _NEXT_ADDRESS_S):
                return await _dial_address(make, (host, address), port, tls)
        except TimeoutError:
            failures[address] = OSError(
                errno.ETIMEDOUT, f"no response within {_NEXT_ADDRESS_S:g} s"
            )
        except OSError as error:
            failures[address] = error
    # Report one line if all addresses failed in the same way, such as `localhost` on IPv4 and IPv6.
    reasons = {address: _reason(error) for address, error in failures.items()}
    if len(set(reasons.values())) == 1:
        raise failures[addresses[-1]]
    each = ", ".join(f"{address}: {reason}" for address, reason in reasons.items())
    raise OSError(errno.EHOSTUNREACH, each)


async def _addresses(host: str, port: int) -> list[str]:
    """Resolve a host to its addresses, in the order in which they are tried."""
    if ":" in host or host.replace(".", "").isdecimal():
        return [host]  # an IPv6 or IPv4 address
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except RuntimeError:  # at interpreter exit, asyncio cannot start a thread for the lookup
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


async def _dial_address(
    make: Callable[[], Connection], at: tuple[str, str], port: int, tls: ClientTls | None
) -> Connection:
    """Connect to one address. `at` contains the host name (for the certificate) and the address."""
    host, address = at
    if tls is not None:
        from barnabas.client.security.tls import dial_tls

        return await dial_tls(make, address, port, tls, server_name=host)
    _, connection = await asyncio.get_running_loop().create_connection(make, address, port)
    return connection


def system_seams() -> Seams:
    return Seams(SystemClock(), SystemRandom(), dial_tcp)


class BrokerAddress(NamedTuple):
    """A broker's id, host and port. The servers in `bootstrap.servers` have negative ids."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def title(self) -> str:
        """The address and, if it is known, the broker's id, for messages."""
        return f"{self} (broker {self.node_id})" if self.node_id >= 0 else str(self)


class _Pending(NamedTuple):
    api: Api
    version: int
    answer: asyncio.Future[Message]
    deadline_ms: int


class Channel:
    """A connection to a broker, with its pending requests."""

    def __init__(
        self,
        node: BrokerAddress,
        config: ClientConfig,
        seams: Seams,
        memory: MemoryPool | None = None,
    ) -> None:
        """Create a closed channel.

        `memory` is the pool from which receive buffers are taken; by default, the channel has a
        pool of its own.
        """
        self.node = node
        self._config = config
        self._clock = seams.clock
        self._random = seams.random
        self._dial = seams.dial
        self._memory = memory
        self._connection: Connection | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._pending: dict[int, _Pending] = {}  # by correlation id, oldest first
        self._next_correlation = 0
        self._first_correlation: int | None = None  # for the first request after the handshake
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._error: BarnabasError | None = None
        # shortly before the session ends; None: it never ends
        self._log_in_at_ms: int | None = None
        self._held: list[list[Part]] | None = None  # requests that wait for reauthentication
        self._again: asyncio.Task[None] | None = None

    # ---- lifecycle ----

    async def open(self) -> None:
        """Connect, negotiate API versions with the broker, and authenticate.

        Raises ConnectionLost, NoAnswer or an error of `security.login`.
        """
        setup_ms = self._config.socket_connection_setup_timeout_ms
        tls = self._tls()
        try:
            async with asyncio.timeout(setup_ms / 1000):
                self._connection = await self._dial(
                    self._make_connection, self.node.host, self.node.port, tls
                )
        except TimeoutError:
            raise ConnectionLost(f"{self.node.title}: no connection within {setup_ms} ms") from None
        except (OSError, UnicodeError) as error:  # UnicodeError: the host name is invalid
            raise ConnectionLost(f"{self.node.title}: {_reason(error)}") from error
        try:
            await self._shake_hands()
            # Authentication follows ApiVersions, which a broker answers before authentication
            # (KIP-152).
            if self._config.security.protocol.uses_sasl:
                await self._log_in()
        except BaseException:
            self.close()
            raise

    def _tls(self) -> ClientTls | None:
        """Return the TLS context, or None without TLS. Raises ConfigError if it is unusable."""
        security = self._config.security
        if not security.protocol.uses_tls:
            return None
        from barnabas.client.security.tls import client_tls  # imported only if TLS is used

        return client_tls(security.tls_settings())

    @property
    def is_open(self) -> bool:
        """Whether the handshake is complete and the connection has not been lost since."""
        return self._error is None and bool(self._versions)

    @property
    def in_flight_count(self) -> int:
        return len(self._pending)

    def close(self) -> None:
        self._end(ConnectionLost(f"{self.node}: the client closed the connection"))

    # ---- requests ----

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """The lowest and highest version of each API that the broker supports, by API key."""
        return self._versions

    def version(self, api: Api, at_most: int | None = None) -> int:
        """Return the highest version that both sides support. Raises UnsupportedVersion."""
        lowest, highest = self._versions.get(api.key, (0, -1))
        chosen = min(highest, api.max_version if at_most is None else min(at_most, api.max_version))
        if chosen < max(lowest, api.min_version):
            raise UnsupportedVersion(
                f"{self.node} supports {api.name} versions {lowest} to {highest}, but this client "
                f"supports {api.min_version} to {api.max_version}"
            )
        return chosen

    def send(
        self, api: Api, message: Message, version: int, *, timeout_ms: int | None = None
    ) -> asyncio.Future[Message]:
        """Send a request; its future fails with ConnectionLost, NoAnswer or CorruptData."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            answer.set_exception(again(self._error))
            return answer
        wait_ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        now_ms = self._clock.monotonic_ms()
        # Check at the next request, not on a timer, because an idle connection needs no new session
        # (KIP-368).
        if self._log_in_at_ms is not None and now_ms >= self._log_in_at_ms:
            self._begin_again()
        pending = _Pending(api, version, answer, now_ms + wait_ms)
        self._pending[self._write(api, message, version)] = pending
        # All requests share one timer. It is reset when it fires, and when a request has an earlier
        # deadline.
        if self._timer is None or pending.deadline_ms < self._timer_at_ms:
            self._watch(pending.deadline_ms)
        return answer

    def send_unanswered(self, api: Api, message: Message, version: int) -> None:
        """Send a request that gets no response (Produce with acks=0)."""
        if self._error is not None:
            raise again(self._error)
        if self._log_in_at_ms is not None and self._clock.monotonic_ms() >= self._log_in_at_ms:
            self._begin_again()
        self._write(api, message, version)

    def _write(self, api: Api, message: Message, version: int) -> int:
        assert self._connection is not None
        correlation_id = self._next_correlation
        self._next_correlation = (correlation_id + 1) % _CORRELATION_LIMIT
        parts = encode_request(api, version, correlation_id, self._config.client_id, message)
        # While a client authenticates, the broker rejects all other requests on the connection.
        if self._held is None or api is SASL_HANDSHAKE or api is SASL_AUTHENTICATE:
            self._connection.write(parts)
        else:
            self._held.append(parts)
        return correlation_id

    # ---- handshake ----

    async def _shake_hands(self) -> None:
        """Send ApiVersions; if the broker rejects the version, retry with a lower one (KIP-511)."""
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        version = _HANDSHAKE_VERSION
        while True:
            answer = await self.send(API_VERSIONS, request, version)
            assert isinstance(answer, ApiVersionsResponse)
            offered = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
            if answer.error_code != UnsupportedVersion.code:
                self._versions = offered
                self._first_correlation = self._next_correlation
                return
            # The rejection lists the broker's versions (KIP-511). If the list does not help, try
            # the next lower version.
            lower = min(offered.get(API_VERSIONS.key, (0, 0))[1], version - 1)
            if version == 0:
                raise UnsupportedVersion(f"{self.node} does not answer ApiVersions at any version")
            version = max(lower, 0)
            request = ApiVersionsRequest()

    # ---- authentication ----

    async def _log_in(self) -> None:
        # This is not imported at the top, because clients without SASL do not need it.
        from barnabas.client.security.login import log_in

        version = self.version(SASL_AUTHENTICATE)
        lifetime_ms = await log_in(self.node, self._config.security, version, self.send)
        if lifetime_ms:
            # Reauthenticate shortly before the session ends, as Kafka's clients do, because clocks
            # and network delays differ.
            early_ms = lifetime_ms * (85 + self._random.below(11)) // 100
            self._log_in_at_ms = self._clock.monotonic_ms() + early_ms

    def _begin_again(self) -> None:
        """Reauthenticate, and hold back other requests until this is done (KIP-368)."""
        self._log_in_at_ms = None
        self._held = []
        self._again = asyncio.get_running_loop().create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        try:
            await self._log_in()
        except BarnabasError as error:
            self._end(error)
            return
        except Exception as error:
            self._end(ConnectionLost(f"{self.node}: authentication failed: {error!r}"))
            raise
        held, self._held = self._held or [], None
        assert self._connection is not None
        for parts in held:
            self._connection.write(parts)

    # ---- handling responses ----

    def _make_connection(self) -> Connection:
        return Connection(self, max_frame_bytes=_MAX_RESPONSE_BYTES, memory=self._memory)

    def connection_opened(self, connection: Connection) -> None:
        """Do nothing: `open` awaits the connection."""

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        """Complete the request that this response answers (called by `net.connection.Reader`)."""
        correlation_id = int.from_bytes(frame[:4], "big")
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            self._end(
                CorruptAnswer(
                    f"{self.node} responded to request {correlation_id}, which was never sent"
                )
            )
            return
        try:
            # The message's byte fields are views of the frame. They stay valid, because a
            # connection never writes to a frame that it has handed over.
            _, message = decode_response(pending.api, _answer_version(pending, frame), frame)
        except CorruptData as cause:
            error = CorruptAnswer(f"{self.node}, answering {pending.api.name}: {cause}")
            if not pending.answer.done():
                pending.answer.set_exception(error)
            self._end(error)
            return
        if not pending.answer.done():
            pending.answer.set_result(message)

    def wake_ended(self, connection: Connection) -> None:
        """Do nothing: each response has already been delivered."""

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        """Fail the pending requests, because the broker or the network closed the connection."""
        reason = _reason(error) if error is not None else "the broker closed the connection"
        if error is None:
            reason += self._other_protocol()
        self._end(ConnectionLost(f"{self.node.title}: {reason}"))

    def _other_protocol(self) -> str:
        """Suggest the security protocol that the broker's port may be using instead."""
        ours = self._config.security.protocol
        if not self._versions:
            if ours.uses_tls:
                return ""
            # A TLS listener treats a plaintext request as a failed handshake and closes the
            # connection.
            secured = "SASL_SSL" if ours.uses_sasl else "SSL"
            return (
                f" without a response: if it uses TLS on this port, set security.protocol={secured}"
            )
        # Before authentication, a broker answers only ApiVersions.
        if ours.uses_sasl or next(iter(self._pending), None) != self._first_correlation:
            return ""
        wanted = "SASL_SSL" if ours.uses_tls else "SASL_PLAINTEXT"
        return (
            " at the first request: if it requires SASL authentication on this port, set "
            f"security.protocol={wanted}, sasl.mechanism and sasl.jaas.config"
        )

    def _end(self, error: BarnabasError) -> None:
        """Fail the pending requests and close the channel. The first error is kept."""
        if self._error is None:
            self._error = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, {}
        for request in pending.values():
            if not request.answer.done():
                request.answer.set_exception(again(error))
        # The task that authenticates may be the one that ends the channel, and must not cancel
        # itself.
        if self._again is not None and self._again is not asyncio.current_task():
            self._again.cancel()
        if self._connection is not None and not self._connection.is_closing:
            self._connection.abort()

    # ---- timeouts ----

    def _watch(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_ms = max(deadline_ms - self._clock.monotonic_ms(), 1)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(wait_ms / 1000, self._check_deadlines)
        self._timer_at_ms = deadline_ms

    def _check_deadlines(self) -> None:
        self._timer = None
        if not self._pending:
            return
        now_ms = self._clock.monotonic_ms()
        # The request that timed out need not be the oldest, because a request with a short timeout
        # may follow a join that waits for minutes.
        first = min(self._pending.values(), key=lambda pending: pending.deadline_ms)
        if first.deadline_ms <= now_ms:
            self._end(NoAnswer(f"{self.node.title} did not answer {first.api.name} in time"))
        else:
            self._watch(first.deadline_ms)


def _answer_version(pending: _Pending, frame: memoryview) -> int:
    """Return the version in which a response is encoded, which is usually the request's version.

    A broker that does not support the version of our ApiVersions request answers in version 0.
    Error 35 is then the first field after the correlation id (KIP-511).
    """
    refused = int.from_bytes(frame[4:6], "big") == UnsupportedVersion.code
    return 0 if pending.api is API_VERSIONS and refused else pending.version


def _reason(error: Exception) -> str:
    """Return the operating system's error message, or the error number if there is no message."""
    if isinstance(error, OSError) and error.strerror:
        # The text of a failed connect depends on the event loop; asyncio's omits the system's
        # reason.
        if error.errno is not None and error.strerror.startswith("Connect call failed"):
            return os.strerror(error.errno).lower()
        return error.strerror.lower()
    return str(error) or type(error).__name__
