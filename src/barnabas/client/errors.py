"""Defines the errors that arise on the client's side of the connection.

A broker's errors are `KafkaError`s; this module defines all others. Each message states the address
or the partition and, if possible, a remedy.
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
"""The errors that mean that the broker does not admit this client; retrying does not help."""


class Unreachable(BarnabasError):
    """A broker could not be reached or did not answer. Always retriable."""


class ConnectionLost(Unreachable):
    """The connection could not be made, or ended during a request: the outcome is unknown."""


class CorruptAnswer(ConnectionLost, CorruptData):
    """A response could not be read, which ended the connection: the outcome is unknown."""


class NoAnswer(Unreachable):
    """No response arrived within `request.timeout.ms`: the outcome is unknown."""


class NoBrokersAvailable(Unreachable):
    """No server of `bootstrap.servers`, nor any broker known from them, could be reached."""


class DeliveryTimedOut(BarnabasError):
    """A batch was not acknowledged within `delivery.timeout.ms`; it may still be stored."""


class BufferFull(BarnabasError):
    """There was no room in `buffer.memory` within `max.block.ms`."""


class InvalidTopicName(InvalidTopic, ValueError, code=InvalidTopic.code, name=InvalidTopic.name):
    """No topic can have this name."""


class SerializationError(BarnabasError, ValueError):
    """A serializer or deserializer cannot convert a key or value."""


class RecordDeserializationError(SerializationError):
    """A record that was read cannot be deserialized: `seek` to `offset` + 1 skips it."""

    topic_partition: TopicPartition
    offset: int


class MissingLibrary(BarnabasError, ImportError):
    """A library that this method needs is not installed; the message says how to install it."""


class UnknownPartition(BarnabasError):
    """The topic has no partition with this number, even in fresh metadata."""


class NoOffsetForPartition(BarnabasError):
    """There is no position to start from, and `auto.offset.reset` is `none`."""


class LogTruncated(NoOffsetForPartition):
    """The log lost records that were read, and `auto.offset.reset` is `none` (KIP-320).

    An out-of-sync replica was elected, or a disk lost the end of the log. `diverged_at` is the
    first offset at which the log differs from the records that were read, if known.
    """

    topic_partition: TopicPartition
    offset: int
    diverged_at: int | None


class CommitFailed(BarnabasError):
    """The group has removed this member; another member will reread its latest records."""


class TransactionAborted(BarnabasError):
    """The record was not sent because its transaction was aborted first."""


class RecordsPurged(BarnabasError):
    """The record was not sent because `purge` was called.

    Its outcome is unknown if it was waiting for a retry.
    """


class ClientClosed(BarnabasError):
    """The client was used after `close`, or was closed before the call finished."""


class ClientFailed(BarnabasError):
    """A client task failed due to a bug (`__cause__`): close the client, and report the bug.

    Waiting callers, and records without an outcome, fail with this error.
    """


class ConcurrentUse(BarnabasError):
    """Another thread or task is using the consumer, which serves only one at a time."""


def closed_too_early() -> ClientClosed:
    """Return the error for a record without an outcome by the time limit of `close`."""
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
    """Turn a broker's error code into an exception, with its message or meaning."""
    kind = error_for_code(code)
    return kind(f"{subject}: {message or kind.meaning}")


def reason(kind: type[KafkaError] | KafkaError) -> str:
    """Return the error's Kafka name and its meaning."""
    return f"{kind.name}: {kind.meaning.rstrip('.')}"


def check(code: int, subject: str, message: str | None = None) -> None:
    """Raise `broker_error` unless the code is 0."""
    if code:
        raise broker_error(code, subject, message)
