"""The requests between simulated processes, as values; each answer is next to its request."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cluster.image import ClusterImage
from barnabas.coordinator.transaction import Owner
from barnabas.protocol.api import Api
from barnabas.protocol.message import Message
from barnabas.replication.follower import Fetched, FetchFrom
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import TopicPartition
from simulation.disk import Entry


class Produce(NamedTuple):
    """A request with one record; `producer` is -1 if it is not idempotent. Answer: Produced."""

    topic_partition: TopicPartition
    topic_id: bytes
    acks: int
    producer: int
    sequence: int
    value: int
    producer_epoch: int = 0
    transactional_id: str | None = None


class Produced(NamedTuple):
    error_code: int
    offset: int = -1


class Read(NamedTuple):
    """A consumer's fetch; `leader_epoch` is the epoch that it knows. Answer: ReadAnswer."""

    topic_partition: TopicPartition
    topic_id: bytes
    offset: int
    leader_epoch: int
    is_committed: bool = False


class ReadAnswer(NamedTuple):
    error_code: int
    entries: tuple[Entry, ...] = ()
    high_watermark: int = -1
    log_start_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()


class AskLatest(NamedTuple):
    """ListOffsets for the latest offset, asked by a consumer or a follower. Answer: Bounds."""

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    is_follower: bool = False


class Bounds(NamedTuple):
    error_code: int
    earliest: int = -1
    latest: int = -1
    leader_epoch: int = -1


class AskEpochEnd(NamedTuple):
    """OffsetForLeaderEpoch, as a consumer sends it (KIP-320). Answer: EpochEndAnswer."""

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    wanted_epoch: int


class EpochEndAnswer(NamedTuple):
    error_code: int
    end_offset: int = -1


class AskMetadata(NamedTuple):
    """A request for metadata. Answer: Metadata."""


class Metadata(NamedTuple):
    image: ClusterImage


class Wanted(NamedTuple):
    """One partition of a follower's fetch."""

    topic_partition: TopicPartition
    topic_id: bytes
    sent: FetchFrom


class Fetch(NamedTuple):
    """A follower's fetch.

    Answer: FetchAnswer, with a part for each requested partition, in order.
    """

    replica: int
    broker_epoch: int
    wanted: tuple[Wanted, ...]
    max_wait_ms: int


class FetchedPart(NamedTuple):
    got: Fetched
    entries: tuple[Entry, ...] = ()


class FetchAnswer(NamedTuple):
    parts: tuple[FetchedPart, ...]


class ApiRequest(NamedTuple):
    """A controller's request to another broker, as in the protocol. Answer: the API's response."""

    api: Api
    message: Message
    version: int


class ShutdownRequest(NamedTuple):
    """ControlledShutdown. Answer: ShutdownAnswer."""

    broker_id: int
    broker_epoch: int


class ShutdownAnswer(NamedTuple):
    error_code: int
    remaining: int = 0


class AskCoordinator(NamedTuple):
    """InitProducerId, AddPartitionsToTxn or EndTxn. Answer: Coordinated."""

    transactional_id: str
    request: Message


class AskGroup(NamedTuple):
    """JoinGroup, SyncGroup, Heartbeat, OffsetCommit, or one group of OffsetFetch.

    Answer: Coordinated.
    """

    group_id: str
    request: Message


class Coordinated(NamedTuple):
    """The answer from the coordinator's machine, or an error that occurred before the machine was
    asked.
    """

    error_code: int
    answer: Message | None = None


class Verify(NamedTuple):
    """Asks whether a producer may write there in its open transaction (KIP-890).

    Answer: Verified.
    """

    transactional_id: str
    owner: Owner
    topic_partition: TopicPartition


class Verified(NamedTuple):
    error_code: int


class WriteMarker(NamedTuple):
    """The end of a transaction, for one of its partitions. Answer: Verified."""

    topic_partition: TopicPartition
    owner: Owner
    is_commit: bool
    coordinator_epoch: int


Request = (
    Produce
    | Read
    | AskLatest
    | AskEpochEnd
    | AskMetadata
    | Fetch
    | ApiRequest
    | ShutdownRequest
    | AskCoordinator
    | AskGroup
    | Verify
    | WriteMarker
)
Answer = (
    Produced
    | ReadAnswer
    | Bounds
    | EpochEndAnswer
    | Metadata
    | FetchAnswer
    | Message
    | ShutdownAnswer
    | Coordinated
    | Verified
)
