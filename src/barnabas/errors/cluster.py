"""Defines the errors of any request, and of brokers, controllers, log directories and settings."""

from __future__ import annotations

from barnabas.errors.kafka_error import KafkaError


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """The time given in the request ran out before the request was completed."""


class BrokerNotAvailable(KafkaError, code=8):
    """The broker is not available."""


class StaleControllerEpoch(KafkaError, code=11):
    """A controller newer than the sender has been elected."""


class NetworkException(KafkaError, code=13, retriable=True):
    """The connection broke before the response arrived."""


class UnsupportedVersion(KafkaError, code=35):
    """The broker does not support that version of the API."""


class InvalidConfig(KafkaError, code=40):
    """A config has an unknown name or a value that is not allowed."""


class NotController(KafkaError, code=41, retriable=True):
    """This broker is not the controller of the cluster."""


class InvalidRequest(KafkaError, code=42):
    """The request contradicts itself or lacks something."""


class PolicyViolation(KafkaError, code=44):
    """A configured policy rejects the request."""


class OperationNotAttempted(KafkaError, code=55):
    """This part was not attempted, because another part of the same request failed."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """The log directory that holds the partition is offline."""


class LogDirNotFound(KafkaError, code=57):
    """The broker has no such log directory."""


# KIP-380: the request was meant for, or comes from, the broker's previous registration.
class StaleBrokerEpoch(KafkaError, code=77):
    """The broker has re-registered since this was sent."""


# KIP-599: for creating and deleting topics, and adding partitions.
class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """The quota for such requests is used up; wait and try again."""


class ResourceNotFound(KafkaError, code=91):
    """The request names something that does not exist."""


class DuplicateResource(KafkaError, code=92):
    """The request creates something that exists, or names it twice."""


# A broker with ZooKeeper never sends the errors of KRaft's quorum, which are this one and those
# below about voters, features, registrations and controllers. A client may get them from other
# clusters.
class InconsistentVoterSet(KafkaError, code=94):
    """The sender and the receiver have different sets of voters."""


class InvalidUpdateVersion(KafkaError, code=95):
    """The update is based on a version older than the stored one."""


class FeatureUpdateFailed(KafkaError, code=96):
    """The features could not be updated."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """A live broker is already registered with the same id."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """No broker is registered with that id."""


class InconsistentClusterId(KafkaError, code=104):
    """The cluster id is not this cluster's."""


class MismatchedEndpointType(KafkaError, code=114):
    """The request went to a broker but is for a controller, or vice versa."""


class UnsupportedEndpointType(KafkaError, code=115):
    """The receiver does not support that type of endpoint."""


class UnknownControllerId(KafkaError, code=116):
    """No controller has that id."""


# Codes 117 and 118 concern client metrics (KIP-714).
class UnknownSubscriptionId(KafkaError, code=117):
    """The telemetry subscription id is not the current one; fetch it again."""


class TelemetryTooLarge(KafkaError, code=118):
    """The telemetry is larger than the broker accepts."""


class InvalidRegistration(KafkaError, code=119):
    """The controller considers the broker's registration invalid."""


class InvalidVoterKey(KafkaError, code=125):
    """The voter's key does not match the receiver's."""


class DuplicateVoter(KafkaError, code=126):
    """The voter is already in the set of voters."""


class VoterNotFound(KafkaError, code=127):
    """The voter is not in the set of voters."""
