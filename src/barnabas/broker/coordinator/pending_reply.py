"""Requests that a coordinator's machine answers: now, once the log has the records, or later.

An answer counts once the high watermark has passed the records that it reports: a coordinator's
answer must not be lost with its leader. A transaction's answer reports everything applied before
it. An answer about a group names what it waits for (`Reply.after`): a heartbeat waits for nothing,
so a slow follower costs no member its coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from barnabas.broker.outcome import Later, Staged
from barnabas.errors import (
    CoordinatorNotAvailable,
    InvalidCommitOffsetSize,
    InvalidFetchSize,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.coordinator.state_replica import StateReplica
    from barnabas.broker.partitions.replicas import Replicas

Fail = Callable[[KafkaError], Message]

_UNAVAILABLE = (
    UnknownTopicOrPartition,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
)
_ELSEWHERE = (NotLeaderOrFollower, KafkaStorageError)
_TOO_LARGE = (MessageTooLarge, RecordListTooLarge, InvalidFetchSize)


def as_coordinator(error: KafkaError, *, is_of_offsets: bool = False) -> KafkaError:
    """Translate an error of the internal topic's partition for a client of the coordinator.

    `is_of_offsets` is for a commit: only there does a client know what "too large" refers to.
    """
    # The client waits and asks the same coordinator again.
    if isinstance(error, _UNAVAILABLE):
        return CoordinatorNotAvailable(str(error))
    # The client looks for the coordinator again.
    if isinstance(error, _ELSEWHERE):
        return NotCoordinator(str(error))
    if isinstance(error, _TOO_LARGE):
        return (InvalidCommitOffsetSize if is_of_offsets else UnknownServerError)(str(error))
    return error


class PendingReply(Staged):
    """One request, from the question until its answer may be sent."""

    __slots__ = ("_fail", "_future", "_message", "_offset", "_replica", "_timeout_ms")

    def __init__(self, replica: StateReplica, fail: Fail, timeout_ms: int) -> None:
        self._replica = replica
        self._fail = fail
        self._timeout_ms = timeout_ms
        self._message: Message | None = None
        self._offset = 0
        self._future: asyncio.Future[None] | None = None

    def give(self, message: Message, offset: int) -> None:
        """Set the answer, which may be sent once the high watermark has reached the offset."""
        self._message = message
        self._offset = offset
        self._wake()

    def refuse(self, error: KafkaError) -> None:
        """Set an error as the only answer."""
        self._message = self._fail(error)
        self._offset = 0
        self._wake()

    def _wake(self) -> None:
        # The client may be gone, and its future with it.
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def at_once(self) -> Message | None:
        """The answer, if there is nothing to wait for."""
        return self._message if self._offset <= self._replica.high_watermark else None

    def answer(self) -> Message | Later:
        return self.at_once() or self.until_answered()

    async def until_answered(self) -> Message:
        """Wait for the answer, and for the high watermark to reach the records that it reports."""
        if self._message is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        message = self._message
        assert message is not None
        if self._offset <= self._replica.high_watermark:
            return message
        try:
            # offsets.commit.timeout.ms: the records stay in the log, so the outcome is open.
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._replica.wait_for(self._offset)
        except TimeoutError:
            late = RequestTimedOut(f"not replicated within {self._timeout_ms} ms")
            return self._fail(as_coordinator(late))
        except KafkaError as error:
            return self._fail(as_coordinator(error))
        return message


class Joined(Staged):
    """Several outcomes that form one answer."""

    __slots__ = ("_join", "_message", "_outcomes")

    def __init__(
        self, outcomes: Sequence[ShardOutcome], join: Callable[[list[Message]], Message]
    ) -> None:
        self._outcomes = outcomes
        self._join = join
        self._message: Message | None = None

    def at_once(self) -> Message | None:
        if self._message is None:
            messages = [_at_once(each) for each in self._outcomes]
            if None not in messages:
                self._message = self._join(cast(list[Message], messages))
        return self._message

    def answer(self) -> Message | Later:
        return self.at_once() or self.until_answered()

    async def until_answered(self) -> Message:
        # One by one, and each starts waiting only now: when the client goes, no coroutine may be
        # left that is not awaited.
        return self._join([await _answer_of(each) for each in self._outcomes])


ShardOutcome = Message | PendingReply | Joined
"""A shard's result for a request: the answer, or an object that will have it."""


def join_outcomes(
    outcomes: Sequence[ShardOutcome], join: Callable[[list[Message]], Message]
) -> Message | Joined:
    """Combine several shards' outcomes into one; `join` merges their answers, in order."""
    one = Joined(outcomes, join)
    return one.at_once() or one


async def settle(outcome: ShardOutcome, replicas: Replicas) -> Message:
    """Return the final answer of an outcome; for a handler that has already awaited."""
    if isinstance(outcome, Staged):
        replicas.write_staged()
    return await _answer_of(outcome)


def _at_once(outcome: ShardOutcome) -> Message | None:
    return outcome if isinstance(outcome, Message) else outcome.at_once()


async def _answer_of(outcome: ShardOutcome) -> Message:
    return outcome if isinstance(outcome, Message) else await outcome.until_answered()
