"""What a controller has to look at in its next round, and who waits for the end of it.

Everything that comes from outside only leaves its mark here, in whatever order and however often;
the round takes the marks and looks what is so by then. When the tenure has ended nothing comes in
any more, and nobody is left waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from barnabas.broker.controller.log_ends import Said
from barnabas.controller.controller import Controller, Decision
from barnabas.errors import NotController
from barnabas.types import TopicPartition

T = TypeVar("T")


class Question(NamedTuple):
    """To the machine; `answer` gets what comes beside the decision."""

    decide: Callable[[Controller], tuple[Decision, Any]]
    answer: asyncio.Future[Any]


class Agenda:
    """Of one tenure."""

    __slots__ = (
        "_due",
        "_served",
        "_waiting",
        "changed",
        "ended",
        "ends",
        "is_imbalanced",
        "is_set_anew",
        "lost",
        "questions",
        "reconfigured",
        "touched",
    )

    def __init__(self) -> None:
        self._due = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for the end of the round begun next
        self._served: list[asyncio.Future[None]] = []  # for the end of the one that is under way
        self.ended: Exception | None = None
        self.changed: dict[str, None] = {}
        """Paths whose children may have changed."""
        self.touched: dict[str, None] = {}
        """Topics whose node has changed."""
        self.reconfigured: dict[str, None] = {}
        self.lost: dict[tuple[int, int], dict[TopicPartition, None]] = {}
        """By broker and registration (-1: whichever), what it has lost with a log directory."""
        self.ends: list[Said] = []
        self.questions: list[Question] = []
        self.is_set_anew = False
        self.is_imbalanced = False
        """Perhaps: nobody has looked for a while."""

    # --- what comes in ---------------------------------------------------------------------------

    def look(self, path: str) -> None:
        """One of the watched lists may have changed."""
        self.changed[path] = None
        self.wake()

    def touch(self, topic: str) -> None:
        """The node of a topic has changed."""
        self.touched[topic] = None
        self.wake()

    def reconfigure(self, topic: str) -> None:
        """The config of a topic has changed."""
        self.reconfigured[topic] = None
        self.wake()

    def lose(self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = -1) -> None:
        """A live broker has lost these with a log directory."""
        self.lost.setdefault((broker_id, broker_epoch), {}).update(dict.fromkeys(names))
        self.wake()

    def hear_of_ends(self, said: Said) -> None:
        """Some replicas have said where their logs end."""
        self.ends.append(said)
        self.wake()

    async def whole_round(self) -> None:
        """Wait for a round that began after this call: it has seen whatever was committed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(self._waiting, future)
        await future

    async def ask(self, decide: Callable[[Controller], tuple[Decision, T]]) -> T:
        """Have the machine decide, and return its answer when that is committed and delivered.

        Raises the KafkaError that `decide` raises, and NotController.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._add(self.questions, Question(decide, future))
        return await future

    def _add(self, those: list[Any], one: object) -> None:
        if self.ended is not None:
            raise NotController(f"the controller resigns: {self.ended}")
        those.append(one)
        self.wake()

    def wake(self) -> None:
        """Another round is due."""
        self._due.set()

    def end(self, error: Exception) -> None:
        """Have the tenure end with this."""
        self.ended = self.ended or error
        self.wake()

    # --- what a round does with it ---------------------------------------------------------------

    async def round_due(self) -> None:
        """Return when there is something to do; raises what has ended the tenure."""
        if self.ended is None:
            await self._due.wait()
        if self.ended is not None:
            raise self.ended

    def begin_round(self) -> None:
        """What comes from now on is due in another one."""
        self._due.clear()
        self._served, self._waiting = [*self._served, *self._waiting], []

    def end_round(self) -> None:
        """Let them go on who came before it began."""
        served, self._served = self._served, []
        for future in served:
            if not future.done():  # else cancelled: nobody waits any more
                future.set_result(None)

    def answered(self, result: object = None, error: Exception | None = None) -> None:
        """The first question is settled."""
        answer = self.questions.pop(0).answer
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def close(self, error: Exception) -> None:
        """The tenure is over: whoever waits gets the error."""
        waiting = [*self._served, *self._waiting, *(each.answer for each in self.questions)]
        self._served, self._waiting, self.questions = [], [], []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
