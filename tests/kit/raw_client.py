"""A client that sends exactly what a test asks it to: one frame out, one frame in."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from barnabas.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable
from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import decode_response, encode_request
from barnabas.records.record import BatchBuilder
from tests.kit.secured.suite import IS_SECURED

T = TypeVar("T")

PATIENCE_S = 120.0
"""How long a test waits for what must come: it bounds a hang, and says nothing of speed."""

AN_HOUR_MS = 3_600_000
"""What a request may wait at the broker when the test shows that it does not."""

NO_TIDYING = {"log.retention.check.interval.ms": "86400000"}
"""For brokers that many tests share: their records may have times of long ago, those of `batch` do,
and retention, which looks every five minutes, would delete them while a test reads them."""


def once_loaded(ask: Callable[[], T], code_of: Callable[[T], int]) -> T:
    """The first answer of a coordinator that has read its partition.

    Until then it is asked again, as every client does; any other answer is the test's to judge.
    """
    return once_not(CoordinatorLoadInProgress.code, ask, code_of)


def once_found(ask: Callable[[], Any]) -> Any:
    """The answer of FindCoordinator, or its one coordinator, when there is one.

    The topic, which is made at the first question, may take long to make.
    """
    return once_not(CoordinatorNotAvailable.code, ask, lambda answer: int(answer.error_code))


def once_not(code: int, ask: Callable[[], T], code_of: Callable[[T], int]) -> T:
    """The first answer whose error is not this one, which passes by itself."""
    ends_at = time.monotonic() + PATIENCE_S
    while code_of(answer := ask()) == code:
        assert time.monotonic() < ends_at, f"still error {code} after {PATIENCE_S} s"
        time.sleep(0.01)
    return answer


class RawClient:
    """A blocking connection that speaks frames, right or wrong."""

    def __init__(
        self, bootstrap_servers: str, timeout_s: float = PATIENCE_S, *, client_id: str = "raw"
    ) -> None:
        self.client_id = client_id
        host, port = bootstrap_servers.rsplit(":", 1)
        self.socket: socket.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._correlation_id = 0
        if IS_SECURED:
            from tests.kit.secured import raw_login  # loaded only where it is used

            self.socket = raw_login.encrypted(self.socket)
            raw_login.log_in(self)
            self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, api: Api, version: int, request: Message) -> int:
        """Send a request; its correlation id."""
        self._correlation_id += 1
        parts: list[Any] = encode_request(
            api, version, self._correlation_id, self.client_id, request
        )
        self.socket.sendall(b"".join(parts))
        return self._correlation_id

    def receive(self, api: Api, version: int) -> tuple[int, Any]:
        """The next response, taken to be of that API and version; its correlation id first."""
        return decode_response(api, version, memoryview(self.receive_frame()))

    def call(self, api: Api, version: int, request: Message) -> Any:
        """The answer, which is of the API's type."""
        sent = self.send(api, version, request)
        got, response = self.receive(api, version)
        assert got == sent
        return response

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame without its length; b"" at the end of the connection."""
        head = self._receive_exactly(4)
        return self._receive_exactly(struct.unpack(">i", head)[0]) if head else b""

    def is_closed_by_peer(self, within_s: float = PATIENCE_S) -> bool:
        """Whether the end comes in time, and nothing before it."""
        before = self.socket.gettimeout()
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(before)

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                assert not data, f"connection ended within a frame, after {len(data)} bytes"
                return b""
            data += more
        return bytes(data)


def batch(*values: bytes, timestamp_ms: int = 1_700_000_000_000, **producer: Any) -> bytes:
    """One record batch with these values; BatchBuilder's arguments by keyword (`codec`, ...)."""
    builder = BatchBuilder(**producer)
    for index, value in enumerate(values):
        builder.append(timestamp_ms + index, None, value)
    return bytes(builder.build())
