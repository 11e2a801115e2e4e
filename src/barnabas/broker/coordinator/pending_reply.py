"""Holds back the response to a request until a coordinator's machine and the log allow it.

A response is sent once the high watermark has passed the records on which the response depends.
State that has been acknowledged is therefore never lost when the leader changes. A response about a
transaction depends on everything that was applied before it. For a response about a group,
`Reply.after` gives the offset that the high watermark must reach. For example, a heartbeat depends
on no records, so a slow follower cannot cause session timeouts.
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
    """Translate an error of the internal topic's partition to the corresponding coordinator error.

    `is_of_offsets` is True for an offset commit, the only request whose client can respond to "too
    large".
    """
    # The client backs off and sends the request to the same coordinator again.
    if isinstance(error, _UNAVAILABLE):
        return CoordinatorNotAvailable(str(error))
    # The client looks up its coordinator again.
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
        """Set the response, which may be sent once the high watermark has reached this offset."""
        self._message = message
        self._offset = offset
        self._wake()

    def refuse(self, error: KafkaError) -> None:
        """Answer the request with an error."""
        self._message = self._fail(error)
        self._offset = 0
        self._wake()

    def _wake(self) -> None:
        # If the client has disconnected, the future has been cancelled.
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def at_once(self) -> Message | None:
        """Return the response if it can be sent immediately, or None if it cannot."""
        return self._message if self._offset <= self._replica.high_watermark else None

    def answer(self) -> Message | Later:
        return self.at_once() or self.until_answered()

    async def until_answered(self) -> Message:
        """Wait for the response, and then until the high watermark has reached the records that it
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
            # offsets.commit.timeout.ms: the outcome of the commit is not known, because its records
            # remain in the log.
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._replica.wait_for(self._offset)
        except TimeoutError:
            late = RequestTimedOut(f"not replicated within {self._timeout_ms} ms")
            return self._fail(as_coordinator(late))
        except KafkaError as error:
            return self._fail(as_coordinator(error))
        return message


class Joined(Staged):
    """Several outcomes that are merged into a single response."""

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
        # Await one after another, so that no coroutine is left unawaited if the client disconnects.
        return self._join([await _answer_of(each) for each in self._outcomes])


ShardOutcome = Message | PendingReply | Joined
"""A shard's result for a request, which is either the response or an object that will produce it
later.
"""


def join_outcomes(
    outcomes: Sequence[ShardOutcome], join: Callable[[list[Message]], Message]
) -> Message | Joined:
    """Combine the outcomes of several shards into one. `join` merges their responses, which are in
    the same order.
    """
    one = Joined(outcomes, join)
    return one.at_once() or one


async def settle(outcome: ShardOutcome, replicas: Replicas) -> Message:
    """Wait for an outcome's response. Used by handlers that have already awaited something."""
    if isinstance(outcome, Staged):
        replicas.write_staged()
    return await _answer_of(outcome)


def _at_once(outcome: ShardOutcome) -> Message | None:
    return outcome if isinstance(outcome, Message) else outcome.at_once()


async def _answer_of(outcome: ShardOutcome) -> Message:
    return outcome if isinstance(outcome, Message) else await outcome.until_answered()
