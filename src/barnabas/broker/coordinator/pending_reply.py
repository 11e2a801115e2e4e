"""Holds requests until a coordinator's machine and the log allow a response.

A response is sent once the high watermark has passed the records that it depends on, so that no
acknowledged state is lost in a leader change. A response about a transaction depends on everything
applied before it. For a response about a group, `Reply.after` is that offset: a heartbeat depends
on nothing, so a slow follower does not cause session timeouts.
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
    """Translate an error of the internal topic's partition to a coordinator error.

    `is_of_offsets` is True for an offset commit, the only request whose client can act on "too
    large".
    """
    # The client backs off and retries at the same coordinator.
    if isinstance(error, _UNAVAILABLE):
        return CoordinatorNotAvailable(str(error))
    # The client looks up the coordinator again.
    if isinstance(error, _ELSEWHERE):
        return NotCoordinator(str(error))
    if isinstance(error, _TOO_LARGE):
        return (InvalidCommitOffsetSize if is_of_offsets else UnknownServerError)(str(error))
    return error


class PendingReply(Staged):
    """A request whose response may have to wait."""

    __slots__ = ("_fail", "_future", "_message", "_offset", "_replica", "_timeout_ms")

    def __init__(self, replica: StateReplica, fail: Fail, timeout_ms: int) -> None:
        self._replica = replica
        self._fail = fail
        self._timeout_ms = timeout_ms
        self._message: Message | None = None
        self._offset = 0
        self._future: asyncio.Future[None] | None = None

    def give(self, message: Message, offset: int) -> None:
        """Set the response, which can be sent once the high watermark reaches the offset."""
        self._message = message
        self._offset = offset
        self._wake()

    def refuse(self, error: KafkaError) -> None:
        """Set an error as the response."""
        self._message = self._fail(error)
        self._offset = 0
        self._wake()

    def _wake(self) -> None:
        # The client may have disconnected, which cancels the future.
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def at_once(self) -> Message | None:
        """Return the response if it can be sent immediately, otherwise None."""
        return self._message if self._offset <= self._replica.high_watermark else None

    def answer(self) -> Message | Later:
        return self.at_once() or self.until_answered()

    async def until_answered(self) -> Message:
        """Wait for the response, and for the high watermark to reach the records that it
        reports.
        """
        if self._message is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        message = self._message
        assert message is not None
        if self._offset <= self._replica.high_watermark:
            return message
        try:
            # offsets.commit.timeout.ms: the outcome is open, because the records stay in the log.
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._replica.wait_for(self._offset)
        except TimeoutError:
            late = RequestTimedOut(f"not replicated within {self._timeout_ms} ms")
            return self._fail(as_coordinator(late))
        except KafkaError as error:
            return self._fail(as_coordinator(error))
        return message


class Joined(Staged):
    """Several outcomes, merged into one response."""

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
        # Await them one by one: if the client disconnects, no coroutine may remain unawaited.
        return self._join([await _answer_of(each) for each in self._outcomes])


ShardOutcome = Message | PendingReply | Joined
"""A shard's result for a request: the response, or an object that produces it later."""


def join_outcomes(
    outcomes: Sequence[ShardOutcome], join: Callable[[list[Message]], Message]
) -> Message | Joined:
    """Combine several shards' outcomes into one; `join` merges their responses, in order."""
    one = Joined(outcomes, join)
    return one.at_once() or one


async def settle(outcome: ShardOutcome, replicas: Replicas) -> Message:
    """Wait for an outcome's response, in a handler that has already awaited something."""
    if isinstance(outcome, Staged):
        replicas.write_staged()
    return await _answer_of(outcome)


def _at_once(outcome: ShardOutcome) -> Message | None:
    return outcome if isinstance(outcome, Message) else outcome.at_once()


async def _answer_of(outcome: ShardOutcome) -> Message:
    return outcome if isinstance(outcome, Message) else await outcome.until_answered()
