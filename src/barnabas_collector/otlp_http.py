"""Receives OTLP's logs over HTTP/1.1: `POST /v1/logs`, in protobuf or JSON.

    connection ─▶ h11 ─▶ body, inflated ─▶ `Receipts` ─▶ brokers
         ◀───────── 200 once they have acknowledged ◀──────┘

A sender that receives 503 sends the request again after the seconds in `Retry-After`. Since any
client may connect, everything is limited: connections, heads, bodies, the memory for all bodies,
and the time for each connection, head and body.
https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import ssl
import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas_collector.inbox import Inbox
from barnabas_collector.listen_address import ListenAddress
from barnabas_collector.otlp_messages import MALFORMED, MOST_BYTES, TOO_LARGE, Refusal, require
from barnabas_collector.otlp_receipts import BUSY, FINISH_S, Receipts
from barnabas_collector.shipment import Shipment
from barnabas_collector.tally import Tally
from barnabas_collector.tls_listening import FailedHandshakes

if TYPE_CHECKING:
    import h11

PORT: Final = 4_318
PATH: Final = b"/v1/logs"
MOST_CONNECTIONS: Final = 256
_MOST_HEAD_BYTES: Final = 16_384
_MOST_BODIES_BYTES: Final = 64 << 20  # for all connections together
_READ_BYTES: Final = 65_536
_HANDSHAKE_S: Final = 10.0
_IDLE_S: Final = 120.0
_HEAD_S: Final = 10.0
_BODY_S: Final = 30.0
_DISCARD_S: Final = 2.0
_RETRY_AFTER_S: Final = 1
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"
_GZIP: Final = 16 + zlib.MAX_WBITS

_STATUS: Final = {
    MALFORMED: HTTPStatus.BAD_REQUEST,
    TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    "unknown path": HTTPStatus.NOT_FOUND,
    "unknown method": HTTPStatus.METHOD_NOT_ALLOWED,
    "unknown type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "too slow": HTTPStatus.REQUEST_TIMEOUT,
}


class OtlpHttp:
    """Manages a listener and its connections. `on_listening` is called with the address of the
    listener.
    """

    def __init__(
        self,
        address: ListenAddress,
        shipment: Shipment,
        on_listening: Callable[[str], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises `ConfigError` if a package is not installed."""
        require("h11", "opentelemetry.proto.collector.logs.v1.logs_service_pb2")
        self.memory = _Memory(_MOST_BODIES_BYTES)
        self.is_stopping = False
        self.receipts: Receipts  # from `run` on
        self._address = address
        self._shipment = shipment
        self._on_listening = on_listening
        self._tls = tls
        self._handshakes = FailedHandshakes(f"the OTLP port {address.port}", shipment.metrics)
        if tls is not None:
            self._handshakes.watch(tls)
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self._none = asyncio.Event()  # no connection
        self._none.set()
        self._most = min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._rejected = Tally(
            "connection for OTLP was rejected: too many are open",
            "connections for OTLP were rejected: too many are open",
        )

    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Listen until `stopping` is set. Raises `ConfigError` if the address is unavailable."""
        self.receipts = Receipts(inbox, self._shipment)
        with self._address.errors("OTLP over HTTP"):
            server = await asyncio.start_server(
                self._on_connection,
                *self._address,
                limit=_READ_BYTES,
                backlog=self._most,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else _HANDSHAKE_S,
            )
        protocol = "http" if self._tls is None else "https"
        self._on_listening(f"{protocol} {self._address.shown(server.sockets[0].getsockname())}")
        try:
            await stopping.wait()
        finally:
            server.close()
            await self._finish()
            self._handshakes.log_rest()
            self._rejected.log_rest()

    async def _finish(self) -> None:
        """Let requests in progress finish, for a limited time."""
        self.is_stopping = True
        for task, connection in self._connections.items():
            if connection.is_idle:
                task.cancel()
        await self._wait_for_connections(FINISH_S)
        self.receipts.give_up()
        await self._wait_for_connections(_DISCARD_S)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _wait_for_connections(self, most_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._none.wait()

    async def _on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= self._most or self.is_stopping:
            self._rejected.add(1)
            writer.transport.abort()
            return
        self._connections[task] = connection = _Connection(self, reader, writer)
        self._none.clear()
        try:
            await connection.run()
        except asyncio.CancelledError:
            pass  # cancelled by `_finish`; otherwise, it would be reported as a failure
        finally:
            del self._connections[task]
            if not self._connections:
                self._none.set()


class _Memory:
    """Limits the total size of all bodies."""

    def __init__(self, most_bytes: int) -> None:
        self._left_bytes = most_bytes

    def take(self, size_bytes: int) -> None:
        if size_bytes > self._left_bytes:
            raise Refusal(BUSY, "other requests use all the memory for bodies")
        self._left_bytes -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        self._left_bytes += size_bytes


class _Head(NamedTuple):
    """Describes the body of a request as announced in the request head."""

    is_json: bool
    is_gzip: bool

    @classmethod
    def of(cls, request: h11.Request) -> _Head:
        """Raises `Refusal`."""
        headers = {bytes(name): bytes(value).decode("latin-1") for name, value in request.headers}
        # h11 limits only incomplete heads, but a whole head may arrive at once.
        if sum(map(len, headers)) + sum(map(len, headers.values())) > _MOST_HEAD_BYTES:
            raise Refusal(
                TOO_LARGE, f"the headers of a request may have at most {_MOST_HEAD_BYTES:,} bytes"
            )
        if bytes(request.target).partition(b"?")[0] != PATH:
            raise Refusal("unknown path", "the path for logs is /v1/logs")
        if request.method != b"POST":
            raise Refusal("unknown method", "send logs with POST")
        media_type = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if media_type not in (_PROTOBUF, _JSON):
            raise Refusal("unknown type", f"the Content-Type is neither {_PROTOBUF} nor {_JSON}")
        encoding = headers.get(b"content-encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity", ""):
            raise Refusal("unknown type", "the Content-Encoding is neither gzip nor identity")
        if int(headers.get(b"content-length", "0")) > MOST_BYTES:  # h11 has checked the digits
            raise Refusal(TOO_LARGE, f"a request may have at most {MOST_BYTES:,} bytes")
        return cls(media_type == _JSON, encoding == "gzip")


class Body:
    """Collects a body, inflating it if necessary, up to the size limit."""

    def __init__(self, *, is_gzip: bool, most_bytes: int = MOST_BYTES) -> None:
        self.content = bytearray()
        self.counted_bytes = 0  # counted in the listener's memory
        self._most_bytes = most_bytes
        self._inflating = zlib.decompressobj(_GZIP) if is_gzip else None

    def add(self, data: bytes) -> int:
        """Add received bytes, and return by how much the body has grown. Raises `Refusal`."""
        before = len(self.content)
        if self._inflating is not None:
            if self._inflating.eof:
                raise Refusal(MALFORMED, "the compressed body is followed by other data")
            try:
                data = self._inflating.decompress(data, self._most_bytes - before + 1)
            except zlib.error:
                raise Refusal(MALFORMED, "the body is not compressed with gzip") from None
            if self._inflating.unused_data:
                raise Refusal(MALFORMED, "the compressed body is followed by other data")
        self.content += data
        if len(self.content) > self._most_bytes:
            raise Refusal(TOO_LARGE, f"a request may have at most {self._most_bytes:,} bytes")
        return len(data)

    def end(self) -> bytes:
        """Return the body. Raises `Refusal` if it is incomplete."""
        if self._inflating is not None and not self._inflating.eof:
            raise Refusal(MALFORMED, "the compressed body is incomplete")
        return bytes(self.content)


class _Connection:
    def __init__(
        self, listener: OtlpHttp, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        import h11

        self.is_idle = True
        self._h11 = h11
        self._listener = listener
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD_BYTES)
        peer: Any = writer.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""

    async def run(self) -> None:
        """Respond to requests until either side closes the connection."""
        try:
            while await self._serve():
                self._http.start_next_cycle()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DISCARD_S):
                    await self._discard()
        except OSError:
            pass  # the sender has disconnected
        finally:
            self._writer.transport.abort()

    async def _serve(self) -> bool:
        """Respond to the next request, and return whether another one may follow."""
        head = _Head(is_json=False, is_gzip=False)
        try:
            if not await self._wait_for_request():
                return False
            self.is_idle = False
            request = await self._request()
            if request is None:
                return False
            self._listener.receipts.on_request()
            head = _Head.of(request)
            return await self._take(head)
        except self._h11.RemoteProtocolError as error:
            refusal = Refusal(MALFORMED, f"this is not HTTP/1.1: {error}")
        except Refusal as error:
            refusal = error
        self._listener.receipts.on_refused(refusal, self._peer)
        return await self._refuse(refusal, head)

    async def _wait_for_request(self) -> bool:
        self.is_idle = True
        if self._http.trailing_data[0]:
            return True
        try:
            async with asyncio.timeout(_IDLE_S):
                data = await self._reader.read(_READ_BYTES)
        except TimeoutError:
            return False
        self._http.receive_data(data)
        return bool(data)

    async def _request(self) -> h11.Request | None:
        try:
            async with asyncio.timeout(_HEAD_S):
                event = await self._event()
        except TimeoutError:
            raise Refusal(
                "too slow", f"the headers took longer than {_HEAD_S:g} s to arrive"
            ) from None
        return event if isinstance(event, self._h11.Request) else None

    async def _take(self, head: _Head) -> bool:
        receipts = self._listener.receipts
        receipts.check_room()
        receipt = await self._receipt(head)
        # The body has been freed, so waiting senders take little memory.
        await receipts.outcome(receipt)
        is_said = False
        try:
            is_last = await self._answer(HTTPStatus.OK, head, b"{}" if head.is_json else b"")
            is_said = not self._reader.at_eof()
        finally:
            if not is_said:
                receipts.on_unsaid(receipt)
        return not is_last

    async def _receipt(self, head: _Head) -> Any:
        body = Body(is_gzip=head.is_gzip)
        try:
            await self._read(body)
            return await self._listener.receipts.accept(
                body.end(), is_json=head.is_json, peer=self._peer
            )
        finally:
            self._listener.memory.give_back(body.counted_bytes)

    async def _read(self, body: Body) -> None:
        try:
            async with asyncio.timeout(_BODY_S):
                while isinstance(event := await self._event(), self._h11.Data):
                    added = body.add(bytes(event.data))
                    self._listener.memory.take(added)
                    body.counted_bytes += added
        except TimeoutError:
            raise Refusal(
                "too slow", f"the body took longer than {_BODY_S:g} s to arrive"
            ) from None

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is self._h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                more = self._h11.InformationalResponse(status_code=100, headers=[])
                self._write(self._http.send(more))
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event

    async def _refuse(self, refusal: Refusal, head: _Head) -> bool:
        if self._http.our_state not in (self._h11.IDLE, self._h11.SEND_RESPONSE):
            return False
        text = str(refusal)
        body = _json_status(text) if head.is_json else _protobuf_status(text)
        return not await self._answer(_STATUS[refusal.reason], head, body)

    async def _answer(self, status: HTTPStatus, head: _Head, body: bytes) -> bool:
        """Send a response, and return whether it ends the connection."""
        is_last = self._listener.is_stopping or self._http.their_state is not self._h11.DONE
        headers = [
            ("content-type", _JSON if head.is_json else _PROTOBUF),
            ("content-length", str(len(body))),
        ]
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append(("retry-after", str(_RETRY_AFTER_S)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("allow", "POST"))
        if is_last:
            headers.append(("connection", "close"))
        response = self._h11.Response(
            status_code=status, headers=headers, reason=status.phrase.encode()
        )
        for event in (response, self._h11.Data(data=body), self._h11.EndOfMessage()):
            self._write(self._http.send(event))
        async with asyncio.timeout(_DISCARD_S):
            await self._writer.drain()
        return is_last or self._http.our_state is not self._h11.DONE

    def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)

    async def _discard(self) -> None:
        """Read and discard the rest of a request, because its sender would otherwise not read the
        response.
        """
        if self._writer.can_write_eof():
            self._writer.write_eof()
        left_bytes = MOST_BYTES
        while left_bytes > 0 and (data := await self._reader.read(_READ_BYTES)):
            left_bytes -= len(data)


def _json_status(text: str) -> bytes:
    import json

    return json.dumps({"message": text}).encode()


def _protobuf_status(text: str) -> bytes:
    """Return a `google.rpc.Status`. Its second field is a message, which is limited to 127 bytes
    here.
    """
    message = text.encode()[:127]
    return b"\x12" + bytes((len(message),)) + message.decode("utf-8", "ignore").encode()
