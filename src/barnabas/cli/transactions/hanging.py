"""Finds hanging transactions: open transactions that will never end (KIP-664). Pure.

Such a transaction is open at a partition's leader, but its coordinator does not know the partition
or the producer, and will never write its marker. read_committed consumers wait at its first offset
indefinitely, and so does compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.admin.transaction_admin import ProducerState, TransactionDescription
from barnabas.types import TopicPartition


class OpenTransaction(NamedTuple):
    """Describes a producer's open transaction, as seen by the leader of one of its partitions."""

    partition: TopicPartition
    producer: ProducerState


def suspects(
    producers: Mapping[TopicPartition, Iterable[ProducerState]], silent_since_ms: int
) -> list[OpenTransaction]:
    """Return the open transactions to which nothing has been written since that instant."""
    return [
        OpenTransaction(partition, producer)
        for partition, states in producers.items()
        for producer in states
        if producer.transaction_start_offset >= 0 and producer.last_timestamp_ms < silent_since_ms
    ]


def hanging(
    candidates: Iterable[OpenTransaction], known: Iterable[TransactionDescription]
) -> list[OpenTransaction]:
    """Return the candidates for which no coordinator will write a marker. `known` describes their
    producers according to the coordinators.
    """
    expected = {
        (description.producer_id, partition)
        for description in known
        for partition in description.partitions
    }
    return [
        candidate
        for candidate in candidates
        if (candidate.producer.producer_id, candidate.partition) not in expected
    ]
