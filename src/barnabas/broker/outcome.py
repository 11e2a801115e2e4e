"""Defines a handler's outcome: a response, or an object that produces one later.

Message    the response
Staged     a batch was staged for the logs: the response is built once they are written
Later      a coroutine that returns the response
Hold       a coroutine; until it is done, the connection's next frame is not handled
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any

from barnabas.named_tuple import NamedTuple
from barnabas.protocol.codec import Message

Later = Coroutine[Any, Any, Message | None]
"""Returns the response; None if there is none (Produce with acks=0)."""


class Staged:
    """A request whose stage one is complete except for writing the logs."""

    __slots__ = ()

    @abstractmethod
    def answer(self) -> Message | Later | None:
        """Return the response, or a coroutine that returns it; called once the logs are written.

        None means that there is no response.
        """


LaterOutcome = Coroutine[Any, Any, Message | Staged | Later | None]
"""Returns the response, or an outcome that produces it."""


class Hold(NamedTuple):
    """A request whose stage one has not finished.

    The connection's next frame must wait until the coroutine returns Staged or another coroutine.
    """

    until: LaterOutcome


Outcome = Message | Later | Hold | Staged


class Separate(NamedTuple):
    """The outcome of one of several requests staged together."""

    correlation_id: int
    answer: Message | Later


class StagedRun:
    """Consecutive requests of one API and version, staged together."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests."""

    @abstractmethod
    def answers(self) -> bytes | list[Separate]:
        """Return the frames of all responses, or each response separately, in request order.

        Called once the logs are written.
        """
