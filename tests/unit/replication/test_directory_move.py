"""The order of a move between log directories: copy, flush, prepare, switch."""

from __future__ import annotations

from barnabas.replication.directory_move import (
    TURN_BYTES,
    Bounds,
    Copy,
    DirectoryMove,
    Flush,
    Prepare,
    RaiseStart,
    StartAt,
    Step,
    Switch,
)


def steps(move: DirectoryMove, current: Bounds, turn: int = 10) -> list[type[Step]]:
    """All up to the switch, of a current replica to which nothing is appended; a turn copies so
    many offsets."""
    future, found = Bounds(0, 0), list[type[Step]]()
    while True:
        step = move.next_step(current, future)
        found.append(type(step))
        if type(step) is Copy:
            assert step.offset == future.log_end_offset
            end = min(step.offset + turn, current.log_end_offset)
            future = Bounds(future.log_start_offset, end)
            move.on_copied(TURN_BYTES, reached_end=end == current.log_end_offset)
        elif type(step) is StartAt:
            future = Bounds(step.offset, step.offset)
        elif type(step) is RaiseStart:
            future = Bounds(step.offset, future.log_end_offset)
        elif type(step) is Flush:
            move.on_flushed()
        elif type(step) is Prepare:
            move.on_prepared()
        else:
            return found


def test_an_empty_replica_is_prepared_all_the_same() -> None:
    assert steps(DirectoryMove(), Bounds(0, 0)) == [Prepare, Switch]


def test_what_is_there_is_copied_first() -> None:
    assert steps(DirectoryMove(), Bounds(0, 25)) == [Copy, Copy, Copy, Prepare, Switch]


def test_it_begins_where_the_current_one_begins() -> None:
    assert steps(DirectoryMove(), Bounds(7, 8)) == [StartAt, Copy, Prepare, Switch]
    move = DirectoryMove()
    assert move.next_step(Bounds(5, 20), Bounds(0, 10)) == RaiseStart(5)
    assert move.next_step(Bounds(10, 20), Bounds(0, 10)) == RaiseStart(10)
    assert move.next_step(Bounds(11, 20), Bounds(0, 10)) == StartAt(11)


def test_it_is_flushed_from_time_to_time() -> None:
    found = steps(DirectoryMove(), Bounds(0, 2_000))
    assert found.count(Flush) == 3
    assert found[:65] == [Copy] * 64 + [Flush]


def test_what_is_appended_to_the_last_moment_is_left_to_the_switch() -> None:
    move = DirectoryMove()
    assert move.next_step(Bounds(0, 5), Bounds(0, 0)) == Copy(0)
    move.on_copied(100, reached_end=True)
    assert type(move.next_step(Bounds(0, 9), Bounds(0, 5))) is Prepare
    move.on_prepared()
    assert move.next_step(Bounds(0, 9), Bounds(0, 5)) == Copy(5), "flushes take long"
    move.on_copied(100, reached_end=True)
    assert type(move.next_step(Bounds(0, 11), Bounds(0, 9))) is Switch
    move.on_copied(TURN_BYTES, reached_end=False)
    assert type(move.next_step(Bounds(0, 30), Bounds(0, 20))) is Copy, "that was too much"
