"""Sends each line of the logs to a topic exactly once, because a line and the position after it are
written in the same transaction.

    files ─▶ portions of lines ─▶ record batches ──┐
               └▶ the position in each file ───────┴─▶ one transaction
    systemd's journal ─▶ entries, and its cursor ──┘

If the process is killed at any moment, the next process with the same name ends or aborts the open
transaction, reads the positions (`positions.py`) and continues from there. read_committed consumers
see every line once. They see a file's lines in order, because all lines of a file go to a single
partition.

A process that starts fences the previous one and records its start in the positions topic. Brokers
also fence a producer whose transaction took too long; the record distinguishes the two cases.
Without this record, two collectors with the same name would fence each other indefinitely.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator
from typing import Final

from barnabas.client.admin.admin import Admin
from barnabas.client.errors import Unreachable
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.producer.producer import Producer
from barnabas.errors import (
    BarnabasError,
    ConfigError,
    InvalidTxnState,
    ProducerFenced,
)
from barnabas.types import TopicPartition
from barnabas_collector.bundle import Bundle, Origin, encode_bundles, pack
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.complaint import Complaint
from barnabas_collector.encoding import MAX_BATCH_BYTES, LineEncoder
from barnabas_collector.forgetting import Forgetting
from barnabas_collector.headers import HOST
from barnabas_collector.journal import Journal
from barnabas_collector.line_cutter import size_and_cuts
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.positions import POSITIONS_TOPIC, Positions
from barnabas_collector.positions_topic import PositionsReader, prepare_positions_topic
from barnabas_collector.rotated_log import Portion
from barnabas_collector.shipment import Shipment, Shipped
from barnabas_collector.watched_logs import WatchedLogs

_log = logging.getLogger(__name__)

_PART: Final = "files and journal"
_TRANSACTION_BYTES: Final = 8 << 20
_AGAIN_AFTER_S: Final = 1.0
_SUCCESSOR_S: Final = 10.0  # time for a process that fenced us to record its start


async def ship(
    shipment: Shipment, paths: LogPaths, stopping: asyncio.Event, *, once: bool = False
) -> Shipped:
    """Send the lines of the logs as they are written, until `stopping` is set. With `once`, send
    only the present lines.

    Without `once`, wait for unreachable brokers. Other cluster errors are raised before the first
    commit, and retried after it. Raises `ConfigError` if another collector has the same name or,
    with `once`, a log cannot be read.
    """
    total = Shipped()
    metrics = shipment.metrics or CollectorMetrics()
    instance = uuid.uuid4().hex
    complaint = Complaint(_PART)
    while True:
        metrics.on_waiting(_PART, "has not committed to the brokers yet")
        shipper = _Shipper(shipment, paths, instance, metrics)
        try:
            await shipper.run(stopping, once=once)
            return total.plus(shipper.shipped)
        except ConfigError:
            raise
        except BarnabasError as error:
            total = total.plus(shipper.shipped)
            is_fenced = isinstance(error, ProducerFenced)
            if is_fenced:
                # Either a process with this name has started, or the broker ended a transaction
                # that took too long. Only in the second case may this process take the name back.
                await _check_no_successor(shipment, instance)
            if is_fenced or total.transactions:
                _log.warning("continuing after the last committed line: %s", error)
            elif isinstance(error, Unreachable) and not once:
                complaint.add(error)
            # Before the first commit, any other error is probably caused by the configuration, and
            # retries do not help.
            else:
                raise
            metrics.on_retry(_PART, error)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _AGAIN_AFTER_S)
        if stopping.is_set():
            return total


async def _check_no_successor(shipment: Shipment, instance: str) -> None:
    """Raise `ConfigError` if another process with this name started after this one."""
    positions = Positions(shipment.name)
    give_up_at_s = time.monotonic() + _SUCCESSOR_S
    async with PositionsReader(shipment, positions) as reader:
        while time.monotonic() < give_up_at_s:
            await reader.read_to_end()
            # A successor fences this process first, and commits its start shortly afterwards, so
            # repeat this check.
            if positions.instance != instance:
                raise ConfigError(
                    f"another collector named {shipment.name!r} was started; give each collector "
                    "its own name"
                )
            await asyncio.sleep(_AGAIN_AFTER_S)


class _Shipper:
    """Sends lines from the committed positions on, until it is stopped or fails."""

    def __init__(
        self, shipment: Shipment, paths: LogPaths, instance: str, metrics: CollectorMetrics
    ) -> None:
        self.shipped = Shipped()
        self._shipment = shipment
        self._instance = instance
        self._metrics = metrics
        self._paths = paths
        self._open = Shipped()  # counts of the open transaction
        self._positions = Positions(shipment.name)
        self._forgetting = Forgetting(self._positions, shipment.retention_s)
        self._partitions = 1

    async def run(self, stopping: asyncio.Event, *, once: bool) -> None:
        async with self._producer() as producer:
            self._partitions = len(await producer.partitions_for(self._shipment.topic))
            # Load the positions after `init_transactions`, which fences an earlier process and ends
            # its transaction. No other process can then commit a later position.
            await self._load()
            # Commit this before any line, so that a fenced process soon learns which process fenced
            # it.
            self._positions.start(self._instance)
            await self._commit(producer)
            self.shipped = Shipped()
            logs = WatchedLogs(
                self._paths,
                self._positions,
                quiet_s=self._shipment.quiet_s,
                is_start=self._shipment.is_start,
                from_end=self._shipment.from_end,
            )
            self._metrics.logs = logs
            journal = self._journal(once=once)
            try:
                if journal is not None:
                    await journal.start()
                await self._send_all(producer, logs, journal, stopping, once=once)
            except ProducerFenced:
                raise
            except BarnabasError:
                # A fenced producer may first see that a batch is refused. If a commit got no
                # response, the next producer learns its outcome. The positions in memory may be
                # ahead of the committed ones, which `ship` reads again.
                with contextlib.suppress(InvalidTxnState):
                    await producer.abort_transaction()
                raise
            finally:
                logs.close()
                if journal is not None:
                    await journal.close()

    def _journal(self, *, once: bool) -> Journal | None:
        if not self._shipment.has_journal:
            return None
        return Journal(self._positions.cursor, from_end=self._shipment.from_end, follow=not once)

    async def _send_all(
        self,
        producer: Producer,
        logs: WatchedLogs,
        journal: Journal | None,
        stopping: asyncio.Event,
        *,
        once: bool,
    ) -> None:
        while True:
            is_last = once or stopping.is_set()
            for portion in logs.portions(time.monotonic(), is_last_look=once):
                await self._send(producer, portion)
                # Consumers with `read_committed` wait for the end of a transaction.
                if self._open.size_bytes >= _TRANSACTION_BYTES:
                    await self._commit(producer)
            if journal is not None:
                await self._send_entries(producer, journal)
            if self._forgetting.is_due(time.monotonic()):
                self._forgetting.sweep(int(time.time()), *logs.present())
            await self._commit(producer)
            # By then, the lines of the other logs are committed.
            if once and journal is not None and not journal.is_at_end():
                await journal.news.wait()
                continue
            if once and logs.unreadable:
                raise ConfigError(next(iter(logs.unreadable.values())))
            if is_last:
                return
            with contextlib.suppress(TimeoutError):
                # With a journal, a stop is noticed only after the pause of at most a second.
                news = stopping if journal is None else journal.news
                await asyncio.wait_for(news.wait(), logs.pause_s(time.monotonic()))

    async def _send(self, producer: Producer, portion: Portion) -> None:
        progress, lines, of_log = portion
        if (redact := self._shipment.redact) is not None:
            lines = [each.with_text(redact(each.text)) for each in lines]
        self._metrics.on_pending(_PART)
        if not self._open.transactions:
            producer.begin_transaction()
        # The file determines the partition, so that its lines stay in order.
        key = progress.file_id.encode()
        partition = partition_for_key(key, self._partitions)
        place = TopicPartition(self._shipment.topic, partition)
        more = ((HOST, self._shipment.host.encode()), *of_log)
        encoder = LineEncoder(progress, key, more, self._shipment.codec)
        for batch in encoder.batches(lines, int(time.time() * 1_000)):
            await producer.send_batch(place, batch)
        # `_commit` sends the position in the same transaction as these lines, so either both are
        # committed or neither.
        self._positions.save(progress)
        size_bytes, cut = size_and_cuts(lines)
        self._metrics.on_read(len(lines), size_bytes)
        self._open = self._open.plus(Shipped(len(lines), size_bytes, cut, 1))

    async def _send_entries(self, producer: Producer, journal: Journal) -> None:
        """Send the entries that were read, and save the cursor of the last one."""
        entries = journal.take()
        if not entries:
            # Searching from the end also finds the cursor of an entry that is not sent.
            if journal.cursor is not None and self._positions.cursor is None:
                self._positions.save_cursor(journal.cursor)
            return
        redact = self._shipment.redact or bytes
        key = self._shipment.name.encode()
        origin = Origin(key, ((HOST, self._shipment.host.encode()),))
        bundle = Bundle(origin, [redact(entry.value) for entry in entries])
        self._metrics.on_pending(_PART)
        if not self._open.transactions:
            producer.begin_transaction()
        place = TopicPartition(self._shipment.topic, partition_for_key(key, self._partitions))
        now_ms = int(time.time() * 1_000)
        for batch in pack([bundle], MAX_BATCH_BYTES):
            await producer.send_batch(place, encode_bundles(batch, self._shipment.codec, now_ms))
        if cursors := [entry.cursor for entry in entries if entry.cursor is not None]:
            self._positions.save_cursor(cursors[-1])
        size_bytes = sum(entry.size_bytes for entry in entries)
        cut = sum(entry.size_bytes > len(entry.value) for entry in entries)
        self._metrics.on_read(len(entries), size_bytes)
        self._open = self._open.plus(Shipped(len(entries), size_bytes, cut, 1))

    async def _commit(self, producer: Producer) -> None:
        """Commit the lines that were sent and the positions that have changed."""
        # Every sent line changes its file's position.
        if not self._positions.has_changed:
            return
        self._metrics.on_pending(_PART)
        if not self._open.transactions:
            producer.begin_transaction()
        for key, value in self._positions.take_changes():
            await producer.send_record(ProducerRecord(POSITIONS_TOPIC, value, key, 0))
        await producer.commit_transaction()
        self.shipped = self.shipped.plus(self._open._replace(transactions=1))
        self._metrics.on_sent(self._open.lines, self._open.size_bytes, self._open.cut_lines)
        self._metrics.transactions.increment()
        self._metrics.on_ready(_PART)
        self._open = Shipped()

    @contextlib.asynccontextmanager
    async def _producer(self) -> AsyncIterator[Producer]:
        """Return the producer for this name.

        It fences the producer of an earlier process and ends that producer's open transaction.
        """
        servers, options = self._shipment.bootstrap_servers, self._shipment.client_options
        async with Admin(servers, **options) as admin:
            await prepare_positions_topic(admin)
        async with Producer(
            servers,
            **options,
            transactional_id=f"barnabas-collector-{self._shipment.name}",
            linger_ms=0,
            transaction_timeout_ms=self._shipment.transaction_timeout_ms,
        ) as producer:
            await producer.init_transactions()
            yield producer

    async def _load(self) -> None:
        async with PositionsReader(self._shipment, self._positions) as reader:
            await reader.read_to_end()
