"""Drives the preparation of batches whose topics ask for more than a look at their header.

Most batches are ready at once. One that takes longer is what `Hold` is for: decompressing and
compressing go to a thread, and between slices of its walk the loop serves other connections. Of
those that unpack to much one is worked on at a time, so that a thousand bombs need the memory of
one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from barnabas.errors import CorruptData
from barnabas.storage.batch_validation import Limits, Steps, prepare

Step = Callable[[], bytes] | None

Preparation = Callable[[], Coroutine[Any, Any, memoryview]]
"""Begins what takes longer; the batch when it is awaited."""


class BatchConverter:
    """Prepares the batches of one broker."""

    __slots__ = ("_large", "walks_all")

    def __init__(self, *, walks_all: bool = False) -> None:
        self.walks_all = walks_all
        """Whether every record of every batch is walked (`barnabas.verify.all.records`)."""
        self._large = asyncio.Lock()

    def prepare(
        self, records: memoryview, limits: Limits, now_ms: int, *, is_doubted: bool = False
    ) -> memoryview | Preparation:
        """The batch to append, or what begins its conversion; raises the row for the producer.

        `records` must stay valid until then, and is written to. The conversion raises alike; it
        need not be begun, since connections end at any time.
        """
        steps = prepare(records, limits, now_ms, is_doubted=is_doubted)
        try:
            step = next(steps)
        except StopIteration as end:
            ready: memoryview = end.value
            return ready
        # Its first step says whether it has to unpack the batch, or only walks its records.
        return partial(_finish if step is None else self._finish_large, steps, step)

    async def _finish_large(self, steps: Steps, step: Step) -> memoryview:
        async with self._large:
            return await _finish(steps, step)


async def _finish(steps: Steps, step: Step) -> memoryview:
    try:
        while True:
            if step is None:
                # A slice of the walk is over; a batch may have a hundred thousand records.
                await asyncio.sleep(0)
                step = next(steps)
                continue
            result = failure = None
            try:
                result = await asyncio.to_thread(step)
            except CorruptData as error:
                # Without its frames, in which lies what a bomb unpacked to.
                failure = error.with_traceback(None)
            try:
                step = steps.send(result) if failure is None else steps.throw(failure)
            finally:
                del failure, result
    except StopIteration as end:
        batch: memoryview = end.value
        return batch
