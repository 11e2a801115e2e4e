"""Defines the errors of topics and partitions: names, replicas, leaders, records and offsets."""

from __future__ import annotations

from barnabas.errors.kafka_error import KafkaError


class OffsetOutOfRange(KafkaError, code=1):
    """The offset lies outside the log of this partition."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """The record batch fails its checksum, or has an impossible size or field."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """This broker does not host that topic or partition."""


class InvalidFetchSize(KafkaError, code=4):
    """The number of bytes requested in the fetch is not valid."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """The partition has no leader at the moment; one is being elected."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """This broker is not the leader, or holds no replica, of that partition."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """This broker's replica of the partition is not available."""


class MessageTooLarge(KafkaError, code=10):
    """The record batch is larger than the topic or broker accepts."""


class InvalidTopic(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not allowed, or the operation is not allowed on this topic."""


class RecordListTooLarge(KafkaError, code=18):
    """The record batches exceed the size of a segment."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Fewer replicas are in sync than acks=all requires; nothing was appended."""


# The records stay in the log, so consumers may see them, and a producer without idempotence that
# resends them writes them twice.
class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """The records were appended, but fewer replicas are in sync than acks=all requires."""


class InvalidRequiredAcks(KafkaError, code=21):
    """acks must be -1, 0 or 1."""


class InvalidTimestamp(KafkaError, code=32):
    """A record's timestamp lies outside the bounds that the topic accepts."""


class TopicAlreadyExists(KafkaError, code=36):
    """A topic with that name already exists."""


class InvalidPartitions(KafkaError, code=37):
    """The number of partitions is not valid."""


class InvalidReplicationFactor(KafkaError, code=38):
    """The replication factor is below 1 or above the number of brokers."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """The replicas named for a partition are not a valid assignment."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """The stored or sent message format does not support the request."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """The producer's sequence number does not follow its last one."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """The producer has already sent that sequence number."""


class InvalidProducerEpoch(KafkaError, code=47):
    """A producer with the same id and a newer epoch has taken over."""


class UnknownProducerId(KafkaError, code=59):
    """The log no longer holds anything from that producer."""


class ReassignmentInProgress(KafkaError, code=60):
    """The partition's replicas are being reassigned."""


# Codes 70 and 71 end an incremental fetch session (KIP-227). The consumer starts a new one with a
# full fetch.
class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """The broker has no fetch session with that id."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """The epoch is not the fetch session's next one."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """The partition's leader has no listener with the name that was used."""


class TopicDeletionDisabled(KafkaError, code=73):
    """`delete.topic.enable` is false."""


# Codes 74 and 75 compare the leader epoch in a request with the broker's (KIP-320). Either side may
# lag, so a client refreshes its metadata for both.
class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """The leader epoch sent is older than the broker's."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """The leader epoch sent is newer than the broker's."""


# KIP-110: for zstd data and a client whose version of Produce or Fetch is older than zstd support.
class UnsupportedCompressionType(KafkaError, code=76):
    """The version of the client's request does not support that compression type."""


# KIP-207: a new leader answers ListOffsets with this error if its offset would be below one that
# its predecessor has returned.
class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """The new leader's high watermark has not caught up with its epoch yet."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """The preferred leader is not alive or not in sync."""


# Codes 83 and 84 answer ElectLeaders (KIP-460).
class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """No replica that could become leader is available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """The partition already has the leader that was to be elected."""


class NoReassignmentInProgress(KafkaError, code=85):
    """The partition is not being reassigned."""


class InvalidRecord(KafkaError, code=87):
    """A record breaks a rule of its topic or of the format."""


class SnapshotNotFound(KafkaError, code=98):
    """The snapshot does not exist."""


class PositionOutOfRange(KafkaError, code=99):
    """The position is negative or past the end of the snapshot."""


# Codes 100, 103 and 106 were introduced with topic ids (KIP-516). A topic that was deleted and
# recreated under its name has a different id, so a stale request finds no topic instead of the
# wrong one.
class UnknownTopicId(KafkaError, code=100, retriable=True):
    """This broker knows no topic with that id."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """The topic id is not the log's topic id."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """The fetch session switched between topic names and topic ids."""


# Codes 107 and 108 answer AlterPartition: a replica whose broker is fenced or shutting down
# (KIP-841), and an election caused by the change (KIP-704).
class IneligibleReplica(KafkaError, code=107):
    """The replica may not join the ISR at present."""


class NewLeaderElected(KafkaError, code=108):
    """The change to the partition elected another leader."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """The offset has moved to remote storage."""
