"""Receives syslog over UDP.

Messages that arrive while the inbox is full are dropped and counted, because senders cannot be made
to wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from barnabas_collector.inbox import Inbox
from barnabas_collector.listen_address import ListenAddress
from barnabas_collector.syslog_framing import datagram
from barnabas_collector.syslog_messages import SyslogMessages
from barnabas_collector.tally import Tally

_KERNEL_BYTES: Final = 4 << 20  # size of the receive buffer; the kernel may allow less
_MOST_SENDERS: Final = 4_096  # the maximum in the cache


class SyslogUdp:
    """Runs a listener. `on_listening` is called with the address of the listener."""

    def __init__(
        self, address: ListenAddress, host: str, on_listening: Callable[[str], None]
    ) -> None:
        self._address = address
        self._host = host
        self._on_listening = on_listening

    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Listen until `stopping` is set. Raises `ConfigError` if the address is unavailable."""
        receiver = _Receiver(inbox, self._host)
        loop = asyncio.get_running_loop()
        with self._address.errors("syslog on udp"):
            transport, _ = await loop.create_datagram_endpoint(
                lambda: receiver, local_addr=(self._address.host, self._address.port)
            )
        own: socket.socket = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
        self._on_listening(f"udp {self._address.shown(own.getsockname())}")
        try:
            await stopping.wait()
        finally:
            transport.close()
            receiver.dropped.log_rest()


class _Receiver(asyncio.DatagramProtocol):
    def __init__(self, inbox: Inbox, host: str) -> None:
        self._inbox = inbox
        self._messages = lru_cache(_MOST_SENDERS)(lambda peer: SyslogMessages(peer, host))
        self.dropped = Tally(
            "message over UDP was dropped: the brokers are unavailable or too slow",
            "messages over UDP were dropped: the brokers are unavailable or too slow",
        )

    def datagram_received(self, data: bytes, address: tuple[str | Any, int]) -> None:
        if self._inbox.is_full:
            self._inbox.drop()
            self.dropped.add(1)
        else:
            self._inbox.add(self._messages(address[0]).of(datagram(data)))
