"""Prepares batches whose records must be checked, converted or recompressed.

Most batches need no preparation. If a batch does, `Hold` is used. Decompression and compression
then run in a thread, and the loop over the records is interrupted regularly so that the event loop
can serve other connections. Batches that decompress to a large size are processed one at a time, so
a thousand decompression bombs need no more memory than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.errors import CorruptData

if TYPE_CHECKING:
    from barnabas.storage.batch_validation import Limits, Steps

Step = Callable[[], bytes] | None

Preparation = Callable[[], Coroutine[Any, Any, memoryview]]
"""Starts a preparation that takes longer. Awaiting the result returns the prepared batch."""


class BatchConverter:
    """Prepares the batches that one broker receives."""

    __slots__ = ("_large", "walks_all")

    def __init__(self, *, walks_all: bool = False) -> None:
        self.walks_all = walks_all
        """Whether every record of every batch is checked (`barnabas.verify.all.records`)."""
        self._large = asyncio.Lock()

    def prepare(
        self, records: memoryview, limits: Limits, now_ms: int, *, is_doubted: bool = False
    ) -> memoryview | Preparation:
        """Return the batch to append, or a function that starts converting it.

        This function and the conversion raise the error that is sent to the producer. `records` is
        modified, and must stay valid until the conversion ends. The conversion may never be
        started, because the connection can close at any time.
        """
        from barnabas.storage.batch_validation import prepare  # loaded with the first log

        steps = prepare(records, limits, now_ms, is_doubted=is_doubted)
        try:
            step = next(steps)
        except StopIteration as end:
            ready: memoryview = end.value
            return ready
        # The first step determines whether the batch must be decompressed or only iterated over.
        return partial(_finish if step is None else self._finish_large, steps, step)

    async def _finish_large(self, steps: Steps, step: Step) -> memoryview:
        async with self._large:
            return await _finish(steps, step)


async def _finish(steps: Steps, step: Step) -> memoryview:
    try:
        while True:
            if step is None:
                # Yield after each slice, because a batch can contain a hundred thousand records.
                await asyncio.sleep(0)
                step = next(steps)
                continue
            result = failure = None
            try:
                result = await asyncio.to_thread(step)
            except CorruptData as error:
                # Drop the traceback, because it refers to the decompressed data.
                failure = error.with_traceback(None)
            try:
                step = steps.send(result) if failure is None else steps.throw(failure)
            finally:
                del failure, result
    except StopIteration as end:
        batch: memoryview = end.value
        return batch
