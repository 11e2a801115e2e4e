"""Whether ages may be computed from the wall clock (ST-6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.runtime.clock_jumps import (
    JUMP_MS,
    LASTING_MS,
    START_LEAP_MS,
    ClockJumps,
    Finding,
    Turn,
)

EPOCH_MS = 1_700_000_000_000
DAY_MS = 86_400_000


class Machine:
    """A machine's two clocks, and who looks at them."""

    def __init__(self) -> None:
        self.jumps = ClockJumps()
        self.now_ms = 5_000
        self.ahead_ms = EPOCH_MS
        assert self.look() is None

    def look(self, after_ms: int = 1_000, by_ms: int = 0) -> Finding | None:
        """Look at them later, when the calendar has been set by that much."""
        self.now_ms += after_ms
        self.ahead_ms += by_ms
        return self.jumps.look(self.now_ms, self.now_ms + self.ahead_ms)

    def latest_ms(self) -> int:
        return self.jumps.latest_ms(self.now_ms, self.now_ms + self.ahead_ms)

    def lasts(self, for_ms: int) -> list[Finding]:
        """Look each second while the clock is not set."""
        found = (self.look() for _ in range(for_ms // 1_000))
        return [each for each in found if each is not None]


def test_the_first_look_has_nothing_to_compare_with() -> None:
    """A clock that is wrong at the start is believed, where no earlier time is known."""
    assert ClockJumps().look(0, 40 * 365 * DAY_MS) is None
    assert ClockJumps().look(10**9, 0) is None


def test_clocks_that_go_on_together_are_trusted() -> None:
    machine = Machine()
    assert machine.lasts(3_600_000) == []
    assert machine.look(after_ms=90 * DAY_MS) is None and machine.jumps.are_over


def test_a_jump_is_reported_once_and_nothing_ages_until_it_has_lasted() -> None:
    for by_ms in (30 * DAY_MS, -30 * DAY_MS):
        machine = Machine()
        assert machine.look(by_ms=by_ms) == Finding(Turn.JUMPED, by_ms)
        assert machine.lasts(LASTING_MS - 1_000) == [] and not machine.jumps.are_over
        assert machine.look() == Finding(Turn.LASTED, 0) and machine.jumps.are_over
        assert machine.lasts(600_000) == []


def test_a_jump_back_makes_it_as_if_nothing_had_happened() -> None:
    """ST-6: a month ahead for six seconds."""
    machine = Machine()
    machine.look(by_ms=30 * DAY_MS)
    assert machine.lasts(6_000) == []
    assert machine.look(by_ms=-30 * DAY_MS) == Finding(Turn.CORRECTED, -30 * DAY_MS)
    assert machine.jumps.are_over
    assert machine.lasts(600_000) == []


@pytest.mark.parametrize("by_ms", [30 * DAY_MS, -30 * DAY_MS])
@pytest.mark.parametrize("is_corrected", [False, True])
def test_what_is_written_in_doubt_is_never_too_old(by_ms: int, is_corrected: bool) -> None:
    """GC-3: neither if the clock is set right again nor if the new time was right."""
    machine = Machine()
    assert machine.latest_ms() == machine.now_ms + machine.ahead_ms
    machine.look(by_ms=by_ms)
    written_ms = machine.latest_ms()
    if is_corrected:
        machine.look(by_ms=-by_ms)
    else:
        machine.lasts(LASTING_MS)
    assert machine.jumps.are_over
    assert machine.latest_ms() == machine.now_ms + machine.ahead_ms
    age_ms = machine.latest_ms() - written_ms
    assert age_ms <= LASTING_MS + 2_000


def test_each_further_jump_has_to_last_by_itself() -> None:
    machine = Machine()
    machine.look(by_ms=DAY_MS)
    machine.lasts(LASTING_MS - 2_000)
    assert machine.look(by_ms=DAY_MS) == Finding(Turn.JUMPED, DAY_MS)
    machine.lasts(LASTING_MS - 2_000)
    assert not machine.jumps.are_over
    assert machine.look(by_ms=-2 * DAY_MS) == Finding(Turn.CORRECTED, -2 * DAY_MS)
    assert machine.jumps.are_over


def test_a_look_that_comes_late_counts_from_when_the_jump_was_seen() -> None:
    """Retention rounds may be hours apart: the jump may be as young as the look that found it."""
    machine = Machine()
    machine.look(after_ms=7 * 3_600_000, by_ms=DAY_MS)
    assert not machine.jumps.are_over
    assert machine.look(after_ms=LASTING_MS - 1) is None
    assert machine.look(after_ms=1) == Finding(Turn.LASTED, 0)


def test_a_minute_is_no_jump_and_a_little_more_is_one() -> None:
    machine = Machine()
    assert machine.look(by_ms=JUMP_MS) is None and machine.jumps.are_over
    assert machine.look(by_ms=-JUMP_MS) is None and machine.jumps.are_over
    assert machine.look(by_ms=-JUMP_MS - 1) is not None and not machine.jumps.are_over


def test_ntp_that_slews_for_hours_never_jumps() -> None:
    machine = Machine()
    for _ in range(7_200):
        assert machine.look(by_ms=-100) is None
    assert machine.jumps.are_over


def test_a_machine_that_was_suspended_is_trusted_again_after_a_while() -> None:
    """The monotonic clock stands still meanwhile, which looks like a jump, and lasts."""
    machine = Machine()
    assert machine.look(by_ms=9 * 3_600_000) is not None
    assert machine.lasts(2 * LASTING_MS) == [Finding(Turn.LASTED, 0)]
    assert machine.jumps.are_over


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2 * LASTING_MS),
        st.one_of(
            st.just(0),
            st.integers(-JUMP_MS, JUMP_MS),
            st.integers(-40 * DAY_MS, 40 * DAY_MS),
            st.sampled_from([DAY_MS, -DAY_MS]),
        ),
    ),
    max_size=30,
)


@given(STEPS)
def test_trusted_time_was_trusted_before_or_has_lasted(steps: list[tuple[int, int]]) -> None:
    """Whatever the calendar does: after a jump, ages are computed again only by the time of before,
    or by one at which no look within the lasting period has found a jump. Each jump is reported,
    and so is each end of the doubt, once."""
    machine = Machine()
    trusted_ahead_ms, jumped_at_ms = machine.ahead_ms, None
    for after_ms, by_ms in steps:
        was_over = machine.jumps.are_over
        found = machine.look(after_ms, by_ms)
        is_over = machine.jumps.are_over
        if abs(by_ms) > JUMP_MS:
            assert found is not None and found.by_ms == by_ms
            assert (found.turn is Turn.CORRECTED) == is_over
            jumped_at_ms = machine.now_ms
            if is_over:
                assert not was_over and abs(machine.ahead_ms - trusted_ahead_ms) <= JUMP_MS
        elif is_over and not was_over:
            assert found is not None and found.turn is Turn.LASTED
            assert jumped_at_ms is not None and machine.now_ms - jumped_at_ms >= LASTING_MS
        else:
            assert found is None and is_over == was_over
        if is_over:
            trusted_ahead_ms = machine.ahead_ms


@pytest.mark.parametrize("by_ms", [30 * DAY_MS, -30 * DAY_MS])
def test_a_leap_at_the_start_has_to_last_as_any_other(by_ms: int) -> None:
    """ST-6: the machine's clock is wrong when the broker starts, or it was stopped for long."""
    machine = Machine()
    wall_ms = machine.now_ms + machine.ahead_ms
    seen_ms = wall_ms - by_ms
    assert machine.jumps.begin(machine.now_ms, wall_ms, seen_ms) == Finding(Turn.STARTED, by_ms)
    assert not machine.jumps.are_over
    assert machine.jumps.earliest_ms(machine.now_ms, wall_ms) == min(wall_ms, seen_ms)
    assert machine.latest_ms() == max(wall_ms, seen_ms)
    assert machine.lasts(LASTING_MS + 2_000) == [Finding(Turn.LASTED, 0)]
    assert machine.jumps.are_over
    now_ms, wall_ms = machine.now_ms, machine.now_ms + machine.ahead_ms
    assert machine.jumps.earliest_ms(now_ms, wall_ms) == wall_ms


def test_a_clock_that_is_set_right_after_the_start_is_trusted_at_once() -> None:
    machine = Machine()
    wall_ms = machine.now_ms + machine.ahead_ms
    machine.jumps.begin(machine.now_ms, wall_ms, wall_ms - 30 * DAY_MS)
    assert machine.look(by_ms=-30 * DAY_MS) == Finding(Turn.CORRECTED, -30 * DAY_MS)
    assert machine.jumps.are_over


def test_a_restart_at_leisure_is_no_leap() -> None:
    machine = Machine()
    wall_ms = machine.now_ms + machine.ahead_ms
    assert machine.jumps.begin(machine.now_ms, wall_ms, wall_ms - START_LEAP_MS) is None
    assert machine.jumps.are_over
