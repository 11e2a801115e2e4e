"""Defines the outcomes of a handler. An outcome is a response, or an object that will produce the
response later.

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
"""Returns the response, or None if there is none (Produce with acks=0)."""


class Staged:
    """A request whose first stage is complete except for writing the logs."""

    __slots__ = ()

    @abstractmethod
    def answer(self) -> Message | Later | None:
        """Return the response, or a coroutine that returns it. Called when the logs have been
        written.

        The result is None if there is no response.
        """


LaterOutcome = Coroutine[Any, Any, Message | Staged | Later | None]
"""Returns the response, or an outcome that will produce it."""


class Hold(NamedTuple):
    """A request whose first stage is not complete yet.

    The next frame of the connection must wait until the coroutine has returned Staged or another
    coroutine.
    """

    until: LaterOutcome


Outcome = Message | Later | Hold | Staged


class Separate(NamedTuple):
    """The outcome of a single request that was staged together with others."""

    correlation_id: int
    answer: Message | Later


class StagedRun:
    """Consecutive requests of the same API and version that were staged together."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests in this run."""

    @abstractmethod
    def answers(self) -> bytes | list[Separate]:
        """Return either the frames of all responses or each response separately, in the order of
        the requests.

        Called when the logs have been written.
        """
