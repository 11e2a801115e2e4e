"""Receives OTLP logs over gRPC: `opentelemetry.proto.collector.logs.v1.LogsService/Export`.

The handler reads each message itself, so that a call waits at its sender until there is room. It
also inflates the message, with a limit on the size, because gRPC would inflate even a small message
to any size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from barnabas.errors import ConfigError
from barnabas_collector.inbox import Inbox
from barnabas_collector.listen_address import ListenAddress
from barnabas_collector.otlp_http import Body
from barnabas_collector.otlp_messages import MALFORMED, MOST_BYTES, TOO_LARGE, Refusal, require
from barnabas_collector.otlp_receipts import BUSY, FINISH_S, Receipt, Receipts
from barnabas_collector.shipment import Shipment
from barnabas_collector.tls_listening import TlsFiles, tls_context

PORT: Final = 4_317
_SERVICE: Final = "opentelemetry.proto.collector.logs.v1.LogsService"
_METHOD: Final = "Export"
_MOST_CONNECTIONS: Final = 256
_MOST_CALLS: Final = 512
_MOST_CALLS_PER_CONNECTION: Final = 64
_MOST_READING: Final = 8  # messages in memory at the same time
_READING_S: Final = 10.0
_IDENTITY_AND_GZIP: Final = 0b101
_GZIP: Final = b"\x1f\x8b"  # no message begins with this, which would be the end of a group
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_metadata_size", 16_384),
    ("grpc.max_concurrent_streams", _MOST_CALLS_PER_CONNECTION),
    ("grpc.max_allowed_incoming_connections", _MOST_CONNECTIONS),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_AND_GZIP),
    ("grpc.so_reuseport", 0),  # otherwise, two collectors could share a port unnoticed
)


class OtlpGrpc:
    """Runs a listener. `on_listening` is called with the address of the listener."""

    def __init__(
        self,
        address: ListenAddress,
        shipment: Shipment,
        on_listening: Callable[[str], None],
        tls: TlsFiles | None = None,
    ) -> None:
        """Raises `ConfigError` if a package is not installed or a file in `tls` cannot be used."""
        require("grpc.aio", "opentelemetry.proto.collector.logs.v1.logs_service_pb2")
        if tls is not None:
            tls_context(tls, "OTLP")  # gRPC itself would not report the cause
        self._address = address
        self._shipment = shipment
        self._on_listening = on_listening
        self._tls = tls
        self._calls = 0
        self._reading = asyncio.Semaphore(_MOST_READING)
        self._receipts: Receipts  # from `run` on

    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Listen until `stopping` is set. Raises `ConfigError` if the address is unavailable."""
        import grpc

        self._receipts = Receipts(inbox, self._shipment)
        server = grpc.aio.server(options=_OPTIONS)
        export = grpc.stream_unary_rpc_method_handler(self._export)
        handler = grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: export})
        server.add_generic_rpc_handlers((handler,))
        port = self._bind(server)
        await server.start()
        protocol = "grpc" if self._tls is None else "grpc over tls"
        self._on_listening(f"{protocol} {self._address.shown((self._address.host, port))}")
        try:
            await stopping.wait()
        finally:
            giving_up = asyncio.get_running_loop().call_later(FINISH_S, self._receipts.give_up)
            await server.stop(FINISH_S + 1.0)
            giving_up.cancel()
            self._receipts.give_up()

    def _bind(self, server: Any) -> int:
        import grpc

        where = self._address.shown(self._address)
        try:
            if self._tls is None:
                port = server.add_insecure_port(where)
            else:
                port = server.add_secure_port(where, _credentials(grpc, self._tls))
        except RuntimeError as error:
            raise ConfigError(f"cannot listen for OTLP over gRPC {where}: {error}") from None
        return int(port)

    async def _export(self, _: Any, context: Any) -> bytes:
        import grpc

        codes = {
            MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
            TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
            BUSY: grpc.StatusCode.UNAVAILABLE,
        }
        receipts = self._receipts
        receipts.on_request()
        self._calls += 1
        try:
            if self._calls > _MOST_CALLS:
                raise Refusal(BUSY, f"more than {_MOST_CALLS} calls are open")
            receipts.check_room()
            await receipts.outcome(await self._receipt(context))
        except Refusal as refusal:
            receipts.on_refused(refusal, context.peer())
            await context.abort(codes[refusal.reason], str(refusal))
        finally:
            self._calls -= 1
        return b""

    async def _receipt(self, context: Any) -> Receipt:
        import grpc

        try:
            async with asyncio.timeout(_READING_S):
                await self._reading.acquire()
        except TimeoutError:
            raise Refusal(BUSY, "too many other messages are being read") from None
        try:
            async with asyncio.timeout(_READING_S):
                message = await context.read()
            if message is grpc.aio.EOF:
                raise Refusal(MALFORMED, "the call has no message")
            peer = _host(context.peer())
            return await self._receipts.accept(_inflated(message), is_json=False, peer=peer)
        except TimeoutError:
            raise Refusal(
                BUSY, f"the message took longer than {_READING_S:g} s to arrive"
            ) from None
        finally:
            self._reading.release()


def _credentials(grpc: Any, tls: TlsFiles) -> Any:
    certificate = tls.certificate.read_bytes()
    key = certificate if tls.key is None else tls.key.read_bytes()
    authority = None if tls.client_authority is None else tls.client_authority.read_bytes()
    return grpc.ssl_server_credentials(
        [(key, certificate)], authority, require_client_auth=authority is not None
    )


def _inflated(message: bytes) -> bytes:
    if not message.startswith(_GZIP):
        return message
    body = Body(is_gzip=True)
    body.add(message)
    return body.end()


def _host(peer: str) -> str:
    """Return the address contained in gRPC's name for a peer, such as `ipv4:127.0.0.1:5000`."""
    from urllib.parse import unquote

    return unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]")
