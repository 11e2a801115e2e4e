"""CO-2, CO-6: records out of the bytes of a fetch."""

from __future__ import annotations

import pytest

from barnabas.client.consumer.fetched import AbortedTransaction, Chunk
from barnabas.errors import CorruptData
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)


def batch(base_offset: int, count: int, producer_id: int = -1) -> bytes:
    """Records whose values are their offsets; transactional if there is a producer."""
    builder = BatchBuilder(producer_id=producer_id, is_transactional=producer_id >= 0)
    for offset in range(base_offset, base_offset + count):
        builder.append(1_000, None, b"%d" % offset)
    return builder.build(base_offset)


def marker(offset: int, kind: int, producer_id: int) -> bytes:
    return build_marker(Marker(offset, 1_000, kind, 0), producer_id, 0)


def chunk(data: bytes, offset: int = 0, aborted: tuple[AbortedTransaction, ...] = ()) -> Chunk:
    return Chunk(T0, offset, memoryview(data), aborted)


def offsets(fetched: Chunk) -> list[int]:
    found = []
    for record in fetched.iterate(check_crcs=True):
        assert int(record.value or b"-1") == record.offset
        found.append(record.offset)
    return found


def test_records_in_front_of_the_position_are_left_out() -> None:
    """CO-2: brokers send batches whole."""
    fetched = chunk(batch(0, 10) + batch(10, 5), offset=7)
    assert offsets(fetched) == list(range(7, 15))
    assert fetched.next_offset == 15


def test_a_torn_batch_at_the_end_waits_for_the_next_fetch() -> None:
    whole, torn = batch(0, 3), batch(3, 3)
    for cut in range(len(torn)):
        fetched = chunk(whole + torn[:cut])
        assert fetched.next_offset == 3
        assert bytes(fetched.records) == whole
    assert chunk(torn[:30]).records.nbytes == 0


def test_an_empty_batch_moves_the_position() -> None:
    """Compaction keeps a header for the producer's sequence, and no records."""
    header = bytearray(batch(0, 5))
    fetched = chunk(marker(5, COMMIT, 1))
    assert (offsets(fetched), fetched.next_offset) == ([], 6)
    assert chunk(bytes(header)).next_offset == 5


def test_read_committed_leaves_out_aborted_transactions() -> None:
    """CO-6: from where the broker says that it begins, to its marker; others are untouched."""
    data = (
        batch(0, 2, producer_id=1)  # aborted
        + batch(2, 2, producer_id=2)  # committed
        + batch(4, 1)  # no transaction
        + marker(5, ABORT, 1)
        + batch(6, 2, producer_id=1)  # the next transaction, committed
        + marker(8, COMMIT, 2)
        + marker(9, COMMIT, 1)
        + batch(10, 1, producer_id=2)  # aborted
        + marker(11, ABORT, 2)
        + batch(12, 1, producer_id=2)  # committed
    )
    aborted = (AbortedTransaction(2, 10), AbortedTransaction(1, 0))
    assert offsets(chunk(data, aborted=aborted)) == [2, 3, 4, 6, 7, 12]
    assert offsets(chunk(data)) == [0, 1, 2, 3, 4, 6, 7, 10, 12], "read_uncommitted"
    assert chunk(data, aborted=aborted).next_offset == 13


def test_a_flipped_bit_is_found_and_named() -> None:
    data = bytearray(batch(0, 3) + batch(3, 3))
    data[-2] ^= 1
    iterator = chunk(bytes(data)).iterate(check_crcs=True)
    assert [next(iterator).offset for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorruptData, match=r"partition t-0: the batch at offset 3 .* seek to 6"):
        next(iterator)
    unchecked = [record.value for record in chunk(bytes(data)).iterate(check_crcs=False)]
    assert unchecked[:5] == [b"0", b"1", b"2", b"3", b"4"] and unchecked[5] != b"5"


def test_batches_before_a_damaged_header_are_given_first() -> None:
    """The next fetch begins with the damaged one, which the broker refuses then."""
    data = bytearray(batch(0, 3) + batch(3, 3))
    data[len(batch(0, 3)) + 16] = 99  # no such magic
    fetched = chunk(bytes(data))
    assert (offsets(fetched), fetched.next_offset) == ([0, 1, 2], 3)
    with pytest.raises(CorruptData, match=r"offset 0 is damaged: .* magic 99; seek past it"):
        chunk(bytes(data[len(batch(0, 3)) :]))


@pytest.mark.parametrize("place", [1, 2, 3])
def test_no_base_offset_moves_a_reader(place: int) -> None:
    """No checksum covers it. Records in front are given; the next fetch begins with the damage."""
    for bit in range(64):
        batches = [bytearray(batch(100 + 10 * i, 10)) for i in range(4)]
        batches[place][7 - bit // 8] ^= 1 << bit % 8
        fetched = Chunk(T0, 100, memoryview(b"".join(batches)), (), 140)
        assert offsets(fetched) == list(range(100, 100 + 10 * place)), f"bit {bit}"
        assert fetched.next_offset == 100 + 10 * place


def test_an_answer_that_begins_elsewhere_is_damaged() -> None:
    """A first batch may begin below the position; it cannot end there, nor above the log."""
    after = batch(110, 10)
    for base_offset in (90, -10, 2**40, 105):
        with pytest.raises(CorruptData, match=r"at offset 100 is damaged: .*; seek past it"):
            Chunk(T0, 100, memoryview(batch(base_offset, 10)), (), 104)
    with pytest.raises(CorruptData, match=r"at offset 100 is damaged: .* cannot follow 114"):
        Chunk(T0, 100, memoryview(batch(105, 10) + after), (), 140)


def test_a_batch_behind_a_gap_needs_another_one_to_agree() -> None:
    """Compaction leaves gaps. What is left out comes with the next fetch."""
    data = batch(0, 3) + batch(7, 3) + batch(12, 2)
    fetched = Chunk(T0, 0, memoryview(data), (), 20)
    assert (offsets(fetched), fetched.next_offset) == ([0, 1, 2, 7, 8, 9], 10)
    fetched = Chunk(T0, 10, memoryview(batch(12, 2)), (), 20)
    assert (offsets(fetched), fetched.next_offset) == ([12, 13], 14)
    fetched = Chunk(T0, 0, memoryview(data), (), 14)
    assert fetched.next_offset == 14, "it ends where the log ends"


def test_damage_behind_a_gap_is_not_of_the_batch_before_it() -> None:
    data = bytearray(batch(5, 3) + batch(8, 3))
    data[len(batch(5, 3)) + 16] = 99
    fetched = Chunk(T0, 0, memoryview(data), (), 11)
    assert (offsets(fetched), fetched.next_offset) == ([5, 6, 7], 8)
