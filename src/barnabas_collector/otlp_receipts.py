"""Accepts OTLP requests, and tells the senders whether the brokers have acknowledged the requests.

A sender keeps its log records until it is told that they are stored, so no records are lost,
whichever process dies. If the brokers do not acknowledge a request in time, the sender is asked to
send it again. Because the records are still being sent, a repeated request with the same bytes is
not sent again, but receives the outcome of the first request. This works once per request.
Duplicates occur if a sender does not repeat the same bytes or if the collector is killed.
"""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Final

from barnabas.printable import printable
from barnabas_collector.bundle import Bundle, Origin
from barnabas_collector.headers import HOST, OTLP_FROM
from barnabas_collector.inbox import Inbox
from barnabas_collector.otlp_messages import (
    TOO_LARGE,
    Message,
    Refusal,
    messages,
    parse,
    replace_secrets,
)
from barnabas_collector.redaction import Redact
from barnabas_collector.shipment import Shipment
from barnabas_collector.tally import Tally
from barnabas_formats.otlp_request import ENCODING, OTLP_PROTO

BUSY: Final = "busy"
"""The reason for a refusal after which the sender should try again."""
PATIENCE_S: Final = 5.0
"""How long to wait for the brokers. This must be shorter than the sender's timeout, which is ten
seconds by default."""
FINISH_S: Final = 5.0
"""How long requests in progress may take to finish when the collector stops."""
_LARGE_BYTES: Final = 131_072
"""Larger requests are prepared in a thread, because preparing eight megabytes of JSON takes
seconds.
"""
_KEPT_S: Final = 120.0  # senders repeat a request within a minute
_MOST_KEPT: Final = 10_000


class Receipt:
    """Tracks the outcome of a request whose messages are being sent."""

    def __init__(self, digest: bytes, log_records: int, waiting_for: int) -> None:
        self.digest = digest
        self.log_records = log_records
        self.settled_at_s = 0.0
        self.refusal: Refusal | None = None
        self.waiter: asyncio.Future[None] | None = None
        self._waiting_for = waiting_for

    @property
    def is_settled(self) -> bool:
        return not self._waiting_for

    def on_stored(self) -> None:
        self._waiting_for -= 1
        if self.is_settled:
            self.settled_at_s = time.monotonic()
            if self.waiter is not None and not self.waiter.done():
                self.waiter.set_result(None)

    def on_refused(self, why: Exception) -> None:
        self.refusal = Refusal(TOO_LARGE, f"the brokers refuse a record: {why}")
        self.on_stored()


class Receipts:
    """Manages the requests of one listener."""

    def __init__(self, inbox: Inbox, shipment: Shipment, patience_s: float = PATIENCE_S) -> None:
        self._inbox = inbox
        self._redact = shipment.redact
        self._metrics = shipment.metrics
        self._patience_s = patience_s
        self._left: dict[bytes, Receipt] = {}  # no sender is waiting for these; oldest first
        self._preparing = asyncio.Semaphore(1)  # this takes up to 32 times the body's memory
        self._waiters: set[asyncio.Future[None]] = set()
        self._has_given_up = False
        self._refused = Tally("OTLP request was refused", "OTLP requests were refused")
        host = shipment.host.encode()
        self._origin = lru_cache(4_096)(lambda key, peer: _origin(key, peer, host))

    def check_room(self) -> None:
        """Raise `Refusal` if there is no room for another request.

        Call this before reading a body.
        """
        if self._has_given_up:
            raise Refusal(BUSY, "the collector is stopping")
        # A repeated request needs no room, but only its body identifies it.
        if self._inbox.is_full and not self._left:
            raise Refusal(BUSY, "the brokers are unavailable or too slow")

    async def accept(self, body: bytes, *, is_json: bool, peer: str) -> Receipt:
        """Queue a request's log records for sending. Raises `Refusal`."""
        digest = blake2b(body, digest_size=16, salt=b"json" if is_json else b"").digest()
        if (left := self._left.pop(digest, None)) is not None:
            return left
        prepare = partial(_prepared, body, self._redact, is_json=is_json)
        if len(body) <= _LARGE_BYTES:
            made = prepare()
        else:
            async with self._preparing:
                made = await asyncio.to_thread(prepare)
        # This is the last chance to refuse the request, because the next step sends it.
        if self._has_given_up or self._inbox.is_full:
            raise Refusal(BUSY, "the brokers are unavailable or too slow")
        receipt = Receipt(digest, sum(each.log_records for each in made), len(made))
        self._inbox.add(
            Bundle(self._origin(each.key, peer), [each.value], awaited=receipt) for each in made
        )
        return receipt

    async def outcome(self, receipt: Receipt) -> None:
        """Wait until the brokers have acknowledged a request. Raises `Refusal`."""
        if not receipt.is_settled and not self._has_given_up:
            await self._wait(receipt)
        if not receipt.is_settled:
            self._leave(receipt)
            raise Refusal(BUSY, "the brokers have not acknowledged it yet")
        if receipt.refusal is not None:
            raise receipt.refusal
        if self._metrics is not None:
            self._metrics.otlp_records.increment(receipt.log_records)

    async def _wait(self, receipt: Receipt) -> None:
        waiter = receipt.waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(self._patience_s):
                await waiter
        except TimeoutError:
            pass
        except asyncio.CancelledError:  # the sender has disconnected, and may repeat the request
            self._leave(receipt)
            raise
        finally:
            self._waiters.discard(waiter)
            receipt.waiter = None

    def on_request(self) -> None:
        """Count a request."""
        if self._metrics is not None:
            self._metrics.otlp_requests.increment()

    def on_refused(self, refusal: Refusal, peer: str) -> None:
        """Count and log a refused request."""
        # The reason quotes undecodable text, which may be secret or contain terminal controls.
        why = str(refusal).encode("utf-8", "backslashreplace")
        if self._redact is not None:
            why = self._redact(why)
        text = printable(why.decode("utf-8", "replace"))
        self._refused.add(1, f"{refusal.reason}, from {peer}: {text}")
        if self._metrics is not None:
            self._metrics.otlp_refused[refusal.reason] += 1

    def give_up(self) -> None:
        """Respond to all senders immediately.

        Requests that have not been acknowledged are refused.
        """
        self._has_given_up = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._refused.log_rest()

    def on_unsaid(self, receipt: Receipt) -> None:
        """Record that a sender was not informed that its request has been stored."""
        self._leave(receipt)

    def _leave(self, receipt: Receipt) -> None:
        self._left[receipt.digest] = receipt
        now_s = time.monotonic()
        for digest, each in list(self._left.items()):
            is_old = each.is_settled and now_s - each.settled_at_s > _KEPT_S
            if not is_old and len(self._left) <= _MOST_KEPT:
                return
            del self._left[digest]


def _prepared(body: bytes, redact: Redact | None, *, is_json: bool) -> list[Message]:
    """Return all records of a request before any is sent, so that the request is accepted or
    refused as a whole.
    """
    request = parse(body, is_json=is_json)
    if redact is not None:
        replace_secrets(request, redact)
    return list(messages(request))


def _origin(key: bytes, peer: str, host: bytes) -> Origin:
    return Origin(key, ((HOST, host), (OTLP_FROM, peer.encode()), (ENCODING, OTLP_PROTO.encode())))
