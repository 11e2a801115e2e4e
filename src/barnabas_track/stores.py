"""Opens the endpoint's store: the brokers themselves, or a journal from which events are sent to
them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from barnabas.client.producer.producer import Producer
from barnabas_track.journal import MOST_BYTES, Journal
from barnabas_track.journal_outbox import JournalOutbox
from barnabas_track.journal_sender import BATCH_BYTES, JournalSender
from barnabas_track.outbox import Outbox, Outgoing

_AS_LONG_AS_IT_TAKES_MS: Final = 2**31 - 1
# All requests that arrive within this time share a batch, which costs the server and the brokers
# much less than a batch for each request.
_LINGER_MS: Final = 2
_CLOSE_MS: Final = 5_000
_DRAIN_S: Final = 5.0


class Store(Protocol):
    """Stores records, each id only once."""

    @property
    def trouble(self) -> str:
        """The reason why records are not stored or not sent, or an empty string."""

    async def store(self, given: Sequence[Outgoing]) -> int:
        """Store records, and return how many of their ids were already known.

        Raises NotStored.
        """


class Brokers(NamedTuple):
    """The addresses of the brokers, the client options and the topics."""

    servers: str
    options: Mapping[str, Any]
    topics: Sequence[str]


@contextlib.asynccontextmanager
async def open_outbox(brokers: Brokers) -> AsyncIterator[Outbox]:
    """Return an outbox that writes to the brokers directly."""
    producer = Producer(
        brokers.servers,
        **brokers.options,
        acks="all",
        enable_idempotence=True,
        batch_size=BATCH_BYTES,
        linger_ms=_LINGER_MS,
        delivery_timeout_ms=_AS_LONG_AS_IT_TAKES_MS,
    )
    try:
        await producer.start()
        for topic in brokers.topics:
            await producer.partitions_for(topic)
        yield Outbox(producer)
    finally:
        await producer.close(_CLOSE_MS)


@contextlib.asynccontextmanager
async def open_journal(
    brokers: Brokers,
    directory: Path,
    on_end: Callable[[], None],
    *,
    most_bytes: int = MOST_BYTES,
) -> AsyncIterator[JournalOutbox]:
    """Return an outbox that writes to a journal, and send the records in the journal.

    `on_end` is called when the sender ends, and the sender's error is raised at the end of the
    block. Raises ConfigError if the journal cannot be used.
    """
    journal = Journal(directory, most_bytes=most_bytes)
    outbox = JournalOutbox(journal)
    sender = JournalSender(brokers.servers, brokers.options, brokers.topics, journal, outbox)
    sending = asyncio.create_task(sender.run())
    sending.add_done_callback(lambda _: on_end())
    try:
        yield outbox
        if not sending.done():
            await sender.drain(_DRAIN_S)
    finally:
        is_over = sending.done()
        sending.cancel()
        results = await asyncio.gather(sending, return_exceptions=True)
        await outbox.close()
        if is_over and isinstance(results[0], Exception):
            raise results[0]
