"""Manages the channels of a client, one per broker. They are opened on demand and after a loss.

Only one connection attempt per broker runs at a time, and all callers share it. After a failure,
the next attempt is delayed by `reconnect.backoff.ms`. The delay is doubled after each failure, up
to `reconnect.backoff.max.ms`, with 20 % jitter, so that a thousand clients do not reconnect at the
same moment.
"""

from __future__ import annotations

import asyncio

from barnabas.client.channel import BrokerAddress, Channel, Seams
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientClosed
from barnabas.clock import Random
from barnabas.errors import BarnabasError
from barnabas.shielded import retrieve_error, shielded


def backoff_ms(failures: int, first_ms: int, most_ms: int, random: Random) -> int:
    """Return the delay after consecutive failures: exponential, +-20 % (KIP-144, KIP-580)."""
    if failures <= 0 or first_ms <= 0:
        return 0
    # An unbounded shift could create a number with thousands of bits.
    plain = min(first_ms << min(failures - 1, 30), most_ms)
    fifth = plain // 5
    return plain - fifth + random.below(2 * fifth + 1)


class _Slot:
    """The state of the pool for one broker."""

    __slots__ = ("attempt", "channel", "failures", "retry_at_ms")

    def __init__(self) -> None:
        self.channel: Channel | None = None
        self.attempt: asyncio.Task[Channel] | None = None
        self.failures = 0
        self.retry_at_ms = 0


class Pool:
    """A pool with at most one channel and one connection attempt per broker."""

    def __init__(self, config: ClientConfig, seams: Seams) -> None:
        self._config = config
        self._seams = seams
        self._slots: dict[int, _Slot] = {}
        self._closed = False

    def ready_channel(self, node: BrokerAddress) -> Channel | None:
        """Return the channel to the broker if it is open."""
        slot = self._slots.get(node.node_id)
        if slot is None or slot.channel is None or not slot.channel.is_open:
            return None
        # A broker may return under the same id at another address, which then needs a new
        # connection.
        return slot.channel if slot.channel.node == node else None

    async def channel(self, node: BrokerAddress) -> Channel:
        """Return the broker's channel, opened after a backoff if needed. Raises Unreachable."""
        opened = self.ready_channel(node)
        if opened is not None:
            return opened
        if self._closed:
            raise ClientClosed("the client is closed")
        slot = self._slots.setdefault(node.node_id, _Slot())
        if slot.attempt is None:
            slot.attempt = asyncio.get_running_loop().create_task(self._open(slot, node))
            slot.attempt.add_done_callback(retrieve_error)
        attempt = slot.attempt
        try:
            # Shield the attempt, because other callers may also be waiting for it.
            return await shielded(attempt)
        except asyncio.CancelledError:
            if self._closed and attempt.cancelled():
                raise ClientClosed("the client was closed while it connected") from None
            raise

    async def close(self) -> None:
        self._closed = True
        for slot in self._slots.values():
            if slot.attempt is not None:
                slot.attempt.cancel()
            if slot.channel is not None:
                slot.channel.close()
        self._slots.clear()
        await asyncio.sleep(0)  # so that the transports can notify their connections

    async def _open(self, slot: _Slot, node: BrokerAddress) -> Channel:
        try:
            wait_ms = slot.retry_at_ms - self._seams.clock.monotonic_ms()
            if wait_ms > 0:
                await asyncio.sleep(wait_ms / 1000)
            if slot.channel is not None:
                slot.channel.close()  # the channel was lost, or the broker has a new address
            channel = Channel(node, self._config, self._seams)
            try:
                await channel.open()
            except BarnabasError:
                slot.failures += 1
                pause_ms = backoff_ms(
                    slot.failures,
                    self._config.reconnect_backoff_ms,
                    self._config.reconnect_backoff_max_ms,
                    self._seams.random,
                )
                slot.retry_at_ms = self._seams.clock.monotonic_ms() + pause_ms
                raise
            slot.failures = 0
            slot.channel = channel
            return channel
        finally:
            slot.attempt = None
