"""What a log's bytes say: what is there, for whom, and what no log may have."""

from __future__ import annotations

from barnabas.records.control_records import ABORT, COMMIT
from barnabas.records.record import BatchBuilder
from simulation.whole.history import Read
from simulation.whole.truth import Truth
from tests.simulation.whole.hand_made import ATOMIC_0, HandMade, Log

_CRC_AT = 17


def truth_of(log: Log) -> Truth:
    return Truth(bytes(log.data), 0, log.end)


def batch(value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(0, None, value)
    return builder.build()


def test_transactions_of_two_producers_in_one_log() -> None:
    """CO-6: what one aborts is hidden, though the other one's records stand between."""
    made = HandMade()
    for value, producer in ((b"a1", 1), (b"b1", 2), (b"a2", 1), (b"plain", -1)):
        made.stores(ATOMIC_0, value, producer)
    made.ends(ATOMIC_0, 1, ABORT)
    made.stores(ATOMIC_0, b"a3", 1)
    made.ends(ATOMIC_0, 2, COMMIT)
    made.ends(ATOMIC_0, 1, COMMIT)
    found = truth_of(made.logs[ATOMIC_0])
    seen = [Read(1, b"b1"), Read(3, b"plain"), Read(5, b"a3")]
    assert found.visible(0, 8, is_committed=True) == seen
    assert [read.offset for read in found.visible(0, 8, is_committed=False)] == [0, 1, 2, 3, 5]
    assert found.visible(2, 5, is_committed=True) == [Read(3, b"plain")]
    assert [found.is_committed(offset) for offset in (0, 1)] == [False, True]
    assert found.flaws == []


def test_what_is_open_is_hidden() -> None:
    made = HandMade()
    made.stores(ATOMIC_0, b"a1", 1)
    found = truth_of(made.logs[ATOMIC_0])
    assert found.visible(0, 1, is_committed=True) == []


def test_a_sound_log_has_no_flaws() -> None:
    log = Log()
    log.add(batch(b"one"), epoch=0)
    log.add(batch(b"two"), epoch=3)
    assert truth_of(log).flaws == []
    assert truth_of(log).leader_epoch == 3
    assert Truth.next_offset(bytes(log.data)) == 2


def test_a_log_may_begin_within_a_batch_but_not_behind_it() -> None:
    builder = BatchBuilder()
    for value in (b"one", b"two", b"three"):
        builder.append(0, None, value)
    log = Log()
    log.add(builder.build(), records=3)
    log.add(batch(b"four"))
    found = Truth(bytes(log.data), 1, log.end)
    assert found.flaws == []
    assert found.records == [Read(1, b"two"), Read(2, b"three"), Read(3, b"four")]
    assert Truth(bytes(log.data), 3, log.end).flaws == ["offset 0 stands where 3 was due"]


def test_a_gap_is_a_flaw() -> None:
    log = Log()
    log.add(batch(b"one"))
    log.end = 2
    log.add(batch(b"two"))
    assert truth_of(log).flaws == ["offset 2 stands where 1 was due"]


def test_an_end_before_the_watermark_is_a_flaw() -> None:
    log = Log()
    log.add(batch(b"one"))
    log.end = 2
    assert truth_of(log).flaws == ["the bytes end at 1, the high watermark is 2"]


def test_an_epoch_that_falls_is_a_flaw() -> None:
    log = Log()
    log.add(batch(b"one"), epoch=3)
    log.add(batch(b"two"), epoch=2)
    assert truth_of(log).flaws == ["at 1 epoch 2 comes after epoch 3"]


def test_a_wrong_checksum_is_a_flaw() -> None:
    log = Log()
    log.add(batch(b"one"))
    log.data[_CRC_AT] ^= 1
    assert truth_of(log).flaws == ["the batch at 0 fails its checksum"]
