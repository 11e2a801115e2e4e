"""Reads a fetch request's partitions once, and builds the response.

A `FetchReader` reads each partition into a row. The pass keeps the rows in order, and decides which
rows a session can omit. Records are slices of a file, and their bytes are not read here. The pass
owns the slices until it builds the response, so a pass that builds no response must be released.

A request that has waited reads again with the same pass. `begin_again` drops the rows but keeps the
reader and the budget.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.fetching.fetch_reader import FetchReader, ReadBudget, Row, bounds
from barnabas.broker.partitions.replica import Replica, Watchers
from barnabas.broker.runtime.slices import Pace, Slices
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnsupportedVersion,
    is_out_of_descriptors,
)
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.replication.fetch_session import FetchSession, SessionPartition
from barnabas.types import FileSlice

if TYPE_CHECKING:
    from barnabas.cluster.image import PartitionImage
    from barnabas.replication.partition import Partition

_log = logging.getLogger(__name__)

TOPIC_IDS = 13
"""The first version that identifies topics by id."""

_OLDEST = 4  # older versions would need down-conversion (message formats 0 and 1)
_TELLS_LEADER = 16
_NO_OFFSET = -1


class FetchPass:
    """The rows that were read for a fetch request, and whether it must be answered now."""

    __slots__ = (
        "_context",
        "_is_interrupted",
        "_pace",
        "_reader",
        "_silent",
        "_version",
        "budget",
        "has_error",
        "must_answer_now",
        "places",
        "rows",
    )

    def __init__(self, context: Context, reader: FetchReader, budget: ReadBudget) -> None:
        self._context = context
        self._version = context.version
        self._reader = reader
        self._is_interrupted = False  # whether other tasks ran between the first row and the last
        self._pace = Pace()
        self._silent: list[Row] = []  # rows that were read but omitted from the response
        self.budget = budget
        self.has_error = False
        """Whether any row is an error."""
        self.must_answer_now = False
        """Whether any row that is not an error must be sent without waiting for more bytes, because
        it contains a diverging epoch or a preferred replica.
        """
        self.rows: list[Row] = []
        self.places: list[Replica | Watchers] = []
        """The places where the request waits for changes."""

    def begin_again(self, *, is_warmed: bool = False) -> None:
        """Drop the rows, whose slices have been released, and prepare for the next read."""
        self.rows, self.places, self._silent = [], [], []
        self.has_error = self.must_answer_now = self._is_interrupted = False
        self.budget.refill(is_warmed=is_warmed)
        self._reader.look_again()

    # --- reading ---------------------------------------------------------------------------------

    def read_all(self, topics: Sequence[FetchTopic]) -> Slices[None]:
        """Read every partition of a full fetch request into its row."""
        pace = self._pace
        pace.begin()
        for topic in topics:
            self._reader.references = len(topic.partitions)
            for wanted in topic.partitions:
                row = self._read(topic.topic, topic.topic_id, wanted)
                self.rows.append(row)
                if row.replica is not None:
                    self.places.append(self._reader.place(row.replica))
                if pace.is_over(row.entries):
                    self._is_interrupted = True
                    yield

    def has_moved(self) -> bool:
        """Return whether any of the data has been changed by other tasks since it was read."""
        return self._is_interrupted and any(row.has_moved() for row in (*self.rows, *self._silent))

    def read_changed(self, session: FetchSession) -> Slices[None]:
        """Read the changed partitions of a session until the response is full, and leave the rest
        for the next one.

        If the reader reads all changed partitions, each of them counts as one entry even if it has
        no records.
        """
        reader, pace, entries = self._reader, self._pace, 0
        pace.begin()
        # Iterate over a copy, because other tasks mark partitions as changed while they run.
        for partition in list(session.changed):
            if entries and pace.is_over(entries):
                self._is_interrupted = True
                yield
            row = self._read(partition.topic, partition.topic_id, partition.wanted)
            entries = 1 if reader.looks_at_all else row.entries
            row.partition = partition
            # Watch the partition from its first read on, so that later changes mark it as changed
            # again.
            if row.replica is not None:
                partition.watch(reader.place(row.replica))
            data = row.data
            if (
                # If there is nothing new to report, the session omits the partition (KIP-227). A
                # partition that has no more data is not checked again.
                data.high_watermark == partition.high_watermark
                and data.log_start_offset == partition.log_start_offset
                and reader.keeps_silent(row)
            ):
                if row.is_drained:
                    self._silent.append(row)
                continue
            self.rows.append(row)
            # The response is full. Partitions that were not read remain marked as changed and will
            # be read first the next time. `_record` moves partitions with records to the end.
            if self.budget.left_bytes <= 0 and not reader.looks_at_all:
                return

    def _read(self, topic: str, topic_id: bytes, wanted: FetchPartition) -> Row:
        replica = None
        try:
            replica = self._replica(topic, topic_id, wanted)
            row = Row(topic, topic_id, bounds(replica), replica)
            if self._reader.fill(row, replica, wanted, self.budget):
                self.must_answer_now = True
            return row
        except KafkaError as error:
            data = self._error_data(topic, topic_id, wanted, error)
        except CorruptData as error:
            assert replica is not None
            # A damaged batch does not indicate a disk failure, so the log stays online and other
            # batches remain readable.
            failures = self._context.node.replicas.read_failures
            failures.on_failure("read", replica.topic_partition, error)
            data = self._error_data(topic, topic_id, wanted, CorruptMessage(str(error)))
        except OSError as error:
            assert replica is not None
            self._on_disk_error(replica, error)
            data = self._error_data(topic, topic_id, wanted, KafkaStorageError(str(error)))
        self.has_error = True
        return Row(topic, topic_id, data)

    def _replica(self, topic: str, topic_id: bytes, wanted: FetchPartition) -> Replica:
        """Return the replica to be read, or raise the KafkaError to send to the client."""
        if self._version >= TOPIC_IDS:
            # Topic ids are never reused, so a client cannot get records of a newer topic that has
            # the same name (KIP-516).
            known = self._context.node.view.image.topic_names.get(topic_id)
            if known is None:
                raise UnknownTopicId(
                    "no topic has this id (it was deleted, or this broker does not know it yet)"
                )
            topic = known
        # Like Kafka with log.message.downconversion.enable=false, Barnabas does not down-convert
        # records (ST-5).
        elif self._version < _OLDEST:
            raise UnsupportedVersion(f"Fetch version {self._version} cannot carry record batches")
        return self._reader.replica((topic, wanted.partition), wanted.current_leader_epoch)

    def _error_data(
        self, topic: str, topic_id: bytes, wanted: FetchPartition, error: KafkaError
    ) -> PartitionData:
        data = PartitionData(
            partition_index=wanted.partition,
            error_code=error.code,
            high_watermark=_NO_OFFSET,
            last_stable_offset=_NO_OFFSET,
            log_start_offset=_NO_OFFSET,
            aborted_transactions=None,
            records=b"",
        )
        if self._version >= _TELLS_LEADER and isinstance(
            error, NotLeaderOrFollower | FencedLeaderEpoch
        ):
            name = self._context.node.image.topic_names.get(topic_id, topic)
            data.current_leader = self._current_leader(name, wanted.partition)
        return data

    def _current_leader(self, topic: str, partition: int) -> LeaderIdAndEpoch:
        """Return the current leader, so that the client does not have to send a Metadata request
        (KIP-951).

        The local replica learns about a new leader earlier than the metadata image, which could
        send the client back to this broker.
        """
        node = self._context.node
        found: Partition | PartitionImage | None
        try:
            found = node.replicas.replica_of((topic, partition)).partition
        except KafkaError:
            known = node.image.topics.get(topic)
            found = known.partitions.get(partition) if known else None
        if found is None:
            return LeaderIdAndEpoch()
        return LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)

    def _on_disk_error(self, replica: Replica, error: OSError) -> None:
        if not is_out_of_descriptors(error):  # a denial is logged once per topic
            _log.error("reading %s failed: %s", replica.topic_partition, error)
        replica.fail(error)

    # --- answering -------------------------------------------------------------------------------

    def response(self, session: FetchSession | None) -> Slices[FetchResponse]:
        """Build the response, which takes ownership of the slices. A session records what it
        contains.
        """
        self._reader.on_sent()
        responses: list[FetchableTopicResponse] = []
        topic = None
        pace = self._pace
        pace.begin()
        count = self._reader.count
        for row in self.rows:
            if row.size_bytes and row.replica is not None:
                count(row.replica.traffic, row.size_bytes)
            if pace.is_over():
                yield
            # In a session, rows are in the order in which their partitions changed, so there can be
            # several entries for a topic.
            if topic is None or row.topic != topic.topic or row.topic_id != topic.topic_id:
                topic = FetchableTopicResponse(
                    topic=row.topic, topic_id=row.topic_id, partitions=[]
                )
                responses.append(topic)
            topic.partitions.append(row.data)
        response = FetchResponse(responses=responses)
        if self._version >= _TELLS_LEADER and self.has_error:
            response.node_endpoints = list(self._endpoints())
        if session is not None:
            response.session_id = session.session_id
            self._record(session)
        return response

    def _record(self, session: FetchSession) -> None:
        changed = session.changed
        for row in self._silent:
            assert row.partition is not None
            # If the partition may have changed since it was read, it must stay marked as changed.
            if not (self._is_interrupted and row.has_moved()):
                changed.pop(row.partition, None)
        for row in self.rows:
            partition = row.partition or self._begin(session, row)
            session.on_answered(partition, row.data.high_watermark, row.data.log_start_offset)
            if row.is_drained and not (self._is_interrupted and row.has_moved()):
                changed.pop(partition, None)
            # As in Kafka's fetch sessions, partitions that returned records are read last the next
            # time.
            elif row.size_bytes and partition in changed:
                session.on_served(partition)

    def _begin(self, session: FetchSession, row: Row) -> SessionPartition:
        """Start watching the log of a partition that is new in the session, and return the
        partition.
        """
        name = row.topic_id if session.uses_topic_ids else row.topic
        partition = session.partitions[name, row.data.partition_index]
        if row.replica is not None:
            partition.watch(self._reader.place(row.replica))
        return partition

    def _endpoints(self) -> Iterator[NodeEndpoint]:
        leaders = {row.data.current_leader.leader_id for row in self.rows}
        brokers = self._context.node.image.brokers
        for broker_id in sorted(leaders & brokers.keys()):
            host, port = self._context.address_of(brokers[broker_id])
            rack = brokers[broker_id].rack
            yield NodeEndpoint(node_id=broker_id, host=host, port=port, rack=rack)

    def slices(self) -> Iterator[tuple[Row, FileSlice]]:
        """Yield the slices of records in all rows."""
        for row in self.rows:
            if row.size_bytes:
                assert isinstance(row.data.records, list)
                for part in row.data.records:
                    assert isinstance(part, FileSlice)
                    yield row, part

    def release(self) -> None:
        """Release all slices, because they will not be sent."""
        for _, part in self.slices():
            part.release()
        for row in self.rows:
            row.data.records = b""
            row.size_bytes = 0

    def on_disk_error(self, error: OSError) -> None:
        """Return KAFKA_STORAGE_ERROR for partitions whose disk has failed since they were read."""
        for row in self.rows:
            if row.size_bytes and row.replica is not None:
                self._on_disk_error(row.replica, error)
                row.data.error_code = KafkaStorageError.code
        self.release()
