"""Requests that a coordinator's machine answers: now, when the log has it, or when others come.

An answer counts once the high watermark has passed every record that was applied before it, its
own and others': what a coordinator has told must not be lost with its leader. So reading a group
waits like changing it, and there is no second copy of the state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.channel import Later, Outcome, Staged
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
    from barnabas.broker.replica import Replica
    from barnabas.broker.replicas import Replicas

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
    """What an error of the internal topic's partition means to a client of the coordinator.

    `is_of_offsets`: of a commit; only there does a client know what "too large" is about.
    """
    if isinstance(error, _UNAVAILABLE):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, _ELSEWHERE):
        return NotCoordinator(str(error))
    if isinstance(error, _TOO_LARGE):
        return (InvalidCommitOffsetSize if is_of_offsets else UnknownServerError)(str(error))
    return error


class Asked(Staged):
    """One request, from being asked until its answer may leave."""

    __slots__ = ("_fail", "_future", "_message", "_offset", "_replica", "_timeout_ms")

    def __init__(self, replica: Replica, fail: Fail, timeout_ms: int) -> None:
        self._replica = replica
        self._fail = fail
        self._timeout_ms = timeout_ms
        self._message: Message | None = None
        self._offset = 0
        self._future: asyncio.Future[None] | None = None

    def give(self, message: Message, offset: int) -> None:
        """This is the answer, once the high watermark has reached the offset."""
        self._message = message
        self._offset = offset
        self._wake()

    def refuse(self, error: KafkaError) -> None:
        """There will be no other answer than this error."""
        self._message = self._fail(error)
        self._offset = 0
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def at_once(self) -> Message | None:
        """The answer, if nothing has to be waited for."""
        return self._message if self._offset <= self._replica.high_watermark else None

    def answer(self) -> Message | Later:
        return self.at_once() or self._later()

    async def _later(self) -> Message:
        if self._message is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        message = self._message
        assert message is not None
        if self._offset <= self._replica.high_watermark:
            return message
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._replica.wait_for(self._offset)
        except TimeoutError:
            late = RequestTimedOut(f"not replicated within {self._timeout_ms} ms")
            return self._fail(as_coordinator(late))
        except KafkaError as error:
            return self._fail(as_coordinator(error))
        return message


class _Joined(Staged):
    """Several outcomes that make one answer."""

    __slots__ = ("_join", "_outcomes")

    def __init__(
        self, outcomes: Sequence[Outcome], join: Callable[[list[Message]], Message]
    ) -> None:
        self._outcomes = outcomes
        self._join = join

    def answer(self) -> Message | Later:
        outcomes = [each.answer() if isinstance(each, Staged) else each for each in self._outcomes]
        if all(isinstance(each, Message) for each in outcomes):
            return self._join(cast(list[Message], outcomes))
        return self._later(outcomes)

    async def _later(self, outcomes: Sequence[object]) -> Message:
        messages = []
        try:
            for outcome in outcomes:
                message = outcome if isinstance(outcome, Message) else await _awaited(outcome)
                messages.append(message)
        finally:
            # If the client has gone, nobody is going to await the rest of them.
            for outcome in outcomes[len(messages) :]:
                if isinstance(outcome, Coroutine):
                    outcome.close()
        return self._join(messages)


def joined(outcomes: Sequence[Outcome], join: Callable[[list[Message]], Message]) -> Outcome:
    """One outcome of those of several shards, whose answers `join` puts together, in order."""
    if all(isinstance(each, Message) for each in outcomes):
        return join(cast(list[Message], list(outcomes)))
    return _Joined(outcomes, join)


async def settled(outcome: Outcome, replicas: Replicas) -> Message:
    """The answer that an outcome comes to; for a handler that has awaited already."""
    answer: object = outcome
    if isinstance(outcome, Staged):
        replicas.write_staged()
        answer = outcome.answer()
    return answer if isinstance(answer, Message) else await _awaited(answer)


async def _awaited(outcome: object) -> Message:
    message = await cast(Coroutine[Any, Any, Message | None], outcome)
    assert message is not None, "a coordinator answers every request"
    return message
