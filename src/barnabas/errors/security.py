"""Defines errors of authentication and authorization: principals, SASL, ACLs and tokens."""

from __future__ import annotations

from barnabas.errors.kafka_error import KafkaError


# Codes 29 to 31 name what the principal may not use, as in Kafka, so a client reads the topic or
# group from the row that carries the code. Where a name must stay secret, the code is
# UnknownTopicOrPartition.
class TopicAuthorizationFailed(KafkaError, code=29):
    """The principal may not do this to the topic."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """The principal may not do this to the group."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """The principal may not do this to the cluster."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """The broker does not offer that SASL mechanism."""


# Raised for a request that arrives before the exchange is over, and for a second handshake within
# it. A client cannot recover from it on this connection, which Kafka also closes.
class IllegalSaslState(KafkaError, code=34):
    """The request is not allowed at this point of the SASL exchange."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """The principal may not use the transactional id."""


class SecurityDisabled(KafkaError, code=54):
    """The broker has no authorizer, so there are no ACLs to work on."""


# KIP-152: a client whose authentication failed gets the reason with this code before the connection
# is closed. The message must not distinguish an unknown user from a wrong password.
class SaslAuthenticationFailed(KafkaError, code=58):
    """The credentials were rejected."""


# Codes 61 to 66 concern delegation tokens (KIP-48).
class DelegationTokenAuthDisabled(KafkaError, code=61):
    """The broker has delegation tokens disabled."""


class DelegationTokenNotFound(KafkaError, code=62):
    """The broker does not know that delegation token."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """The delegation token belongs to another principal."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Tokens cannot be requested over this kind of connection."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """The principal may not do this to the delegation token."""


class DelegationTokenExpired(KafkaError, code=66):
    """The delegation token has expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """This type of principal is not supported."""


# KIP-554: for SCRAM credentials, for example with too few iterations.
class UnacceptableCredential(KafkaError, code=93):
    """The credential does not meet the requirements."""


# KIP-590: for forwarded requests, which a cluster with ZooKeeper does not have.
class PrincipalDeserializationFailure(KafkaError, code=97):
    """The forwarded principal cannot be decoded."""
