"""The first or the last records of a search."""

from __future__ import annotations

from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.console.message_window import MessageWindow


def record(offset: int, at_ms: int, partition: int = 0) -> ConsumerRecord:
    return ConsumerRecord("t", partition, offset, at_ms, 0, None, b"v", ())


def test_the_last_records_are_kept_in_the_order_of_time() -> None:
    window = MessageWindow(2, keeps_last=True)
    for offset, at_ms in enumerate((30, 10, 40, 20)):
        window.add(record(offset, at_ms))
    assert window.is_full
    assert [each["offset"] for each in window.messages()] == [0, 2]
    assert window.dropped == {0: 3}  # older messages are read from below offset 4


def test_the_first_records_are_kept_and_the_others_are_read_again() -> None:
    window = MessageWindow(2, keeps_last=False)
    for offset, at_ms in enumerate((10, 20, 30)):
        window.add(record(offset, at_ms))
        window.add(record(offset, at_ms + 5, partition=1))
    assert [(each["partition"], each["offset"]) for each in window.messages()] == [(0, 0), (1, 0)]
    assert window.dropped == {0: 1, 1: 1}


def test_records_without_a_time_come_first() -> None:
    window = MessageWindow(5, keeps_last=True)
    window.add(record(0, 10))
    window.add(record(1, -1))
    assert [each["offset"] for each in window.messages()] == [1, 0]
