"""Parses the options of `format("barnabas")`, most of which are the options of Spark's Kafka
connector.

This module defines the names and defaults of the options and the conflicts between them, without
opening a connection. An unknown option is an error, because a typo such as `maxOffsetPerTrigger`
that is silently ignored can cost an afternoon. Whether topics, partitions and offsets exist is
checked by `survey.py`, which asks the brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.errors import ConfigError
from pyspark_barnabas.bounds import (
    EARLIEST,
    ENDING_NAMES,
    LATEST,
    STARTING_NAMES,
    STRATEGY_NAME,
    Bound,
    ending_bound,
    refuse,
    starting_bound,
)
from pyspark_barnabas.given import GivenOptions, boolean, duration_ms
from pyspark_barnabas.properties import client_properties, refuse_unknown
from pyspark_barnabas.subscription import SUBSCRIPTION_NAMES, Subscription, subscription


class SourceOptions(NamedTuple):
    """All options of a reader. Spark pickles this object and sends it to the tasks."""

    client: Mapping[str, str]
    subscription: Subscription
    starting: Bound
    ending: Bound
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    poll_timeout_ms: int
    fail_on_data_loss: bool
    include_headers: bool
    topic_ids: bool
    record_batches: bool

    def __repr__(self) -> str:
        """Omit the client's properties, because they include secrets and Spark logs the objects
        that failed.
        """
        return f"SourceOptions({self.subscription})"


class SinkOptions(NamedTuple):
    """All options of a writer. Spark pickles this object and sends it to the tasks."""

    client: Mapping[str, str]
    topic: str | None
    exactly_once: bool = False
    transactional_id: str | None = None
    exactly_once_begins: int | None = None

    def __repr__(self) -> str:
        """Omit the client's properties, as in `SourceOptions`."""
        return f"SinkOptions(topic={self.topic!r})"


_SOURCE_NAMES = (
    *SUBSCRIPTION_NAMES,
    *STARTING_NAMES,
    *ENDING_NAMES,
    STRATEGY_NAME,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "recordBatches",  # ours: packed rows, for jobs that unpack them in Arrow
    "kafkaConsumer.pollTimeoutMs",
    "topicIds",  # ours: false omits them from the checkpoint, so that the connector can use it
    # These are accepted without effect, so that jobs written for the connector run unchanged. This
    # source joins no consumer group, and its client has its own way of retrying.
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_SINK_NAMES = ("topic", "includeHeaders", "exactlyOnce", "exactlyOnceBegins")
_TRANSACTIONAL_ID = "kafka.transactional.id"

_MAX_TRIGGER_DELAY_MS = 15 * 60_000
_POLL_TIMEOUT_MS = 120_000


def source_options(given: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
    """Parse the options of a read. If `streaming` is None, check only the options that batch and
    streaming queries have in common.

    Raises `ConfigError`.
    """
    options = GivenOptions(given)
    refuse_unknown(options.names(), _SOURCE_NAMES)
    # As in the connector, by default a batch reads existing records, and a stream new ones.
    starting = starting_bound(options, LATEST if streaming else EARLIEST)
    ending = ending_bound(options)
    if streaming is True:
        _refuse_ending(options)
    if streaming is False:
        refuse(starting, LATEST)
    min_offsets = options.positive("minOffsetsPerTrigger")
    max_offsets = options.positive("maxOffsetsPerTrigger")
    if min_offsets and max_offsets and min_offsets > max_offsets:
        raise ConfigError(
            f"minOffsetsPerTrigger ({min_offsets}) is greater than"
            f" maxOffsetsPerTrigger ({max_offsets})"
        )
    return SourceOptions(
        client=client_properties(given, reads=True),
        subscription=subscription(options),
        starting=starting,
        ending=ending,
        max_offsets_per_trigger=max_offsets,
        min_offsets_per_trigger=min_offsets,
        max_trigger_delay_ms=options.parse("maxTriggerDelay", duration_ms, _MAX_TRIGGER_DELAY_MS),
        min_partitions=options.positive("minPartitions"),
        max_records_per_partition=options.positive("maxRecordsPerPartition"),
        poll_timeout_ms=options.positive("kafkaConsumer.pollTimeoutMs") or _POLL_TIMEOUT_MS,
        fail_on_data_loss=options.parse("failOnDataLoss", boolean, True),
        include_headers=options.parse("includeHeaders", boolean, False),
        topic_ids=options.parse("topicIds", boolean, True),
        record_batches=options.parse("recordBatches", boolean, False),
    )


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options of a write. Raises `ConfigError`."""
    options = GivenOptions(given)
    refuse_unknown(options.names(), _SINK_NAMES)
    topic = options.get("topic")
    exactly_once = options.parse("exactlyOnce", boolean, False)
    transactional_id = options.get(_TRANSACTIONAL_ID) if exactly_once else None
    rest = {
        name: value
        for name, value in given.items()
        if not (exactly_once and name.lower() == _TRANSACTIONAL_ID)
    }
    return SinkOptions(
        client_properties(rest, reads=False),
        topic.strip() if topic else None,
        exactly_once,
        transactional_id,
        options.positive("exactlyOnceBegins"),
    )


def _refuse_ending(options: GivenOptions) -> None:
    for name in ENDING_NAMES:
        if options.get(name) is not None:
            raise ConfigError(
                f"option {name} is for batch queries; to read the present records and stop, use"
                " .trigger(availableNow=True)"
            )
