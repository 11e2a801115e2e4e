"""Receive buffers that serve for good: not copied to grow, and never one that is looked at."""

from __future__ import annotations

from barnabas.broker.replication.receive_memory import ReceiveMemory


def test_a_buffer_is_used_again_when_no_view_of_it_is_left() -> None:
    memory = ReceiveMemory()
    first = id(memory.take(1000))
    assert id(memory.take(1000)) == first
    view = memoryview(memory.take(1000))[10:20]
    other = memory.take(1000)
    assert id(other) != first
    view.release()
    assert id(memory.take(1000)) == first


def test_two_take_turns() -> None:
    """The connection asks for the next buffer while the records of the last one are written."""
    memory = ReceiveMemory()
    seen = set()
    held = memoryview(memory.take(1000))
    for _ in range(10):
        taken = memory.take(1000)
        seen.add(id(taken))
        held = memoryview(taken)
        del taken
    assert len(seen) == 2
    held.release()


def test_all_are_as_large_as_the_largest_that_was_asked_for() -> None:
    memory = ReceiveMemory()
    assert len(memory.take(1000)) > 1000
    assert len(memory.take(1_000_000)) > 1_000_000
    assert len(memory.take(10)) > 1_000_000


def test_what_is_looked_at_is_kept_apart_even_if_more_are_needed_than_there_are() -> None:
    memory = ReceiveMemory()
    views = [memoryview(memory.take(100)) for _ in range(5)]
    for index, view in enumerate(views):
        view[:1] = bytes([index])
    assert [view[0] for view in views] == list(range(5))
