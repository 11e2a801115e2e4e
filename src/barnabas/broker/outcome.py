"""The outcome of a handler: the answer, or what leads to it.

Message    the answer
Staged     something was staged for the logs: the answer is built once they are written
Later      a coroutine that returns the answer
Hold       a coroutine; until it is done, the connection's next frame is not handled
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any

from barnabas.named_tuple import NamedTuple
from barnabas.protocol.codec import Message

Later = Coroutine[Any, Any, Message | None]
"""Returns the answer; None if the request has none (Produce with acks=0)."""


class Staged:
    """A request whose stage one only waits for the logs to be written."""

    __slots__ = ()

    @abstractmethod
    def answer(self) -> Message | Later | None:
        """Return the answer, or the coroutine that returns it; called once the logs are written.

        None: the request has no answer.
        """


LaterOutcome = Coroutine[Any, Any, Message | Staged | Later | None]
"""Returns the answer, or an outcome that leads to it."""


class Hold(NamedTuple):
    """Stage one is not over: the connection's next frame must not overtake this one. If the
    coroutine returns Staged or another coroutine, the next frame no longer waits."""

    until: LaterOutcome


Outcome = Message | Later | Hold | Staged


class Separate(NamedTuple):
    """The answer to one of several requests that were staged together."""

    correlation_id: int
    answer: Message | Later


class StagedRun:
    """Consecutive requests of one API and version, staged as one."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests."""

    @abstractmethod
    def answers(self) -> bytes | list[Separate]:
        """Return the frames of all answers, or each answer by itself, in the order of requests.

        Called once the logs are written.
        """
