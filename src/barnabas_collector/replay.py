"""Sends each dead letter once, back to its original topic.

    dead letters ─▶ the original records, with the letter's place ───────┐
             └▶ the position of the replay, as offsets of a group ───────┴─▶ one transaction

The header `replayed` allows the pipeline to distinguish a replayed record from the line that it saw
before, and to recognise a dead letter that is sent twice. A record that is rejected again becomes a
new dead letter at the end of the topic, for the next replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.producer import Producer
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from barnabas_collector.dead_letter_headers import (
    OF_DEAD_LETTERS,
    REPLAYED,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
)
from barnabas_collector.topic_end import assign_all, records_until

_GROUP: Final = "barnabas-replay-"
_OWN: Final = (*OF_DEAD_LETTERS, REPLAYED)


class Replayed(NamedTuple):
    """Counts the dead letters sent to each topic."""

    letters: int
    by_topic: dict[str, int]


async def replay(
    bootstrap_servers: str,
    topic: str,
    *,
    to: str | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> Replayed:
    """Replay the dead letters that have arrived in a topic since its last replay.

    `to` is a topic for all letters, in place of each letter's own topic. `client_options` are
    options for every client, such as security options. Raises `ConfigError` if a record is not a
    dead letter. Errors of the consumers and the producer are also raised.
    """
    options = client_options or {}
    by_topic: dict[str, int] = {}
    group = _GROUP + topic
    async with (
        Producer(bootstrap_servers, **options, transactional_id=group) as producer,
        Consumer(
            bootstrap_servers,
            **options,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
        ) as consumer,
    ):
        await producer.init_transactions()  # ends a transaction that an earlier replay left open
        ends = await assign_all(consumer, topic)
        partitions: dict[str, int] = {}
        async for letters in records_until(consumer, ends):
            # Dead letters beyond the end arrived after the start, perhaps because of this replay.
            # The next replay sends them.
            some = [
                record
                for record in letters
                if record.offset < ends[TopicPartition(topic, record.partition)]
            ]
            records = [as_it_was(record, to) for record in some]
            for name in {record.topic for record in records} - partitions.keys():
                partitions[name] = len(await producer.partitions_for(name))
            producer.begin_transaction()
            for record in records:
                await producer.send_record(_within(record, partitions[record.topic]))
                by_topic[record.topic] = by_topic.get(record.topic, 0) + 1
            # The offsets are part of the records' transaction, so a replay that is killed commits
            # both or neither.
            await producer.send_offsets_to_transaction(_next(some), group)
            await producer.commit_transaction()
    return Replayed(sum(by_topic.values()), by_topic)


def as_it_was(letter: ConsumerRecord, to: str | None = None) -> ProducerRecord:
    """Return a dead letter's original record, with the dead letter's position in a header."""
    headers = dict(letter.headers)
    where = f"{letter.topic} {letter.partition} {letter.offset}"
    source, partition = headers.get(SOURCE_TOPIC), headers.get(SOURCE_PARTITION)
    if to is None and not source:
        raise ConfigError(
            f"{letter.topic}-{letter.partition}, offset {letter.offset}: not a dead letter "
            f"because it has no header {SOURCE_TOPIC}; name the topic to send all of them to"
        )
    own = tuple(header for header in letter.headers if header[0] not in _OWN)
    return ProducerRecord(
        to or (source or b"").decode(),
        letter.value,
        letter.key,
        int(partition) if partition and partition.isdigit() else None,
        letter.timestamp_ms,
        headers=(*own, (REPLAYED, where.encode())),
    )


def _within(record: ProducerRecord, partitions: int) -> ProducerRecord:
    """Assign the record to its original partition, to keep the order. If the partition no longer
    exists, assign the record to none.
    """
    if record.partition is not None and record.partition >= partitions:
        return record._replace(partition=record.partition % partitions)
    return record


def _next(letters: Sequence[ConsumerRecord]) -> dict[TopicPartition, int]:
    return {TopicPartition(each.topic, each.partition): each.offset + 1 for each in letters}
