"""Sends the records of a journal to their topics, each exactly once.

    records of the journal ─┐
                            ├─ one transaction ─▶ brokers ─▶ the frames count as sent
    its position ───────────┘

The position is a record of a compacted topic, with the journal's name as the key. It is committed
together with the records. After a crash, a new producer first ends the transaction of the old one
and then reads the position, so it knows whether the last transaction was committed.

If the topic of positions was deleted, this is unknown. The journal then continues after the last
frame that it knows was sent, which it saves on its disk about once a second.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.offsets import LATEST
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.errors import BarnabasError, ConfigError
from barnabas.types import TopicPartition
from barnabas_collector.positions_topic import prepare_positions_topic
from barnabas_collector.topic_end import records_until
from barnabas_track.journal import Journal
from barnabas_track.journal_outbox import JournalOutbox

_log = logging.getLogger(__name__)

POSITIONS_TOPIC: Final = "barnabas-track-positions"
BATCH_BYTES: Final = 256 << 10
_TRANSACTION_BYTES: Final = 1 << 20
_AGAIN_AFTER_S: Final = 1.0
_HINT_EVERY_S: Final = 1.0
_CLOSE_MS: Final = 1_000
# After this time, connect again. This also creates a topic that was deleted.
_BLOCK_MS: Final = 10_000
_TRANSACTION_TIMEOUT_MS: Final = 60_000


class JournalSender:
    """Sends the records in the journal to the brokers. `options` are the client options."""

    def __init__(
        self,
        servers: str,
        options: Mapping[str, Any],
        topics: Sequence[str],
        journal: Journal,
        outbox: JournalOutbox,
    ) -> None:
        self.trouble = ""  # why the last transaction failed
        self._servers = servers
        self._options = options
        self._topics = topics
        self._journal = journal
        self._outbox = outbox
        self._instance = uuid.uuid4().hex
        self._has_started = False
        self._hint_at_s = 0.0
        self._is_idle = asyncio.Event()

    async def run(self) -> None:
        """Send until this task is cancelled. If the brokers return an error, send again.

        Raises ConfigError if the journal is not the one that the brokers know.
        """
        while True:
            try:
                await self._connect_and_send()
            except ConfigError:
                raise
            except BarnabasError as error:
                self._outbox.progress.on_failure(error)
                if str(error) != self.trouble:
                    self.trouble = str(error)
                    _log.warning("events stay in the journal: %s", error)
                await asyncio.sleep(_AGAIN_AFTER_S)

    async def drain(self, timeout_s: float) -> None:
        """Wait until all records are sent, or until the timeout expires."""
        self._is_idle.clear()
        self._outbox.news.set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_idle.wait()
        except TimeoutError:
            _log.warning("events stay in the journal and will be sent after the next start")

    async def _connect_and_send(self) -> None:
        await self._prepare_topics()
        producer = Producer(
            self._servers,
            **self._options,
            # Without this, a deleted topic of positions would be created again with the settings
            # of the brokers, and would not be compacted.
            allow_auto_create_topics=False,
            max_block_ms=_BLOCK_MS,
            transactional_id=f"barnabas-track-{self._journal.name}",
            batch_size=BATCH_BYTES,
            linger_ms=0,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
        )
        try:
            await producer.start()
            # First end the transaction of an earlier process, so that it cannot be committed after
            # the position has been read.
            await producer.init_transactions()
            await self._read_position()
            await self._commit(producer, [], self._journal.sent)
            while True:
                await self._send_all(producer)
                self.trouble = ""
                await self._await_news()
        finally:
            await producer.close(_CLOSE_MS)

    async def _prepare_topics(self) -> None:
        async with Admin(self._servers, **self._options) as admin:
            await prepare_positions_topic(admin, POSITIONS_TOPIC)
        async with Producer(self._servers, **self._options) as producer:
            for topic in self._topics:
                await producer.partitions_for(topic)

    async def _send_all(self, producer: Producer) -> None:
        while True:
            # Clear the event before reading, because a record that arrives later sets it again.
            self._outbox.news.clear()
            unsent = await self._outbox.in_thread(partial(self._journal.unsent, _TRANSACTION_BYTES))
            records, last = unsent
            if not last:
                self._outbox.progress.on_all_sent()
                self._is_idle.set()
                return
            await self._commit(producer, [each.record for each in records], last)
            # A commit of the position alone, after each new connection, is no progress.
            self._outbox.progress.on_committed()
            await self._outbox.in_thread(partial(self._journal.mark_sent, last))
            if time.monotonic() - self._hint_at_s >= _HINT_EVERY_S:
                await self._save_hint()

    async def _await_news(self) -> None:
        try:
            async with asyncio.timeout(_HINT_EVERY_S):
                await self._outbox.news.wait()
        except TimeoutError:
            await self._save_hint()
            await self._outbox.news.wait()

    async def _save_hint(self) -> None:
        self._hint_at_s = time.monotonic()
        await self._outbox.in_thread(self._journal.save_hint)

    async def _commit(
        self, producer: Producer, records: Sequence[ProducerRecord], last: int
    ) -> None:
        """Commit records together with the new position. After a failure, use a new producer."""
        position = json.dumps({"sent": last, "instance": self._instance}).encode()
        key = self._journal.name.encode()
        producer.begin_transaction()
        for each in records:
            await producer.send_record(each)
        await producer.send_record(ProducerRecord(POSITIONS_TOPIC, position, key, 0))
        await producer.commit_transaction()
        self._has_started = True

    async def _read_position(self) -> None:
        found = await self._committed_position()
        directory = self._journal.directory
        # A position that was committed can be missing only if it was deleted.
        if not found and (self._has_started or self._journal.sent):
            self._report_lost_position()
            return
        if self._has_started and found.get("instance") != self._instance:
            raise ConfigError(f"another server sends from a copy of the journal {directory}")
        sent = found.get("sent", 0)
        if sent > self._journal.last:
            raise ConfigError(
                f"the journal {directory} ends at frame {self._journal.last}, but the brokers have"
                f" frames up to {sent}: it was restored from an older copy; move it away"
            )
        await self._outbox.in_thread(partial(self._journal.mark_sent, sent))
        await self._save_hint()

    def _report_lost_position(self) -> None:
        sent, last = self._journal.sent, self._journal.last
        if sent == last:
            meaning = "all its events were sent before, and none is sent again"
        else:
            meaning = (
                f"frames up to {sent} were sent before, and the others, up to {last}, are sent now;"
                " some of their events may be sent for the second time, with the same ids"
            )
        _log.warning(
            "the topic %s no longer has the position of the journal %s, so it was deleted: %s",
            POSITIONS_TOPIC,
            self._journal.directory,
            meaning,
        )

    async def _committed_position(self) -> dict[str, Any]:
        """Return the position of this journal, or an empty dictionary."""
        place = TopicPartition(POSITIONS_TOPIC, 0)
        found: dict[str, Any] = {}
        async with Admin(self._servers, **self._options) as admin:
            end = (await admin.list_offsets({place: LATEST}))[place].offset
        # `end` is the high watermark, so this waits for the open transactions of other servers.
        # This is necessary because the position may be after their records.
        async with Consumer(
            self._servers, **self._options, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([place])
            await consumer.seek_to_beginning()
            async for records in records_until(consumer, {place: end}):
                for each in records:
                    if each.key == self._journal.name.encode() and each.value:
                        found = json.loads(each.value)
        return found
