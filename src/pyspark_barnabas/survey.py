"""Asks the brokers for the partitions of a subscription, and for the start and end of each log.

This module sends all requests of the driver. The results are a snapshot; `stream.py` and
`reader.py` decide how to use it in a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.sync.producer import SyncConsumer
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition, uuid_text
from pyspark_barnabas.bounds import EARLIEST, LATEST, Bound
from pyspark_barnabas.loss import report_loss
from pyspark_barnabas.offsets import Offsets
from pyspark_barnabas.options import SourceOptions
from pyspark_barnabas.subscription import Subscription

# Kafka's internal topics, which its consumers also exclude from a pattern.
_INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class Survey(NamedTuple):
    """The existing subscribed partitions, with the start and end of each log."""

    beginnings: Offsets
    ends: Offsets
    """The offset after the last record that a reader may see: the high watermark or, with
    read_committed, the last stable offset."""
    topic_ids: Mapping[str, str]
    """Topic ids in Kafka's notation. Topics without an id are omitted."""


def survey(consumer: SyncConsumer, options: SourceOptions) -> Survey:
    partitions = sorted(_partitions(consumer, options.subscription))
    # Request the ids before the offsets, so that if a topic is recreated in between, the next
    # survey finds a different id. In reverse order, the new id would be paired with the old topic's
    # offsets.
    topics = {each.topic for each in partitions} if options.topic_ids else set()
    topic_ids = ids_of(consumer, topics)
    beginnings = consumer.beginning_offsets(partitions)
    return Survey(beginnings, consumer.end_offsets(partitions), topic_ids)


def ids_of(consumer: SyncConsumer, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of the existing topics, in Kafka's notation.

    Topics without an id are omitted.
    """
    topics = sorted(topics)
    found = consumer.topic_ids(topics) if topics else {}
    return {topic: uuid_text(each) for topic, each in found.items()}


def require_all(found: Survey, subscription: Subscription) -> None:
    """Raise `ConfigError` if a topic or partition subscribed by name does not exist."""
    topics = {partition.topic for partition in found.ends}
    missing = [topic for topic in subscription.topics if topic not in topics]
    missing += [str(partition) for partition in subscription.partitions - found.ends.keys()]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} not found: create the topic first, or use subscribePattern,"
            " which waits for topics to be created"
        )


def resolve(
    consumer: SyncConsumer, bound: Bound, found: Survey, *, fail_on_data_loss: bool
) -> Offsets:
    """Resolve `bound` to an offset in every partition found.

    Raises `ConfigError` if the bound does not cover the partitions or if no record is as late as
    the bound's timestamp, and `DataLoss` if the bound is outside a log.
    """
    if bound.timestamp_ms is not None:
        timestamps = dict.fromkeys(found.ends, bound.timestamp_ms)
        return _at_timestamps(consumer, bound, timestamps, found)
    if bound.timestamps_ms is not None:
        _require_cover(bound, bound.timestamps_ms, found)
        return _at_timestamps(consumer, bound, bound.timestamps_ms, found)
    if bound.offsets is None:
        return found.beginnings if bound.offset == EARLIEST else found.ends
    _require_cover(bound, bound.offsets, found)
    return {
        partition: _within_log(bound, partition, offset, found, fail_on_data_loss)
        for partition, offset in bound.offsets.items()
    }


def _partitions(consumer: SyncConsumer, subscription: Subscription) -> list[TopicPartition]:
    if subscription.pattern:
        existing = consumer.list_topics()
        pattern = re.compile(subscription.pattern)
        # A pattern must match the whole name, as in Kafka's consumers.
        matching = [topic for topic in existing if pattern.fullmatch(topic)]
        return _all_of(existing, [topic for topic in matching if topic not in _INTERNAL_TOPICS])
    # Request only the named topics, because a cluster may have many thousands, and a query sends
    # this request at each trigger.
    named = subscription.topics or {each.topic for each in subscription.partitions}
    existing = consumer.list_topics(named)
    if subscription.topics:
        return _all_of(existing, subscription.topics)
    return [each for each in subscription.partitions if each[1] in existing.get(each[0], ())]


def _all_of(existing: Mapping[str, Sequence[int]], topics: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, each) for topic in topics for each in existing.get(topic, ())]


def _require_cover(bound: Bound, given: Iterable[TopicPartition], found: Survey) -> None:
    """Reject a bound that omits partitions, because it would not define the start in these
    partitions.
    """
    given = set(given)
    if given != found.ends.keys():
        raise ConfigError(
            f"option {bound.option} must name all subscribed partitions and no others: it has "
            f"{_listed(given)}, but the subscribed partitions are {_listed(found.ends)}"
        )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def _within_log(
    bound: Bound, partition: TopicPartition, offset: int, found: Survey, fail_on_data_loss: bool
) -> int:
    beginning, end = found.beginnings[partition], found.ends[partition]
    if offset == EARLIEST:
        return beginning
    if offset == LATEST:
        return end
    if beginning <= offset <= end:
        return offset
    report_loss(
        f"option {bound.option} has {offset} for {partition}, but its log has the offsets"
        f" from {beginning} to {end}",
        fail_on_data_loss=fail_on_data_loss,
    )
    # With failOnDataLoss=false, use the nearest existing offset.
    return min(max(offset, beginning), end)


def _at_timestamps(
    consumer: SyncConsumer, bound: Bound, timestamps: Offsets, found: Survey
) -> Offsets:
    """Return, for each partition, the offset of the first record at or after the timestamp."""
    answers = consumer.offsets_for_times(dict(timestamps))
    offsets = {}
    for partition, timestamp_ms in timestamps.items():
        answer = answers.get(partition)
        if answer is not None:
            offsets[partition] = answer.offset
        elif bound.latest_if_no_match:
            offsets[partition] = found.ends[partition]
        else:
            raise ConfigError(
                f"option {bound.option}: {partition} has no record with the timestamp "
                f"{timestamp_ms} or a later one; to start at the end there, set "
                "startingOffsetsByTimestampStrategy to latest"
            )
    return offsets
