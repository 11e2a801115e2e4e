"""What a handler returned, with its answer changed on its way out."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.outcome import Hold, Later, LaterOutcome, Outcome, Staged
from barnabas.protocol.codec import Message

Change = Callable[[Message | None], None]
"""Changes an answer in place; None: the request has none. What it raises ends the connection."""


def changed(outcome: Outcome, change: Change) -> Outcome:
    """The same outcome, whose answer `change` sees before it is sent."""
    if isinstance(outcome, Hold):
        return Hold(_held(outcome.until, change))
    return _changed(outcome, change)


def _changed(outcome: Message | Staged | Later, change: Change) -> Message | Staged | Later:
    if isinstance(outcome, Message):
        change(outcome)
        return outcome
    if isinstance(outcome, Staged):
        return _ChangedStaged(outcome, change)
    return _later(outcome, change)


async def _later(later: Later, change: Change) -> Message | None:
    answer = await later
    change(answer)
    return answer


async def _held(later: LaterOutcome, change: Change) -> Message | Staged | Later | None:
    outcome = await later
    if outcome is None:
        change(None)
        return None
    return _changed(outcome, change)


class _ChangedStaged(Staged):
    __slots__ = ("_change", "_staged")

    def __init__(self, staged: Staged, change: Change) -> None:
        self._staged = staged
        self._change = change

    def answer(self) -> Message | Later | None:
        answer = self._staged.answer()
        if answer is None or isinstance(answer, Message):
            self._change(answer)
            return answer
        return _later(answer, self._change)
