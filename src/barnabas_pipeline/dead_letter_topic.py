"""Sends the dead letters of each batch to the dead letter topic exactly once, in
one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncConsumer, SyncProducer
from barnabas.types import TopicPartition
from barnabas_collector.dead_letter_headers import (
    BATCH,
    QUERY,
    REASON,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
)
from barnabas_collector.headers import CUT
from barnabas_collector.line_cutter import MAX_LINE_BYTES

_PREPARING: Final = "barnabas-dead-letters"  # sends no records
_TRANSACTIONAL_ID: Final = "barnabas-dead-letters-"
_POLL_MS: Final = 1_000
# Below the defaults of max.request.size and message.max.bytes, with room for our own headers.
_MOST_BYTES: Final = 1_040_000
_HEADER_BYTES: Final = 10  # of a header, besides its key and value


class DeadLetterTopic(NamedTuple):
    """The topic that receives a query's dead letters."""

    bootstrap_servers: str
    topic: str
    query: str
    client_options: Mapping[str, Any] = {}

    @classmethod
    def prepare(cls, bootstrap_servers: str, client_options: Mapping[str, Any]) -> None:
        """Make the brokers create `__transaction_state` before the query starts.

        The topic can be created only if there are as many brokers as it has replicas, and a broker
        may fail while the query is running.
        """
        with SyncProducer(
            bootstrap_servers, **client_options, transactional_id=_PREPARING
        ) as producer:
            producer.init_transactions()

    def send(self, letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
        """Send the dead letters of a batch in one transaction, unless an earlier attempt at the
        batch has already sent them.

        `since`: the topic's end offsets after the last batch, by partition. Returns the current end
        offsets.
        """
        with SyncProducer(
            self.bootstrap_servers,
            **self.client_options,
            transactional_id=_TRANSACTIONAL_ID + self.query,
        ) as producer:
            # End any transaction left open by another attempt, and fence that attempt. No other
            # attempt can send dead letters after the search.
            producer.init_transactions()
            with SyncConsumer(self.bootstrap_servers, **self.client_options) as consumer:
                ends = self._ends(consumer)
                begins = consumer.beginning_offsets(ends)
                if not self._has(batch, since, begins, ends):
                    producer.begin_transaction()
                    producer.send_many(self._records(letters, batch))
                    producer.commit_transaction()
                    ends = self._ends(consumer)
        return {each.partition: end for each, end in ends.items()}

    def _has(
        self,
        batch: int,
        since: Mapping[int, int],
        begins: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> bool:
        places = {}
        for each, end in ends.items():
            start, begin = since.get(each.partition, 0), begins[each]
            # `start` is out of range if retention has truncated the topic, or the topic was
            # recreated.
            if found := range(start if begin <= start <= end else begin, end):
                places[each] = found
        # Usually, nothing has been sent since the last batch.
        if not places:
            return False
        # The first search includes uncommitted records. If it finds none from this batch, there is
        # no need to wait for other producers' open transactions. Otherwise, the second search has
        # to wait for their end, because until then, records after them may still be aborted.
        return self._is_in(places, batch, "read_uncommitted") and self._is_in(
            places, batch, "read_committed"
        )

    def _is_in(self, places: Mapping[TopicPartition, range], batch: int, isolation: str) -> bool:
        wanted = ((QUERY, self.query.encode()), (BATCH, b"%d" % batch))
        with SyncConsumer(
            self.bootstrap_servers,
            **self.client_options,
            isolation_level=isolation,
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign(list(places))
            for each, offsets in places.items():
                consumer.seek(each, offsets.start)
            # Positions also advance past transaction markers and aborted records, so the loop ends
            # even if no record is returned for the last offsets.
            while any(consumer.position(each) < offsets.stop for each, offsets in places.items()):
                for record in consumer.poll(_POLL_MS):
                    if all(header in record.headers for header in wanted):
                        return True
        return False

    def _ends(self, consumer: SyncConsumer) -> dict[TopicPartition, int]:
        partitions = consumer.partitions_for(self.topic)
        names = [TopicPartition(self.topic, partition) for partition in partitions]
        return dict(consumer.end_offsets(names))

    def _records(self, letters: pa.Table, batch: int) -> Iterator[ProducerRecord]:
        for row in map(_sendable, letters.to_pylist()):
            yield ProducerRecord(
                self.topic, row["value"], row["key"], headers=(*_own(row), *self._about(row, batch))
            )

    def _about(self, row: Mapping[str, Any], batch: int) -> tuple[tuple[str, bytes], ...]:
        about = {
            REASON: row["reason"],
            SOURCE_TOPIC: row["topic"],
            SOURCE_PARTITION: row["partition"],
            SOURCE_OFFSET: row["offset"],
            QUERY: self.query,
            BATCH: batch,
        }
        if "cut" in row:
            about[CUT] = row["cut"]
        return tuple((name, str(value).encode()) for name, value in about.items())


def _sendable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a letter that is small enough for the topic. A letter that is too large is truncated
    and marked as cut, so that it is rejected when it is replayed. The table of dead letters still
    contains the whole letter."""
    value, key = row["value"] or b"", row["key"] or b""
    sizes = [len(header["key"]) + len(header["value"] or b"") for header in row["headers"] or ()]
    rest_bytes = len(key) + sum(sizes) + _HEADER_BYTES * len(sizes)
    if len(value) + rest_bytes <= _MOST_BYTES:
        return row
    if rest_bytes > _MOST_BYTES - MAX_LINE_BYTES:
        row = {**row, "key": None, "headers": []}
    return {**row, "value": value[:MAX_LINE_BYTES], "cut": len(value)}


def _own(row: Mapping[str, Any]) -> Iterator[tuple[str, bytes | None]]:
    return ((header["key"], header["value"]) for header in row["headers"] or ())
