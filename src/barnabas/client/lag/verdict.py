"""Judges the lag of a group in one partition: its size, age, trend and cause. Pure.

    verdict = judge(history, patience_ms=30_000)
    print(verdict.state, verdict.records, verdict.age, verdict.catch_up_s, verdict.reason)

The verdict contains only facts that follow from the samples. A number that cannot be known is None,
and a bound is marked as a bound.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from barnabas.client.lag.history import History, Pace
from barnabas.client.lag.sample import Sample
from barnabas.counted import counted

PATIENCE_MS: Final = 30_000
"""The default patience: six times the default `auto.commit.interval.ms`."""


class State(Enum):
    """The state of a group in a partition, in order of increasing severity."""

    CAUGHT_UP = "caught up"
    CATCHING_UP = "catching up"
    STEADY = "steady"
    UNKNOWN = "unknown"
    FALLING_BEHIND = "falling behind"
    STOPPED = "stopped"
    STUCK = "stuck"

    @property
    def severity(self) -> int:
        """The rank of the state. The higher the rank, the more attention the group needs."""
        return list(State).index(self)


class Basis(Enum):
    """How the age of the first unread record was determined."""

    RECORD = "record"  # from the record's timestamp
    WATCH = "watch"  # from the polls between which the record was appended
    BOUND = "bound"  # a lower bound, because the record predates the first poll


class Age(NamedTuple):
    """How long the first unread record has been waiting."""

    seconds: float
    basis: Basis


class Verdict(NamedTuple):
    """The facts that are known about a group's lag in a partition."""

    state: State
    reason: str  # why it is in this state; "" if that needs no explanation
    records: int | None  # at most this many are unread
    is_exact: bool  # whether the number is exact
    age: Age | None
    pace: Pace | None  # None: fewer than two commits were seen
    catch_up_s: float | None  # time at the present rate; None: never, or unknown
    sample: Sample  # the last sample


NOTHING_UNREAD: Final = Age(0.0, Basis.RECORD)


def judge(history: History, patience_ms: int = PATIENCE_MS) -> Verdict:
    """Judge a history, which must contain at least one sample.

    A member is stuck if it has records to read but has not moved its offset for `patience_ms`.
    """
    sample = history.last
    state, reason = _decide(history, patience_ms)
    is_known = sample.end is not None and (sample.committed or 0) <= sample.end
    pace = history.pace()
    catch_up_s = None
    if state is State.CAUGHT_UP:
        catch_up_s = 0.0
    elif state is State.CATCHING_UP and pace is not None:
        catch_up_s = sample.offsets / -pace.trend
    if sample.lost:
        lost = f"deleted before the group read them: {counted(sample.lost, 'offset')}"
        reason = f"{reason}; {lost}" if reason else lost
    return Verdict(
        state,
        reason,
        sample.most if is_known else None,
        is_known and sample.least == sample.most,
        _age(history) if is_known else None,
        pace,
        catch_up_s,
        sample,
    )


def _decide(history: History, patience_ms: int) -> tuple[State, str]:
    sample = history.last
    if sample.end is None:
        return State.UNKNOWN, "the partition has no leader, so the end of its log is unknown"
    if sample.committed is not None and sample.committed > sample.end:
        return State.UNKNOWN, (
            f"the committed offset {sample.committed} is beyond the end of the log, {sample.end}: "
            "was the topic deleted and created again?"
        )
    if sample.most == 0:
        return State.CAUGHT_UP, _markers(sample.offsets)
    if sample.member is None and not _is_recent(history.moved_alone_at_ms, sample, patience_ms):
        if sample.unassigned_because:
            return State.UNKNOWN, sample.unassigned_because
        return State.STOPPED, "no member of the group has the partition"
    stalled_since_ms = history.stalled_since_ms
    if stalled_since_ms is not None and not _is_recent(stalled_since_ms, sample, patience_ms):
        return State.STUCK, _stuck(sample, sample.at_ms - stalled_since_ms)
    pace = history.pace()
    if pace is None:
        if _is_recent(history.caught_up_at_ms, sample, patience_ms):
            return State.STEADY, "the group had read everything a moment ago"
        return State.UNKNOWN, _too_little(history)
    if abs(pace.trend) <= pace.tolerance:
        return State.STEADY, "the group reads about as fast as producers write"
    if pace.trend > 0:
        return State.FALLING_BEHIND, "producers write faster than the group reads"
    return State.CATCHING_UP, ""


def _is_recent(at_ms: int | None, sample: Sample, within_ms: int) -> bool:
    return at_ms is not None and sample.at_ms - at_ms < within_ms


def _markers(offsets: int) -> str:
    if not offsets:
        return ""
    return (
        f"{counted(offsets, 'offset')} without records to read: transaction markers, aborted "
        "records, or gaps left by compaction"
    )


def _stuck(sample: Sample, stalled_ms: int) -> str:
    seconds = f"for {stalled_ms / 1000:.0f} s"
    if sample.committed is None:
        reason = f"a member has had records to read {seconds}, and committed nothing"
    else:
        reason = f"the committed offset has stayed at {sample.committed} {seconds}"
    stable = -1 if sample.unread is None else sample.unread.last_stable
    if 0 <= stable <= sample.position and sample.end is not None and stable < sample.end:
        reason += (
            f"; an open transaction keeps the last stable offset at {stable}, which stops "
            "read_committed consumers"
        )
    return reason


def _too_little(history: History) -> str:
    sample = history.last
    if sample.committed is None:
        return (
            "the member has committed nothing: it has not finished its first records, or began at "
            "the end of the log (auto.offset.reset)"
        )
    if not history.watched_ms:
        return "a trend needs more than one poll"
    seen = "no commit was" if history.moved_at_ms is None else "too few commits were"
    reason = f"{seen} seen in {history.watched_ms / 1000:.0f} s"
    if not sample.least:
        reason += "; whether the remaining offsets hold records is unknown"
    return reason


def _age(history: History) -> Age | None:
    sample = history.last
    if sample.most == 0:
        return NOTHING_UNREAD
    unread = sample.unread
    # Ignore a timestamp in the future, which must be wrong.
    if unread is not None and 0 <= unread.first_ms <= sample.wall_ms:
        return Age((sample.wall_ms - unread.first_ms) / 1000, Basis.RECORD)
    arrived_ms = history.arrived_ms(sample.position)
    if arrived_ms is not None:
        return Age((sample.at_ms - arrived_ms) / 1000, Basis.WATCH)
    first_ms = history.first_look_ms()
    if first_ms is None:
        return None
    return Age((sample.at_ms - first_ms) / 1000, Basis.BOUND)
