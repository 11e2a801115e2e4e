"""Sends the records that `produce` reads, and counts their outcomes."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import NamedTuple

from barnabas.cli.progress import Progress
from barnabas.cli.records.block_sender import BlockSender
from barnabas.cli.records.feed import Block, FileFeed, LineFeed
from barnabas.cli.records.lines import BadLine
from barnabas.client.errors import UnknownPartition
from barnabas.client.producer.batch import ProducerBatch, ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas.errors import BarnabasError, MessageTooLarge

_REFUSALS = (ValueError, TypeError, MessageTooLarge, UnknownPartition)
"""Errors that concern a single record. Other errors concern the topic or the cluster."""


class Sending(NamedTuple):
    """Specifies what to send, how, and with which producer."""

    producer: Producer
    topic: str
    partition: int | None
    feed: LineFeed | FileFeed
    in_transaction: bool
    quick: BlockSender | None  # for blocks of values, with or without keys


class Tally:
    """Counts records by outcome."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failed = 0
        self.read_bytes = 0
        self.first_error: BarnabasError | None = None

    def count(self, batch: ProducerBatch) -> None:
        if batch.error is None:
            self.delivered += batch.record_count
        else:
            self.failed += batch.record_count
            self.first_error = self.first_error or batch.error

    def summary(self, topic: str, took_ms: int) -> str:
        took_s = max(took_ms, 1) / 1000
        size = counted(self.read_bytes, "byte")
        return (
            f"{counted(self.delivered, 'record')} ({size}) to {topic} "
            f"in {took_s:.2f} s, {self.delivered / took_s:,.0f} records/s"
        )


async def send_all(sending: Sending, tally: Tally, progress: Progress) -> None:
    """Send all records up to the end or to a malformed line, then wait for all outcomes.

    A transaction is all or nothing. If this function ends early, the producer aborts the
    transaction when it closes. Raises BadLine with the file and the line, OSError, and the
    producer's errors.
    """
    producer = sending.producer
    async with producer:
        if sending.in_transaction:
            await producer.init_transactions()
            producer.begin_transaction()
        async for block in sending.feed.blocks():
            await _send(sending, block, tally)
            # First send the preceding well-formed lines, in order, and only then raise the error.
            if block.problem is not None:
                raise block.problem
            tally.read_bytes += block.size_bytes
            progress.advance(block.size_bytes, tally.delivered)
        if sending.in_transaction:
            await producer.commit_transaction()


async def _send(sending: Sending, block: Block, tally: Tally) -> None:
    if sending.quick is not None and sending.quick.takes(block.values, block.keys):
        async for batch in sending.quick.send(block.values, block.keys):
            batch.when_done(partial(tally.count, batch))
        return
    records = block.records or [
        ProducerRecord(sending.topic, value, key, sending.partition)
        for value, key in zip(block.values, block.keys or repeat(None), strict=False)
    ]
    for number, record in enumerate(records, block.number):
        try:
            delivery = await sending.producer.send_record(record)
        except _REFUSALS as error:
            place = f"{block.name}: line {number}" if block.number else block.name
            raise BadLine(f"{place}: {error}") from error
        # Add one callback per batch, with its first record.
        if delivery.index == 0:
            delivery.batch.when_done(partial(tally.count, delivery.batch))
