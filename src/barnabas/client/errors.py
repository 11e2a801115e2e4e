"""Defines the errors that originate on the client's side of the connection.

Errors from a broker are `KafkaError`s; all other errors are defined in this module. Each message
names the address or the partition and suggests a remedy if possible.
"""

from __future__ import annotations

from barnabas.errors import (
    BarnabasError,
    CorruptData,
    IllegalSaslState,
    InvalidTopic,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    error_for_code,
)
from barnabas.types import TopicPartition

AUTHENTICATION_ERRORS = (SaslAuthenticationFailed, UnsupportedSaslMechanism, IllegalSaslState)
"""The errors with which a broker refuses to admit this client. Retrying does not help."""


class Unreachable(BarnabasError):
    """A broker could not be reached or did not respond. Always retriable."""


class ConnectionLost(Unreachable):
    """The connection failed, or ended before the response to a request. The outcome is unknown."""


class CorruptAnswer(ConnectionLost, CorruptData):
    """A response could not be decoded, so the connection was closed. The outcome is unknown."""


class NoAnswer(Unreachable):
    """No response arrived within `request.timeout.ms`. The outcome is unknown."""


class NoBrokersAvailable(Unreachable):
    """No server in `bootstrap.servers`, and no broker learned from one, could be reached."""


class DeliveryTimedOut(BarnabasError):
    """A batch was not acknowledged within `delivery.timeout.ms`. It may still be stored."""


class BufferFull(BarnabasError):
    """No room became available in `buffer.memory` within `max.block.ms`."""


class InvalidTopicName(InvalidTopic, ValueError, code=InvalidTopic.code, name=InvalidTopic.name):
    """The name is not a valid topic name."""


class SerializationError(BarnabasError, ValueError):
    """A serializer or deserializer cannot convert a key or value."""


class RecordDeserializationError(SerializationError):
    """A record cannot be deserialized. To skip it, `seek` to `offset` + 1."""

    topic_partition: TopicPartition
    offset: int


class MissingLibrary(BarnabasError, ImportError):
    """A library that this method needs is not installed. The message says how to install it."""


class UnknownPartition(BarnabasError):
    """The topic has no partition with this number, even according to fresh metadata."""


class NoOffsetForPartition(BarnabasError):
    """There is no position to start from, and `auto.offset.reset` is `none`."""


class LogTruncated(NoOffsetForPartition):
    """The log has lost records that were read, and `auto.offset.reset` is `none` (KIP-320).

    An out-of-sync replica was elected leader, or a disk lost the end of the log. `diverged_at` is
    the first offset at which the log differs from the records that were read, if known.
    """

    topic_partition: TopicPartition
    offset: int
    diverged_at: int | None


class CommitFailed(BarnabasError):
    """The group has removed this member. Another member will read its latest records again."""


class TransactionAborted(BarnabasError):
    """The record was not sent, because its transaction had been aborted."""


class RecordsPurged(BarnabasError):
    """The record was not sent because `purge` was called.

    If the record was waiting for a retry, the outcome is unknown.
    """


class ClientClosed(BarnabasError):
    """The client was used after `close`, or was closed before the call finished."""


class ClientFailed(BarnabasError):
    """A client task failed because of a bug (`__cause__`). Close the client and report the bug.

    Waiting callers fail with this error, as do all records whose outcome is not known yet.
    """


class ConcurrentUse(BarnabasError):
    """Another thread or task is using the consumer, which only one may use at a time."""


def closed_too_early() -> ClientClosed:
    """Return the error for a record that has no outcome when the time for `close` runs out."""
    return ClientClosed(
        "the producer was closed before the record was acknowledged, within the timeout_ms of "
        "close(): raise it; a record that was sent may be stored anyway"
    )


def log_truncated(
    topic_partition: TopicPartition, offset: int, diverged_at: int | None
) -> LogTruncated:
    known = "at an unknown offset" if diverged_at is None else f"at offset {diverged_at}"
    error = LogTruncated(
        f"the log of {topic_partition}, read up to offset {offset}, was truncated "
        f"{known}, and auto.offset.reset is none: seek to a valid offset"
    )
    error.topic_partition = topic_partition
    error.offset = offset
    error.diverged_at = diverged_at
    return error


def broker_error(code: int, subject: str, message: str | None = None) -> KafkaError:
    """Turn an error code into an exception with the broker's message or the code's meaning."""
    kind = error_for_code(code)
    return kind(f"{subject}: {message or kind.meaning}")


def reason(kind: type[KafkaError] | KafkaError) -> str:
    """Return the Kafka name of the error and its meaning."""
    return f"{kind.name}: {kind.meaning.rstrip('.')}"


def check(code: int, subject: str, message: str | None = None) -> None:
    """Raise `broker_error` unless the code is 0."""
    if code:
        raise broker_error(code, subject, message)
