"""Implements a loop's `create_server`: accepts every connection on a port of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from simulation.whole.sockets import End, ListeningSocket

if TYPE_CHECKING:
    from simulation.whole.network import Network

_BUFFER_BYTES = 1 << 16


class SimListener:
    """The part of `asyncio.Server` that a server uses."""

    def __init__(
        self,
        network: Network,
        socket: ListeningSocket,
        attach: Callable[[End, Callable[[], asyncio.BaseProtocol]], object],
        factory: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self.sockets = (socket,)
        self._network = network
        self._attach = attach
        self._factory = factory
        network.add_reader(socket.fileno(), self._accept)

    def _accept(self) -> None:
        accepted, _ = self.sockets[0].accept()
        self._attach(accepted.end, lambda: _Buffered(cast(asyncio.Protocol, self._factory())))

    def close(self) -> None:
        self.sockets[0].close()


class _Buffered(asyncio.BufferedProtocol):
    """A plain protocol, for a transport that fills buffers."""

    def __init__(self, inner: asyncio.Protocol) -> None:
        self._inner = inner
        self._buffer = bytearray(_BUFFER_BYTES)
        self.connection_made = inner.connection_made  # type: ignore[method-assign]
        self.connection_lost = inner.connection_lost  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._inner.data_received(bytes(self._buffer[:nbytes]))
