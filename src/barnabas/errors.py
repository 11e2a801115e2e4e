"""All errors that Barnabas raises on purpose: one row per error of Kafka's protocol, and ours.

A `KafkaError` is sent to a peer as a code in a response, and raised by our client when it receives
one. The classes are named after Kafka's codes: NOT_CONTROLLER is `NotController`. `CorruptData` and
`OSError` are never sent: on disk they take a log directory offline, on the wire they close the
connection. The rows are those of Kafka 3.9; a row's docstring is its meaning.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

NONE = 0
"""The code of success; it has no class, since it is never raised."""

_COLOUR: Final = re.compile(r"\x1b\[\d*m")
_CAUSE: Final = "↳"  # how deltalake begins the line of a cause


class BarnabasError(Exception):
    """The root of all errors that Barnabas raises on purpose."""


class CorruptData(BarnabasError):
    """Malformed bytes, from a peer or from a disk."""


class ConfigError(BarnabasError):
    """An invalid setting; the message names it, the reason and what to do."""


def in_one_line(error: Exception) -> str:
    """An error's text and its causes, without the stack that a library appends."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    plain = (_COLOUR.sub("", line).strip() for line in rest)
    causes = [line.removeprefix(_CAUSE).strip() for line in plain if line.startswith(_CAUSE)]
    return ": ".join([first.strip(), *causes])


class KafkaError(BarnabasError):
    """An error of Kafka's protocol; without a message of its own its text is its `meaning`.

    `retriable`: the same request may succeed later without any change to it. `record_errors`: the
    indexes of the invalid records of a produced batch, with the problems (KIP-467).
    """

    code: ClassVar[int]
    name: ClassVar[str]  # as Kafka writes it: "UNKNOWN_TOPIC_OR_PARTITION"
    retriable: ClassVar[bool]
    meaning: ClassVar[str]
    record_errors: Sequence[tuple[int, str]] = ()

    def __init_subclass__(cls, *, code: int, retriable: bool = False, name: str = "") -> None:
        cls.code = code
        cls.name = name or _constant_case(cls.__name__)
        cls.retriable = retriable
        cls.meaning = cls.__doc__ or cls.name

    def __init__(self, message: str | None = None) -> None:
        super().__init__(self.meaning if message is None else message)


def _constant_case(class_name: str) -> str:
    """`NotController` -> "NOT_CONTROLLER"."""
    return "".join(f"_{c}" if c.isupper() else c for c in class_name).lstrip("_").upper()


class UnknownServerError(KafkaError, code=-1):
    """The broker met an error that it has no code for; its log says more."""


class OffsetOutOfRange(KafkaError, code=1):
    """The offset lies outside the log of this partition."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """The record batch fails its checksum, or its size or fields cannot be right."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """This broker does not host that topic or partition."""


class InvalidFetchSize(KafkaError, code=4):
    """The number of bytes asked for in the fetch is not a possible one."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """The partition has no leader at the moment; one is being elected."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """This broker is not the leader, or holds no replica, of that partition."""


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """The time given in the request was over before it could be completed."""


class BrokerNotAvailable(KafkaError, code=8):
    """The broker is not available."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """This broker's replica of the partition is not available."""


class MessageTooLarge(KafkaError, code=10):
    """The record batch is larger than the topic or broker accepts."""


class StaleControllerEpoch(KafkaError, code=11):
    """A newer controller has been elected than the one that sent this."""


class OffsetMetadataTooLarge(KafkaError, code=12):
    """The metadata string committed with an offset is too long."""


class NetworkException(KafkaError, code=13, retriable=True):
    """The connection broke before the answer came."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """The coordinator is still loading its state; ask again."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """There is no coordinator at the moment; ask again."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """This broker does not coordinate that group or transactional id."""


class InvalidTopic(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not allowed, or the operation is not on this topic."""


class RecordListTooLarge(KafkaError, code=18):
    """The record batches exceed the size of a segment."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Fewer replicas are in sync than acks=all demands; nothing was appended."""


class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """Appended, but fewer replicas are in sync than acks=all demands."""


class InvalidRequiredAcks(KafkaError, code=21):
    """acks must be -1, 0 or 1."""


class IllegalGeneration(KafkaError, code=22):
    """The group has moved on to another generation than the member's."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """The member shares no assignment protocol with the rest of its group."""


class InvalidGroupId(KafkaError, code=24):
    """The group's name is not allowed."""


class UnknownMemberId(KafkaError, code=25):
    """The coordinator does not know that member."""


class InvalidSessionTimeout(KafkaError, code=26):
    """The session timeout lies outside the broker's configured bounds."""


class RebalanceInProgress(KafkaError, code=27):
    """The group is rebalancing; join it again."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """The offset commit is too large to be stored."""


class TopicAuthorizationFailed(KafkaError, code=29):
    """The principal may not do this to the topic."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """The principal may not do this to the group."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """The principal may not do this to the cluster."""


class InvalidTimestamp(KafkaError, code=32):
    """A record's timestamp lies outside the bounds that the topic accepts."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """The broker does not offer that SASL mechanism."""


class IllegalSaslState(KafkaError, code=34):
    """That request is not allowed at this point of the SASL exchange."""


class UnsupportedVersion(KafkaError, code=35):
    """The broker does not speak that version of the API."""


class TopicAlreadyExists(KafkaError, code=36):
    """A topic of that name exists."""


class InvalidPartitions(KafkaError, code=37):
    """The number of partitions is not a possible one."""


class InvalidReplicationFactor(KafkaError, code=38):
    """The replication factor is below 1 or above the number of brokers."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """The replicas named for a partition are not a possible assignment."""


class InvalidConfig(KafkaError, code=40):
    """A config has an unknown name or a value that is not allowed."""


class NotController(KafkaError, code=41, retriable=True):
    """This broker is not the controller of the cluster."""


class InvalidRequest(KafkaError, code=42):
    """The request contradicts itself or lacks something."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """The stored or sent message format cannot do what is asked."""


class PolicyViolation(KafkaError, code=44):
    """A configured policy refuses the request."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """The producer's sequence number does not follow its last one."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """The producer has sent that sequence number before."""


class InvalidProducerEpoch(KafkaError, code=47):
    """A producer of the same id with a newer epoch has taken over."""


class InvalidTxnState(KafkaError, code=48):
    """The transaction is not in a state that allows this."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """The producer id is not the one that the transactional id has now."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """The transaction timeout exceeds the broker's maximum."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """The last transaction of this transactional id is not completed yet."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """The sender no longer coordinates this transactional id."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """The principal may not use the transactional id."""


class SecurityDisabled(KafkaError, code=54):
    """The broker has no authorizer, so there are no ACLs to work on."""


class OperationNotAttempted(KafkaError, code=55):
    """Not tried, since another part of the same request failed."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """The log directory that holds the partition is offline."""


class LogDirNotFound(KafkaError, code=57):
    """The broker has no such log directory."""


class SaslAuthenticationFailed(KafkaError, code=58):
    """The credentials were refused."""


class UnknownProducerId(KafkaError, code=59):
    """The log holds nothing of that producer any more."""


class ReassignmentInProgress(KafkaError, code=60):
    """The partition's replicas are being reassigned."""


class DelegationTokenAuthDisabled(KafkaError, code=61):
    """The broker has delegation tokens switched off."""


class DelegationTokenNotFound(KafkaError, code=62):
    """The broker knows no such delegation token."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """The delegation token belongs to another principal."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Tokens cannot be asked for over this kind of connection."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """The principal may not do this to the delegation token."""


class DelegationTokenExpired(KafkaError, code=66):
    """The delegation token has expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """That type of principal is not supported."""


class NonEmptyGroup(KafkaError, code=68):
    """The group still has members."""


class GroupIdNotFound(KafkaError, code=69):
    """There is no such group."""


class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """The broker has no fetch session of that id."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """The epoch is not the next one of the fetch session."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """The partition's leader has no listener of the name that was used."""


class TopicDeletionDisabled(KafkaError, code=73):
    """`delete.topic.enable` is false."""


class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """The leader epoch sent is older than the broker's."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """The leader epoch sent is newer than the broker's."""


class UnsupportedCompressionType(KafkaError, code=76):
    """The client's version cannot read that compression."""


class StaleBrokerEpoch(KafkaError, code=77):
    """The broker has registered again since this was sent."""


class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """The new leader's high watermark has not caught up with its epoch yet."""


class MemberIdRequired(KafkaError, code=79):
    """Join again with the member id of this answer."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """The preferred leader is not alive or not in sync."""


class GroupMaxSizeReached(KafkaError, code=81):
    """The group has as many members as the broker allows."""


class FencedInstanceId(KafkaError, code=82):
    """Another member has taken over the same group instance id."""


class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """No replica that could become leader is available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """The partition has the leader already that was to be elected."""


class NoReassignmentInProgress(KafkaError, code=85):
    """The partition is not being reassigned."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """Members of the group are subscribed to the topic."""


class InvalidRecord(KafkaError, code=87):
    """A record breaks a rule of its topic or of the format."""


class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """Offsets of open transactions are pending for the partition."""


class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """The quota for such requests is used up; wait and ask again."""


class ProducerFenced(KafkaError, code=90):
    """A newer producer with the same transactional id has taken over."""


class ResourceNotFound(KafkaError, code=91):
    """What the request names does not exist."""


class DuplicateResource(KafkaError, code=92):
    """What is to be created exists, or is named twice."""


class UnacceptableCredential(KafkaError, code=93):
    """The credential does not meet the requirements."""


class InconsistentVoterSet(KafkaError, code=94):
    """Sender and receiver do not agree on the set of voters."""


class InvalidUpdateVersion(KafkaError, code=95):
    """The update is based on an older version than the stored one."""


class FeatureUpdateFailed(KafkaError, code=96):
    """The features could not be updated."""


class PrincipalDeserializationFailure(KafkaError, code=97):
    """The forwarded principal cannot be decoded."""


class SnapshotNotFound(KafkaError, code=98):
    """There is no such snapshot."""


class PositionOutOfRange(KafkaError, code=99):
    """The position is negative or past the end of the snapshot."""


class UnknownTopicId(KafkaError, code=100, retriable=True):
    """This broker knows no topic of that id."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """A live broker is registered under the same id."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """No broker is registered under that id."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """The topic id is not the one that the log has."""


class InconsistentClusterId(KafkaError, code=104):
    """The cluster id is not this cluster's."""


class TransactionalIdNotFound(KafkaError, code=105):
    """The coordinator knows no such transactional id."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """The fetch session changed between topic names and topic ids."""


class IneligibleReplica(KafkaError, code=107):
    """The replica may not join the ISR now."""


class NewLeaderElected(KafkaError, code=108):
    """The change of the partition elected another leader."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """The offset has moved to remote storage."""


class FencedMemberEpoch(KafkaError, code=110):
    """The group coordinator has fenced the member's epoch."""


class UnreleasedInstanceId(KafkaError, code=111):
    """A live member still holds the group instance id."""


class UnsupportedAssignor(KafkaError, code=112):
    """The coordinator has no assignor of that name that all members know."""


class StaleMemberEpoch(KafkaError, code=113):
    """The member's epoch is older than the coordinator's; heartbeat first."""


class MismatchedEndpointType(KafkaError, code=114):
    """The request went to a broker but is for a controller, or the reverse."""


class UnsupportedEndpointType(KafkaError, code=115):
    """The receiver does not support that type of endpoint."""


class UnknownControllerId(KafkaError, code=116):
    """There is no controller of that id."""


class UnknownSubscriptionId(KafkaError, code=117):
    """The telemetry subscription id is not the current one; fetch it again."""


class TelemetryTooLarge(KafkaError, code=118):
    """The telemetry is larger than the broker accepts."""


class InvalidRegistration(KafkaError, code=119):
    """The controller considers the broker's registration invalid."""


class TransactionAbortable(KafkaError, code=120):
    """The transaction failed in a way that only an abort can settle."""


class InvalidRecordState(KafkaError, code=121):
    """The share group does not hold the record in that state."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """The broker has no such share session."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """The epoch is not the next one of the share session."""


class FencedStateEpoch(KafkaError, code=124):
    """The share coordinator has a newer state epoch than the request."""


class InvalidVoterKey(KafkaError, code=125):
    """The voter's key does not match the receiver's."""


class DuplicateVoter(KafkaError, code=126):
    """The voter is in the set of voters already."""


class VoterNotFound(KafkaError, code=127):
    """The voter is not in the set of voters."""


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether this process, or the machine, has too many open files, which is no disk failure."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


_BY_CODE: Mapping[int, type[KafkaError]] = MappingProxyType(
    {error.code: error for error in KafkaError.__subclasses__()}
)


def error_for_code(code: int) -> type[KafkaError]:
    """The row of `code`; `UnknownServerError` for an unknown code, from a newer peer.

    0 is no error and must not be passed.
    """
    assert code != NONE
    return _BY_CODE.get(code, UnknownServerError)
