"""The follower machine, as dialogues with a leader."""

from __future__ import annotations

import pytest

from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from barnabas.replication.follower import (
    Aligned,
    Append,
    EpochEnd,
    FetchBounds,
    Fetched,
    FetchFrom,
    Follower,
    Ignore,
    StartAt,
    Step,
    Truncate,
    Wait,
    aligned_offset,
)
from barnabas.replication.partition import Advance, Partition
from barnabas.types import TopicPartition
from tests.kit.replication.epoch_log import EpochLog

LEADER, OWN, OTHER = 0, 1, 2
BACKOFF_MS = 250


def _partition(high_watermark: int = 0, epoch: int = 7) -> Partition:
    partition = Partition(TopicPartition("t", 0), OWN, high_watermark=high_watermark)
    _elect(partition, LEADER, epoch)
    return partition


def _elect(partition: Partition, leader: int, epoch: int, end: int = 0) -> None:
    state = PartitionImage(leader, epoch, (LEADER, OWN), (LEADER, OWN, OTHER), epoch, 1)
    if leader == OWN:
        partition.become_leader(state, end)
    else:
        partition.become_follower(state)


def _follower(log: EpochLog, high_watermark: int = 0) -> Follower:
    """It follows in epoch 7."""
    return Follower(_partition(high_watermark), log, backoff_ms=BACKOFF_MS)


def _steps(*steps: Step) -> list[tuple[type[Step], Step]]:
    """To be compared: tuples of different kinds are equal if their fields are."""
    return [(type(step), step) for step in steps]


def _is(step: Step, expected: Step) -> bool:
    return _steps(step) == _steps(expected)


def _got(
    *,
    error: type[KafkaError] | None = None,
    high_watermark: int = 0,
    diverging: EpochEnd | None = None,
    size_bytes: int = 0,
) -> Fetched:
    return Fetched(error.code if error else 0, high_watermark, 0, diverging, size_bytes)


# --- following -----------------------------------------------------------------------------------


def test_an_empty_log_begins_at_its_start() -> None:
    assert _follower(EpochLog()).fetch_from() == FetchFrom(0, -1, 7, 0)
    assert _follower(EpochLog(start=40), 40).fetch_from() == FetchFrom(40, -1, 7, 40)
    assert _follower(EpochLog(start=40), 0).fetch_from() == FetchFrom(40, -1, 7, 40)


def test_records_are_appended_and_the_watermark_follows() -> None:
    """RE-6, RE-3"""
    log = EpochLog(0, 0, 3)
    follower = _follower(log)
    sent = follower.fetch_from()
    assert sent == FetchFrom(3, 3, 7, 0)
    got = _got(high_watermark=4, size_bytes=70)
    assert _is(follower.on_answer(sent, got), Append())
    log.append(7, 7)
    assert follower.on_appended(got) == [Advance(4)]
    assert follower.fetch_from() == FetchFrom(5, 7, 7, 0)
    assert follower.partition.log_end_offset == 5


def test_an_answer_without_records_brings_the_watermark() -> None:
    """RE-6"""
    follower = _follower(EpochLog(7))
    got = _got(high_watermark=1)
    assert _is(follower.on_answer(follower.fetch_from(), got), Append())
    assert follower.on_appended(got) == [Advance(1)]
    assert follower.on_appended(got) == []


def test_a_log_that_has_moved_is_followed_on() -> None:
    """What was asked for with the one before is appended to the one that has replaced it."""
    follower = _follower(EpochLog(7, 7))
    sent = follower.fetch_from()
    moved = EpochLog(7, 7)
    follower.on_log_moved(moved)
    got = _got(high_watermark=3, size_bytes=70)
    assert _is(follower.on_answer(sent, got), Append())
    moved.append(7)
    assert follower.on_appended(got) == [Advance(3)]
    assert follower.fetch_from() == FetchFrom(3, 7, 7, 0)


def test_an_answer_to_another_epoch_is_ignored() -> None:
    """Faults 3, rule 2: what a deposed leader says must not be appended, nor cut anything."""
    follower = _follower(EpochLog(0, 0))
    sent = follower.fetch_from()
    _elect(follower.partition, OTHER, 8)
    for got in (
        _got(high_watermark=2, size_bytes=9),
        _got(diverging=EpochEnd(0, 1)),
        _got(error=OffsetOutOfRange),
        _got(error=NotLeaderOrFollower),
    ):
        assert _is(follower.on_answer(sent, got), Ignore())
        assert follower.on_appended(got) == []
    assert follower.partition.high_watermark == 0


def test_an_answer_for_another_place_is_ignored() -> None:
    log = EpochLog(0, 0)
    follower = _follower(log)
    sent = follower.fetch_from()
    log.truncate(1)
    assert _is(follower.on_answer(sent, _got(size_bytes=9)), Ignore())
    log.append(5)
    assert _is(follower.on_answer(sent, _got(size_bytes=9)), Ignore()), "another record is there"


def test_a_replica_that_leads_by_now_does_not_follow() -> None:
    log = EpochLog(0, 0)
    follower = _follower(log)
    sent = follower.fetch_from()
    got = _got(high_watermark=9, size_bytes=9)
    assert _is(follower.on_answer(sent, got), Append())
    _elect(follower.partition, OWN, 8, end=2)
    assert follower.on_appended(got) == []
    assert _is(follower.on_answer(follower.fetch_from(), got), Ignore())
    assert follower.partition.high_watermark == 0


def test_a_watermark_from_before_an_election_is_not_taken() -> None:
    """The records were being written when another leader was elected."""
    follower = _follower(EpochLog(0, 0))
    got = _got(high_watermark=2)
    assert _is(follower.on_answer(follower.fetch_from(), got), Append())
    _elect(follower.partition, OTHER, 8)
    assert follower.on_appended(got) == []


@pytest.mark.parametrize(
    "error",
    [
        FencedLeaderEpoch,
        UnknownLeaderEpoch,
        NotLeaderOrFollower,
        KafkaStorageError,
        UnknownTopicOrPartition,
    ],
)
def test_an_error_is_waited_out(error: type[KafkaError]) -> None:
    follower = _follower(EpochLog(0))
    got = _got(error=error, high_watermark=-1)
    assert _is(follower.on_answer(follower.fetch_from(), got), Wait(BACKOFF_MS))
    assert follower.on_appended(got) == []
    assert follower.fetch_from().offset == 1


def test_what_was_not_to_be_appended_brings_no_watermark() -> None:
    follower = _follower(EpochLog(0, 0))
    got = _got(high_watermark=2)
    follower.on_answer(follower.fetch_from(), got)
    follower.on_answer(follower.fetch_from(), _got(error=KafkaStorageError))
    assert follower.on_appended(got) == []


# --- divergence ----------------------------------------------------------------------------------


def test_a_fork_is_cut_at_the_end_of_the_common_epoch() -> None:
    """RE-10: the dialogue of the module's head."""
    log = EpochLog(0, 0, 0, 1, 1)
    follower = _follower(log)
    sent = follower.fetch_from()
    assert sent == FetchFrom(5, 1, 7, 0)
    assert _is(follower.on_answer(sent, _got(diverging=EpochEnd(0, 3))), Truncate(3))
    log.truncate(3)
    sent = follower.fetch_from()
    assert sent == FetchFrom(3, 0, 7, 0)
    assert _is(follower.on_answer(sent, _got(size_bytes=9)), Append())


def test_nothing_of_a_diverging_answer_counts() -> None:
    """The watermark of the answer is of a log that this one is not yet aligned with."""
    follower = _follower(EpochLog(0, 0, 0, 1, 1))
    got = _got(diverging=EpochEnd(0, 3), high_watermark=4)
    follower.on_answer(follower.fetch_from(), got)
    assert follower.on_appended(got) == []
    assert follower.partition.high_watermark == 0


def test_a_watermark_is_no_place_to_cut_at() -> None:
    """KIP-101: the follower restarts with a stale watermark; its records are committed ones."""
    log = EpochLog(0, 0)
    follower = _follower(log, high_watermark=1)
    sent = follower.fetch_from()
    assert sent.offset == 2, "nothing was cut to the watermark"
    assert _is(follower.on_answer(sent, _got(high_watermark=2)), Append())


def test_two_fast_elections_are_unwound_step_by_step() -> None:
    """KIP-279: the leader never saw the epochs that are here, nor this log the leader's."""
    log = EpochLog(0, 0, 1, 1, 3, 3)
    leader = EpochLog(0, 0, 2, 2, 2, 7)
    follower = _follower(log)
    cuts = []
    while True:
        sent = follower.fetch_from()
        diverging = leader.diverging(sent.offset, sent.last_fetched_epoch)
        step = follower.on_answer(sent, _got(diverging=diverging))
        if not isinstance(step, Truncate):
            break
        cuts.append(step.offset)
        log.truncate(step.offset)
    assert cuts == [4, 2]
    assert log.epochs == [0, 0]
    assert _is(step, Append())


def test_an_epoch_without_records_is_forgotten_too() -> None:
    """A leader for a moment: its epoch began at the log's end, where another one's begins now."""
    log = EpochLog(0, 0)
    log.assign(4)
    leader = EpochLog(0, 0, 7)
    follower = _follower(log)
    sent = follower.fetch_from()
    assert sent == FetchFrom(2, 4, 7, 0)
    diverging = leader.diverging(2, 4)
    assert diverging == EpochEnd(0, 2)
    assert _is(follower.on_answer(sent, _got(diverging=diverging)), Truncate(2))
    log.truncate(2)
    assert follower.fetch_from() == FetchFrom(2, 0, 7, 0)


def test_a_cut_that_changes_nothing_is_not_tried_in_a_tight_loop() -> None:
    follower = _follower(EpochLog(0, 0))
    sent = follower.fetch_from()
    nonsense = _got(diverging=EpochEnd(0, 2))
    steps = [follower.on_answer(sent, nonsense) for _ in range(4)]
    wait = Wait(BACKOFF_MS)
    assert _steps(*steps) == _steps(Truncate(2), wait, Truncate(2), wait)


def test_after_an_unclean_election_committed_records_go_and_it_says_so() -> None:
    """RE-11: the watermark goes down with them."""
    log = EpochLog(0, 0, 0, 0)
    follower = _follower(log, high_watermark=3)
    got = _got(diverging=EpochEnd(0, 1))
    assert _is(follower.on_answer(follower.fetch_from(), got), Truncate(1, lost_committed=2))
    log.truncate(1)
    assert follower.partition.high_watermark == follower.partition.log_end_offset == 1


def test_a_cut_below_the_log_s_start_forgets_everything() -> None:
    log = EpochLog(3, 3, start=10)
    follower = _follower(log, high_watermark=11)
    got = _got(diverging=EpochEnd(3, 8))
    assert _is(follower.on_answer(follower.fetch_from(), got), StartAt(8, lost_committed=3))
    assert follower.partition.high_watermark == 8
    assert follower.partition.log_start_offset == 8


def test_a_cut_inside_of_a_batch_takes_the_watermark_with_it() -> None:
    log = EpochLog(0, 0, 0, 0)
    follower = _follower(log, high_watermark=3)
    assert _is(
        follower.on_answer(follower.fetch_from(), _got(diverging=EpochEnd(0, 3))), Truncate(3)
    )
    log.truncate(2)
    assert follower.fetch_from().offset == 2
    assert follower.partition.high_watermark == 2


def test_records_without_epochs_are_kept_as_far_as_they_are_committed() -> None:
    """ST-5: a log of an old format knows no epochs, so nothing else can be relied on."""
    log = EpochLog(-1, -1, -1)
    follower = _follower(log, high_watermark=2)
    sent = follower.fetch_from()
    assert sent == FetchFrom(2, -1, 7, 0), "nothing above is acknowledged"
    assert _is(follower.on_answer(sent, _got(size_bytes=9)), Truncate(2))
    log.truncate(2)
    assert _is(follower.on_answer(follower.fetch_from(), _got(size_bytes=9)), Append())


# --- out of range --------------------------------------------------------------------------------


def _out_of_range(log: EpochLog, high_watermark: int = 0) -> Follower:
    follower = _follower(log, high_watermark)
    assert _is(
        follower.on_answer(follower.fetch_from(), _got(error=OffsetOutOfRange)), FetchBounds()
    )
    return follower


def test_what_the_leader_has_deleted_is_skipped() -> None:
    """A follower that was away for long: it begins where the leader's log begins."""
    follower = _out_of_range(EpochLog(0, 0, 0), 2)
    assert _is(follower.on_bounds(10, 90), StartAt(10))
    assert follower.partition.high_watermark == follower.partition.log_end_offset == 10


def test_a_leader_that_ends_below_has_it_cut() -> None:
    """RE-11: only after an unclean election."""
    follower = _out_of_range(EpochLog(0, 0, 0), 3)
    assert _is(follower.on_bounds(0, 1), Truncate(1, lost_committed=2))
    follower = _out_of_range(EpochLog(3, 3, start=50), 51)
    assert _is(follower.on_bounds(0, 49), StartAt(49, lost_committed=2))


def test_who_is_in_range_by_now_tries_again() -> None:
    follower = _out_of_range(EpochLog(0, 0, 0), 3)
    assert _is(follower.on_bounds(3, 3), Wait(BACKOFF_MS))
    assert follower.fetch_from().offset == 3


def test_bounds_of_another_time_are_ignored() -> None:
    """Truncation is fenced by the epoch, whatever asked for it."""
    assert _is(_follower(EpochLog(0, 0, 0)).on_bounds(0, 1), Ignore()), "no bounds were requested"
    follower = _out_of_range(EpochLog(0, 0, 0), 3)
    _elect(follower.partition, OTHER, 8)
    assert _is(follower.on_bounds(0, 1), Ignore())
    follower = _out_of_range(EpochLog(0, 0, 0), 3)
    _elect(follower.partition, OWN, 8, end=3)
    assert _is(follower.on_bounds(10, 10), Ignore())
    follower = _out_of_range(EpochLog(0, 0, 0))
    follower.on_bounds(0, 1)
    assert _is(follower.on_bounds(0, 1), Ignore()), "it is asked for once"


# --- the rule of alignment -----------------------------------------------------------------------

FORKED = EpochLog(0, 0, 2, 2, 2, 5)


@pytest.mark.parametrize(
    ("leaders", "aligned"),
    [
        (EpochEnd(5, 9), Aligned(6, True)),
        (EpochEnd(5, 6), Aligned(6, True)),
        (EpochEnd(2, 4), Aligned(4, True)),
        (EpochEnd(2, 9), Aligned(5, True)),
        (EpochEnd(4, 7), Aligned(5, False)),
        (EpochEnd(1, 3), Aligned(2, False)),
        (EpochEnd(0, 1), Aligned(1, True)),
        (EpochEnd(-1, 4), Aligned(4, True)),
        (EpochEnd(-1, 9), Aligned(6, True)),
        (EpochEnd(-1, -1), Aligned(3, True)),
        (EpochEnd(9, 4), Aligned(4, True)),
    ],
    ids=[
        "ahead in the same epoch",
        "the same",
        "shorter in an older epoch",
        "longer in an older epoch",
        "an epoch that is not here",
        "an older epoch that is not here",
        "inside the first epoch",
        "an end without an epoch",
        "such an end above",
        "nothing known: the watermark",
        "newer than all here",
    ],
)
def test_where_two_logs_can_be_the_same_up_to(leaders: EpochEnd, aligned: Aligned) -> None:
    """RE-10, as by OffsetForLeaderEpoch below 2.7 and by a fetch's diverging epoch since."""
    assert aligned_offset(FORKED, leaders, high_watermark=3) == aligned


def test_an_epoch_older_than_the_log_leaves_nothing() -> None:
    log = EpochLog(4, 4, start=20)
    assert aligned_offset(log, EpochEnd(2, 31), high_watermark=20) == Aligned(20, True)
