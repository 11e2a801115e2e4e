"""Batches that a topic asks more of: at once if that is quick, else without keeping the loop."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable

import pytest

from barnabas.broker.partitions.batch_conversion import BatchConverter, Preparation
from barnabas.config import LogConfig
from barnabas.errors import InvalidRecord
from barnabas.records.batch import read_header, seal
from barnabas.records.compression import GZIP, ZSTD, compress
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.storage.batch_validation import Limits
from tests.kit.storage.disk import T0, batch

COMPACTED = Limits.of(LogConfig(cleanup_policy="compact"))
BOUNDED = Limits.of(LogConfig(message_timestamp_before_max_ms=1 << 50))
ZIPPED = Limits.of(LogConfig(compression_type="gzip"))


async def finish(outcome: memoryview | Preparation) -> tuple[memoryview, int]:
    """The batch, and how often somebody else had a turn meanwhile."""
    turns = 0
    loop = asyncio.get_running_loop()

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    turn()
    assert not isinstance(outcome, memoryview)
    return await outcome(), turns


def test_a_small_batch_is_ready_at_once() -> None:
    records = memoryview(batch(3))
    ready = BatchConverter().prepare(records, ZIPPED, T0)
    assert isinstance(ready, memoryview)
    assert read_header(ready).codec == 1
    with pytest.raises(InvalidRecord):
        BatchConverter().prepare(memoryview(batch(1)), COMPACTED, T0)


def test_a_long_conversion_need_not_be_awaited() -> None:
    """UX-4: a connection may end first, and nothing has begun that would complain of it."""
    left = BatchConverter().prepare(memoryview(batch(20_000)), BOUNDED, T0)
    assert not isinstance(left, memoryview) and not asyncio.iscoroutine(left)


def test_a_large_batch_lets_others_have_their_turn() -> None:
    records = batch(20_000)
    _, turns = asyncio.run(finish(BatchConverter().prepare(memoryview(records), BOUNDED, T0)))
    assert turns >= 4
    stored, _ = asyncio.run(finish(BatchConverter().prepare(memoryview(records), ZIPPED, T0)))
    assert list(iterate_records(stored)) == list(iterate_records(records))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda: batch(9000),
        lambda: bytearray(seal(read_header(batch(1, codec=ZSTD)), compress(ZSTD, bytes(17 << 20)))),
    ],
    ids=["no-key", "bomb"],
)
def test_what_is_found_later_is_raised_where_it_is_awaited(spoil: Callable[[], bytearray]) -> None:
    with pytest.raises(InvalidRecord):
        asyncio.run(finish(BatchConverter().prepare(memoryview(spoil()), COMPACTED, T0)))


def test_of_large_batches_one_is_unpacked_at_a_time() -> None:
    """UX-4: a thousand bombs need the memory of one; what is small does not wait for them."""
    order: list[str] = []

    async def note(name: str, outcome: memoryview | Preparation) -> None:
        assert not isinstance(outcome, memoryview)
        order.append(f"{name} begins")
        await outcome()
        order.append(f"{name} ends")

    async def race() -> None:
        preparer = BatchConverter()
        first, second = BatchBuilder(ZSTD), BatchBuilder(ZSTD)
        for i in range(12_000):
            first.append(T0, b"k%d" % i, bytes(1000))
        for i in range(1500):
            second.append(T0, b"k%d" % i, bytes(1000))
        small = BatchBuilder()
        for i in range(9000):
            small.append(T0, b"k%d" % i, b"")
        await asyncio.gather(
            *(
                note(name, preparer.prepare(memoryview(bytearray(each.build())), COMPACTED, T0))
                for name, each in (("first", first), ("second", second), ("small", small))
            )
        )

    asyncio.run(race())
    assert order.index("small ends") < order.index("first ends") < order.index("second ends")


def test_a_refusal_does_not_hold_what_the_batch_unpacked_to() -> None:
    """UX-4: else bombs fill the memory until the garbage collector comes by."""

    async def refuse() -> tuple[InvalidRecord, int]:
        header = read_header(batch(1, codec=GZIP))
        for size_bytes in (15 << 20, 17 << 20):
            bomb = bytearray(seal(header, compress(GZIP, bytes(size_bytes))))
            tracemalloc.start()
            outcome = BatchConverter().prepare(memoryview(bomb), COMPACTED, T0)
            assert not isinstance(outcome, memoryview)
            try:
                await outcome()
            except InvalidRecord as error:
                kept = error
            held = await held_at_last(2 << 20)
            tracemalloc.stop()
            assert held < 2 << 20, (kept, held)
        return kept, held

    async def held_at_last(little_bytes: int) -> int:
        """When the thread has let go of its result, whenever that is."""
        ends_at = time.monotonic() + 60
        while True:
            held, _ = tracemalloc.get_traced_memory()
            if held < little_bytes or time.monotonic() > ends_at:
                return held
            await asyncio.sleep(0.01)

    gc.disable()
    try:
        asyncio.run(refuse())
    finally:
        gc.enable()
