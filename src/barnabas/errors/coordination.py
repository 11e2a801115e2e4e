"""Defines the errors of coordinators: groups, share groups, committed offsets, transactions."""

from __future__ import annotations

from barnabas.errors.kafka_error import KafkaError


class OffsetMetadataTooLarge(KafkaError, code=12):
    """The metadata string committed with an offset is too long."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """The coordinator is still loading its state; try again."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """There is no coordinator at the moment; try again."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """This broker does not coordinate that group or transactional id."""


class IllegalGeneration(KafkaError, code=22):
    """The member's generation is not the group's current generation."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """The member shares no assignment protocol with the other members of its group."""


class InvalidGroupId(KafkaError, code=24):
    """The group's name is not allowed."""


class UnknownMemberId(KafkaError, code=25):
    """The coordinator does not know that member."""


class InvalidSessionTimeout(KafkaError, code=26):
    """The session timeout lies outside the broker's configured bounds."""


class RebalanceInProgress(KafkaError, code=27):
    """The group is rebalancing; rejoin it."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """The offset commit is too large to be stored."""


class InvalidTxnState(KafkaError, code=48):
    """The transaction is not in a state that allows this."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """The producer id is not the transactional id's current one."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """The transaction timeout exceeds the broker's maximum."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """The previous transaction of this transactional id is not yet complete."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """The sender no longer coordinates this transactional id."""


class NonEmptyGroup(KafkaError, code=68):
    """The group still has members."""


class GroupIdNotFound(KafkaError, code=69):
    """The group does not exist."""


# KIP-394: the first join of a dynamic member gets a member id and must be repeated with it, so that
# joins of clients that died do not fill the group.
class MemberIdRequired(KafkaError, code=79):
    """Join again with the member id in this response."""


class GroupMaxSizeReached(KafkaError, code=81):
    """The group already has as many members as the broker allows."""


# KIP-345: for static members.
class FencedInstanceId(KafkaError, code=82):
    """Another member has taken over the same group instance id."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """Members of the group are subscribed to the topic."""


# KIP-447: OffsetFetch with require_stable waits for the end of the transaction by retrying.
class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """Offsets of open transactions are pending for the partition."""


# KIP-588: newer clients get this where older clients get InvalidProducerEpoch.
class ProducerFenced(KafkaError, code=90):
    """A newer producer with the same transactional id has taken over."""


class TransactionalIdNotFound(KafkaError, code=105):
    """The coordinator does not know that transactional id."""


# Codes 110 to 113 belong to the consumer protocol of KIP-848, which our coordinator does not offer:
# only a client of a newer broker gets them.
class FencedMemberEpoch(KafkaError, code=110):
    """The group coordinator has fenced the member's epoch."""


class UnreleasedInstanceId(KafkaError, code=111):
    """A live member still holds the group instance id."""


class UnsupportedAssignor(KafkaError, code=112):
    """The coordinator has no assignor with that name that all members know."""


class StaleMemberEpoch(KafkaError, code=113):
    """The member's epoch is older than the coordinator's; heartbeat first."""


# KIP-890: the partition was not part of the transaction; the producer may abort and continue, where
# InvalidTxnState would have been fatal.
class TransactionAbortable(KafkaError, code=120):
    """The transaction failed in a way that only an abort can settle."""


# Codes 121 to 124 concern share groups (KIP-932), which are new in Kafka 4: only for clients, as
# above.
class InvalidRecordState(KafkaError, code=121):
    """The share group does not hold the record in that state."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """The broker does not have that share session."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """The epoch is not the share session's next one."""


class FencedStateEpoch(KafkaError, code=124):
    """The share coordinator has a newer state epoch than the request."""
