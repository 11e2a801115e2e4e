"""Formats the output of `transactions`, as Kafka 3.9's tables or as values. Pure.

TransactionalId<TAB>Coordinator<TAB>ProducerId<TAB>TransactionState<TAB>
tx-open        <TAB>0          <TAB>0         <TAB>Ongoing         <TAB>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.cli.groups.instants import instant_text
from barnabas.cli.transactions.hanging import OpenTransaction
from barnabas.client.admin.transaction_admin import (
    ProducerState,
    TransactionDescription,
    TransactionListing,
)

_NONE = "None"


def listing_text(listings: Iterable[TransactionListing]) -> str:
    titles = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
    return _table(
        titles,
        [
            (each.transactional_id, each.coordinator_id, each.producer_id, each.state)
            for each in listings
        ],
    )


def description_text(descriptions: Iterable[TransactionDescription], now_ms: int) -> str:
    titles = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    return _table(
        titles,
        [
            (
                each.coordinator.node_id,
                each.transactional_id,
                each.producer_id,
                each.producer_epoch,
                each.state,
                each.timeout_ms,
                _NONE if each.started_at_ms < 0 else each.started_at_ms,
                _NONE if each.started_at_ms < 0 else now_ms - each.started_at_ms,
                ",".join(map(str, each.partitions)),
            )
            for each in descriptions
        ],
    )


def producers_text(producers: Iterable[ProducerState]) -> str:
    titles = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    return _table(
        titles,
        [
            (
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch,
                each.last_sequence,
                each.last_timestamp_ms,
                _NONE if each.transaction_start_offset < 0 else each.transaction_start_offset,
            )
            for each in producers
        ],
    )


def hanging_text(found: Iterable[OpenTransaction], now_ms: int) -> str:
    titles = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    return _table(
        titles,
        [
            (
                *each.partition,
                each.producer.producer_id,
                each.producer.producer_epoch,
                each.producer.coordinator_epoch,
                each.producer.transaction_start_offset,
                each.producer.last_timestamp_ms,
                (now_ms - each.producer.last_timestamp_ms) // 60_000,
            )
            for each in found
        ],
    )


def listing_values(listings: Iterable[TransactionListing]) -> list[dict[str, Any]]:
    return [
        {
            "transactional_id": each.transactional_id,
            "coordinator": each.coordinator_id,
            "producer_id": each.producer_id,
            "state": each.state,
        }
        for each in listings
    ]


def description_values(
    descriptions: Iterable[TransactionDescription], now_ms: int
) -> list[dict[str, Any]]:
    return [
        {
            "transactional_id": each.transactional_id,
            "coordinator": each.coordinator.node_id,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "state": each.state,
            "timeout_ms": each.timeout_ms,
            "started_at": None if each.started_at_ms < 0 else instant_text(each.started_at_ms),
            "duration_ms": None if each.started_at_ms < 0 else now_ms - each.started_at_ms,
            "partitions": [name._asdict() for name in each.partitions],
        }
        for each in descriptions
    ]


def producer_values(producers: Iterable[ProducerState]) -> list[dict[str, Any]]:
    return [
        {
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "last_sequence": each.last_sequence,
            "last_timestamp": each.last_timestamp_ms,
            "transaction_start_offset": (
                None if each.transaction_start_offset < 0 else each.transaction_start_offset
            ),
        }
        for each in producers
    ]


def hanging_values(found: Iterable[OpenTransaction]) -> list[dict[str, Any]]:
    return [{**each.partition._asdict(), **producer_values([each.producer])[0]} for each in found]


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table, with each cell padded to the widest in its column and followed by a tab."""
    lines = [titles, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)) + "\n"
        for line in lines
    )
