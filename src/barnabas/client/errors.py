"""What can go wrong on the client's side of the wire.

What a broker answered is a `KafkaError`; these are the failures of which no broker tells. Each
message names the address or the partition, and what to do where there is something to do.
"""

from __future__ import annotations

from barnabas.errors import BarnabasError, CorruptData, InvalidTopic, KafkaError, error_for_code
from barnabas.types import TopicPartition


class Unreachable(BarnabasError):
    """A broker could not be reached or did not answer. Always worth another try."""


class ConnectionLost(Unreachable):
    """The connection could not be made, or ended under a request: its outcome is unknown."""


class CorruptAnswer(ConnectionLost, CorruptData):
    """An answer could not be read, which ended the connection: the outcome is unknown."""


class NoAnswer(Unreachable):
    """No answer within `request.timeout.ms`: the outcome is unknown."""


class NoBrokersAvailable(Unreachable):
    """Not one server of `bootstrap.servers`, nor any broker known from them, could be reached."""


class DeliveryTimedOut(BarnabasError):
    """A batch was not acknowledged within `delivery.timeout.ms`; it may be stored all the same."""


class BufferFull(BarnabasError):
    """No room in `buffer.memory` within `max.block.ms`."""


class InvalidTopicName(InvalidTopic, ValueError, code=InvalidTopic.code, name=InvalidTopic.name):
    """No topic can have this name."""


class UnknownPartition(BarnabasError):
    """The topic is there, a partition of this number is not, even after a fresh look."""


class NoOffsetForPartition(BarnabasError):
    """No position to read from, and `auto.offset.reset` is `none`."""


class LogTruncated(NoOffsetForPartition):
    """The log no longer holds what was read of it, and `auto.offset.reset` is `none` (KIP-320).

    An election of a replica that was behind, or a disk that lost its end. `diverged_at` is the
    first offset where the log differs from what was read, as far as that is known.
    """

    topic_partition: TopicPartition
    offset: int
    diverged_at: int | None


class CommitFailed(BarnabasError):
    """The group has moved on without this member; what it processed will come again elsewhere."""


class TransactionAborted(BarnabasError):
    """The record was not sent, since its transaction was aborted before that."""


class ClientClosed(BarnabasError):
    """The client was used after `close`, or closed before this was done."""


class ClientFailed(BarnabasError):
    """A task of the client ended by a mistake, its `__cause__`: close the client, report the bug.

    What the client owed fails with this: records without an outcome, and whoever waits.
    """


class ConcurrentUse(BarnabasError):
    """A consumer is used by one thread, or one task, at a time; another one is using it."""


def log_truncated(
    topic_partition: TopicPartition, offset: int, diverged_at: int | None
) -> LogTruncated:
    known = "where they part is not known" if diverged_at is None else f"they part at {diverged_at}"
    error = LogTruncated(
        f"the log of {topic_partition} is no longer the one that was read up to offset {offset} "
        f"({known}), and auto.offset.reset is none: seek to an offset that is there"
    )
    error.topic_partition = topic_partition
    error.offset = offset
    error.diverged_at = diverged_at
    return error


def broker_error(code: int, subject: str, said: str | None = None) -> KafkaError:
    """A broker's error code as an exception: about what, and what it means (or the broker said)."""
    kind = error_for_code(code)
    return kind(f"{subject}: {said or kind.meaning}")


def reason(kind: type[KafkaError] | KafkaError) -> str:
    """Why a broker refused: the error's name in Kafka's protocol, and its meaning."""
    return f"{kind.name}: {kind.meaning.rstrip('.')}"


def check(code: int, subject: str, said: str | None = None) -> None:
    """Raise `broker_error` unless the code is 0."""
    if code:
        raise broker_error(code, subject, said)
