"""Keeps the latest answers of a model, because several viewers often look at the same figures."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from barnabas_pipeline.pages.filters import Filters
from barnabas_pipeline.pages.shapes import Answer

KEPT: Final = 64


class KeptAnswers:
    """The answers for the filters that were asked for last."""

    def __init__(self, compute: Callable[[Filters], Answer], most: int = KEPT) -> None:
        self._compute = compute
        self._most = most
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def answer(self, filters: Filters) -> Answer:
        """Return the answer for these filters, which is computed unless it is known."""
        found = self._answers.get(filters.key)
        if found is None:
            found = self._answers[filters.key] = self._compute(filters)
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)
        self._answers.move_to_end(filters.key)
        return found
