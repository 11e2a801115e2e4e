"""One look at the partitions that a fetch wants: what is there now, and the answer made of it.

A pass takes slices of files, whose bytes nobody here sees. They are owned by the pass until its
answer is handed over; a pass that is not answered must be released.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.watchers import Watchers
from barnabas.broker.runtime.slices import Pace, Slices
from barnabas.errors import (
    CorruptData,
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnsupportedVersion,
    is_out_of_descriptors,
)
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
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
    from barnabas.storage.log import Log

_log = logging.getLogger(__name__)

DIVERGING_EPOCHS = 12
"""The first version in which a reader says by which epoch it knows what it has."""

TOPIC_IDS = 13
"""The first version that names topics by their id."""

_OLDEST = 4  # below, records would have to be converted down, which nobody does any more
_TELLS_LEADER = 16
_READ_COMMITTED = 1
_NO_OFFSET = -1
_BASE_OFFSET = Struct(">q")


Ends = tuple[int, int, int, int]
"""A replica's log start, high watermark, log end and leader epoch."""

_NO_ENDS = (-1, -1, -1, -1)

_READ_ENTRIES = 20
"""As many entries of a request cost as much as a partition of which records are read."""


class Row:
    """One partition of an answer."""

    __slots__ = (
        "data",
        "ends",
        "is_drained",
        "partition",
        "replica",
        "size_bytes",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, data: PartitionData) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.data = data
        self.size_bytes = 0
        self.is_drained = False
        """There is nothing from the reader's offset on, and nothing is wrong."""
        self.replica: Replica | None = None
        self.ends: Ends = _NO_ENDS
        """Where the replica's log stood when it was read."""
        self.partition: SessionPartition | None = None

    @property
    def entries(self) -> int:
        """What it cost, for `Pace`: records are found in an index, and a file may be opened."""
        return _READ_ENTRIES if self.size_bytes else 1


class FetchPass:
    """What was found; `size_bytes` of records in all."""

    __slots__ = (
        "_committed",
        "_context",
        "_is_interrupted",
        "_left_bytes",
        "_silent",
        "_version",
        "cold",
        "has_error",
        "is_warmed",
        "places",
        "rows",
        "size_bytes",
    )

    def __init__(self, context: Context, request: FetchRequest, max_bytes: int) -> None:
        self._context = context
        self._version = context.version
        self._committed = request.isolation_level == _READ_COMMITTED
        self._is_interrupted = False  # others had a turn between the first row and the last
        self._left_bytes = max_bytes
        self._silent: list[Row] = []  # looked at, and there is nothing to say of them
        self.size_bytes = 0
        self.has_error = False
        self.cold: list[tuple[Log, int, int]] = []
        """Reads, from an offset and of how many bytes, that a thread has to warm first."""
        self.is_warmed = False
        """Whether one has done so: what is cold all the same is read."""
        self.rows: list[Row] = []
        self.places: list[Replica | Watchers] = []
        """Where the changes of what was read are told."""

    # --- reading ---------------------------------------------------------------------------------

    def read_all(self, topics: Sequence[FetchTopic]) -> Slices[None]:
        """Every partition of a full request; each gets its row."""
        pace = Pace()
        for topic in topics:
            for wanted in topic.partitions:
                row = self._read(topic.topic, topic.topic_id, wanted)
                self.rows.append(row)
                if row.replica is not None:
                    self.places.append(self.place_of(row.replica))
                if pace.is_over(row.entries):
                    self._is_interrupted = True
                    yield

    def has_moved(self) -> bool:
        """Whether anything that was read is not as it was then: while others had their turn."""
        return self._is_interrupted and any(map(_has_moved, (*self.rows, *self._silent)))

    def place_of(self, replica: Replica) -> Replica | Watchers:
        """Where this reader has to wait for what it may read."""
        return replica

    def read_changed(self, session: FetchSession) -> Slices[None]:
        """What changed in a session, until the limit is reached; the rest has its turn later."""
        pace, entries = Pace(), 0
        for partition in list(session.changed):
            if entries and pace.is_over(entries):
                self._is_interrupted = True
                yield
            row = self._read(partition.topic, partition.topic_id, partition.wanted)
            entries = row.entries
            row.partition = partition
            if row.replica is not None:
                partition.watch(row.replica)
            data = row.data
            if (
                row.is_drained
                and data.high_watermark == partition.high_watermark
                and data.log_start_offset == partition.log_start_offset
            ):
                self._silent.append(row)
                continue
            self.rows.append(row)
            if self._left_bytes <= 0:
                return

    def _read(self, topic: str, topic_id: bytes, wanted: FetchPartition) -> Row:
        replica = None
        try:
            replica = self._replica(topic, topic_id, wanted)
            row = Row(topic, topic_id, _bounds(replica))
            row.replica = replica
            row.ends = _ends(replica)
            self._fill(row, replica, wanted)
            return row
        except KafkaError as error:
            data = self._failed(topic, topic_id, wanted, error)
        except CorruptData as error:
            _log.error("read of %s-%d failed: %s", topic, wanted.partition, error)
            data = self._failed(topic, topic_id, wanted, KafkaStorageError(str(error)))
        except OSError as error:
            assert replica is not None
            self._disk_failed(replica, error)
            data = self._failed(topic, topic_id, wanted, KafkaStorageError(str(error)))
        self.has_error = True
        return Row(topic, topic_id, data)

    def _replica(self, topic: str, topic_id: bytes, wanted: FetchPartition) -> Replica:
        """The replica that may answer, or the KafkaError that is the answer."""
        context = self._context
        if self._version >= TOPIC_IDS:
            known = context.node.image.topic_names.get(topic_id)
            if known is None:
                raise UnknownTopicId("no topic has this id (deleted, or not yet known here)")
            topic = known
        elif self._version < _OLDEST:
            raise UnsupportedVersion(f"Fetch version {self._version} cannot carry record batches")
        self._check_allowed(topic)
        return self._hosted((topic, wanted.partition), wanted.current_leader_epoch)

    def _check_allowed(self, topic: str) -> None:
        if not self._context.allowed(topic):
            raise TopicAuthorizationFailed(f"not allowed to read {topic}")

    def _hosted(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        return self._context.node.replicas.leader_of(name, leader_epoch)

    def _fill(self, row: Row, replica: Replica, wanted: FetchPartition) -> None:
        """Put into a row what is to be read of its partition."""
        log = replica.log
        data = row.data
        offset = wanted.fetch_offset
        if wanted.last_fetched_epoch >= 0 and self._version >= DIVERGING_EPOCHS:
            diverging = diverging_epoch(replica, wanted)
            if diverging is not None:
                data.diverging_epoch = diverging
                self.has_error = True  # an answer that must not wait
                return
        bound = data.last_stable_offset if self._committed else data.high_watermark
        if log.log_start_offset <= offset <= log.log_end_offset and (
            offset >= bound or self._left_bytes <= 0
        ):
            row.is_drained = offset >= bound
            if self._committed:
                data.aborted_transactions = []
            return
        # A first batch larger than every limit is returned all the same, or its reader would never
        # get past it (KIP-74).
        max_bytes = min(self._left_bytes, wanted.partition_max_bytes)
        if self._is_cold(log, offset, max_bytes):
            return
        slices = replica.read(
            offset,
            max_bytes,
            at_least_one_batch=self.size_bytes == 0,
            committed=self._committed,
        )
        self._take(row, slices)
        if self._committed:
            end_offset = _end_offset(slices, offset, bound)
            data.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in log.aborted_transactions(offset, end_offset)
            ]

    def _is_cold(self, log: Log, offset: int, max_bytes: int) -> bool:
        """Whether a thread has to read first; it is noted then."""
        if self.is_warmed or log.is_failed or offset < log.log_start_offset:
            return False
        if not log.is_cold(offset, max_bytes):
            return False
        self.cold.append((log, offset, max_bytes))
        return True

    def _take(self, row: Row, slices: list[FileSlice]) -> None:
        row.data.records = slices
        row.size_bytes = sum([part.size for part in slices])
        self.size_bytes += row.size_bytes
        self._left_bytes -= row.size_bytes

    def _failed(
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
        """Who leads now, which spares the client a Metadata (KIP-951).

        A replica here has heard it first: what the metadata says comes behind, and would send the
        client to where it was refused.
        """
        node = self._context.node
        found: Partition | PartitionImage | None
        try:
            found = node.replicas.hosted((topic, partition)).partition
        except KafkaError:
            known = node.image.topics.get(topic)
            found = known.partitions.get(partition) if known else None
        if found is None:
            return LeaderIdAndEpoch()
        return LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)

    def _disk_failed(self, replica: Replica, error: OSError) -> None:
        if not is_out_of_descriptors(error):  # which is said once for all
            _log.error("read of %s failed: %s", replica.topic_partition, error)
        replica.fail(error)

    # --- answering -------------------------------------------------------------------------------

    def response(self, session: FetchSession | None) -> Slices[FetchResponse]:
        """The answer, which owns the slices from now on; a session learns what it says."""
        responses: list[FetchableTopicResponse] = []
        topic = None
        pace = Pace()
        for row in self.rows:
            if pace.is_over():
                yield
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
            self._tell(session)
        return response

    def _tell(self, session: FetchSession) -> None:
        changed = session.changed
        for row in self._silent:
            assert row.partition is not None
            if not (self._is_interrupted and _has_moved(row)):
                changed.pop(row.partition, None)
        for row in self.rows:
            partition = row.partition or self._begun(session, row)
            session.answered(partition, row.data.high_watermark, row.data.log_start_offset)
            if row.is_drained and not (self._is_interrupted and _has_moved(row)):
                changed.pop(partition, None)
            elif row.size_bytes and partition in changed:
                session.served(partition)

    def _begun(self, session: FetchSession, row: Row) -> SessionPartition:
        """The session begins with this answer: one of its partitions, which listens from now on."""
        name = row.topic_id if session.uses_topic_ids else row.topic
        partition = session.partitions[name, row.data.partition_index]
        if row.replica is not None:
            partition.watch(self.place_of(row.replica))
        return partition

    def _endpoints(self) -> Iterator[NodeEndpoint]:
        leaders = {row.data.current_leader.leader_id for row in self.rows}
        brokers = self._context.node.image.brokers
        for broker_id in sorted(leaders & brokers.keys()):
            host, port = self._context.address_of(brokers[broker_id])
            rack = brokers[broker_id].rack
            yield NodeEndpoint(node_id=broker_id, host=host, port=port, rack=rack)

    def slices(self) -> Iterator[tuple[Row, FileSlice]]:
        for row in self.rows:
            if row.size_bytes:
                assert isinstance(row.data.records, list)
                for part in row.data.records:
                    assert isinstance(part, FileSlice)
                    yield row, part

    def release(self) -> None:
        """Give back the slices: what was read is not sent."""
        for _, part in self.slices():
            part.release()
        for row in self.rows:
            row.data.records = b""
            row.size_bytes = 0

    def disk_failed(self, error: OSError) -> None:
        """The bytes that were found cannot be had: their partitions say so instead."""
        for row in self.rows:
            if row.size_bytes and row.replica is not None:
                self._disk_failed(row.replica, error)
                row.data.error_code = KafkaStorageError.code
        self.release()


def _ends(replica: Replica) -> Ends:
    log = replica.log
    return (
        log.log_start_offset,
        replica.high_watermark,
        log.log_end_offset,
        replica.partition.leader_epoch,
    )


def _has_moved(row: Row) -> bool:
    return row.replica is not None and row.ends != _ends(row.replica)


def _bounds(replica: Replica) -> PartitionData:
    return PartitionData(
        partition_index=replica.topic_partition.partition,
        high_watermark=replica.high_watermark,
        last_stable_offset=replica.last_stable_offset,
        log_start_offset=replica.log.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )


def diverging_epoch(replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where the reader's log left this one, if it did (KIP-595): it must cut its own there."""
    log = replica.log
    epoch, end_offset = log.epoch_end_offset(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(f"nothing is known of leader epoch {wanted.last_fetched_epoch}")
    if wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"the log begins at {log.log_start_offset}")
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _end_offset(slices: Sequence[FileSlice], offset: int, bound: int) -> int:
    """The offset behind the last batch of the slices, or a later one, at most `bound`.

    The next batch, if there is one in the file, begins with its offset.
    """
    if not slices:
        return offset
    last = slices[-1]
    following = last.file.pread(_BASE_OFFSET.size, last.position + last.size)
    if len(following) == _BASE_OFFSET.size:
        (end_offset,) = _BASE_OFFSET.unpack(following)
        if offset < end_offset <= bound:
            return int(end_offset)
    return bound
