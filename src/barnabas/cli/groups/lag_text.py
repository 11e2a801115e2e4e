"""Formats the lag of groups: tables for pipes, values for JSON, and metrics. Pure.

    GROUP   TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  RECORDS  SECONDS  TREND   ...
    orders  orders  0          40              60              20       12.5     +1.5/s  ...

Bounds are marked: `<=20` records, `>=12.5` seconds. Unknown values are `-`, or null in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from barnabas.cli.groups.instants import instant_text
from barnabas.cli.groups.text import NOTHING, kafka_table, shown
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.readings import DEAD
from barnabas.client.lag.summary import LagSum
from barnabas.client.lag.verdict import Age, Basis, State, Verdict
from barnabas.counted import counted
from barnabas.metrics import Family, Sample, gauge
from barnabas.types import TopicPartition

TITLES: Final = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "RECORDS",
    "SECONDS",
    "TREND",
    "CATCH-UP",
    "STATE",
    "REASON",
)
_COLUMNS: Final = tuple((title, 0 if title == "REASON" else len(title) + 1) for title in TITLES)
_ENDLESS: Final = (State.FALLING_BEHIND, State.STOPPED, State.STUCK)
_UNITS_S: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def lag_text(lag: GroupLag) -> str:
    """Return a group's table and a summary line."""
    rows = [
        [lag.group.group_id, name.topic, str(name.partition), *cells(verdict)]
        for name, verdict in lag.verdicts.items()
    ]
    return f"\n{kafka_table(_COLUMNS, rows)}{lag.group.group_id}: {summary(lag)}\n"


def cells(verdict: Verdict) -> list[str]:
    """Return a partition's cells, from its offset to the reason."""
    return [
        shown(verdict.sample.committed),
        shown(verdict.sample.end),
        records_text(verdict),
        age_text(verdict.age),
        trend_text(verdict),
        catch_up_text(verdict),
        verdict.state.value,
        verdict.reason or NOTHING,
    ]


def records_text(lag: Verdict | LagSum) -> str:
    """Return the number of unread records."""
    if lag.records is None:
        return NOTHING
    return f"{'' if lag.is_exact else '<='}{lag.records}"


def age_text(age: Age | None) -> str:
    """Return how long the first unread record has been waiting, in seconds."""
    if age is None:
        return NOTHING
    return f"{'>=' if age.basis is Basis.BOUND else ''}{age.seconds:.1f}"


def trend_text(verdict: Verdict) -> str:
    """Return by how many offsets the lag grows per second."""
    return NOTHING if verdict.pace is None else f"{verdict.pace.trend:+.1f}/s"


def catch_up_text(lag: Verdict | LagSum) -> str:
    """Return when the group will have caught up at the current rate."""
    if lag.catch_up_s is None:
        return "never" if lag.state in _ENDLESS else NOTHING
    return duration_text(lag.catch_up_s)


def duration_text(seconds: float) -> str:
    """Return a duration in its largest unit, such as `40 s` or `1.5 h`."""
    for unit, size in _UNITS_S:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def summary(lag: GroupLag) -> str:
    """Return a group's lag in one line."""
    together, slow = lag.together, lag.slowest
    if lag.group.state == DEAD:
        return "the group does not exist"
    if not lag.verdicts:
        return "reads no partitions"
    parts = [together.state.value]
    if together.state is not State.CAUGHT_UP or together.records:
        bound = "" if together.is_exact else "about " if _has_gaps(lag) else "at most "
        parts.append(f"{bound}{counted(together.records, 'record')} behind")
        parts.append(f"oldest waiting for {age_text(together.age)} s")
        if together.catch_up_s is not None:
            parts.append(f"caught up in {duration_text(together.catch_up_s)}")
        elif together.state in _ENDLESS:
            parts.append("not going to catch up")
    line = ", ".join(parts)
    if slow is not None:
        own = counted(slow.partitions, "partition")
        line += f"; slowest member {slow.member}: {slow.lag.state.value}, {own} behind"
        line += f" by {records_text(slow.lag)}"
    if lag.unread_reason:
        line += f"; records were not counted ({lag.unread_reason})"
    return line


def _has_gaps(lag: GroupLag) -> bool:
    """Return whether the record count of any partition is unknown. If so, the sum is not a
    bound.
    """
    return any(verdict.records is None for verdict in lag.verdicts.values())


def lag_values(lag: GroupLag) -> dict[str, Any]:
    """Return a group's lag as values for JSON."""
    return {
        "group": lag.group.group_id,
        "state": lag.group.state,
        "lag": _sum_values(lag.together),
        "slowest_member": _slowest_values(lag),
        "not_counted_because": lag.unread_reason or None,
        "partitions": [_verdict_values(name, each) for name, each in lag.verdicts.items()],
    }


def _slowest_values(lag: GroupLag) -> dict[str, Any] | None:
    slow = lag.slowest
    if slow is None:
        return None
    who = next((each for each in lag.group.members if each.member_id == slow.member), None)
    return {
        "member": slow.member,
        "client_id": None if who is None else who.client_id,
        "host": None if who is None else who.host,
        "partitions": slow.partitions,
        **_sum_values(slow.lag),
    }


def _sum_values(lag: LagSum) -> dict[str, Any]:
    return {
        "state": lag.state.value,
        "records": lag.records,
        "records_exact": lag.is_exact,
        **_age_values(lag.age),
        "catch_up_seconds": lag.catch_up_s,
    }


def _verdict_values(name: TopicPartition, verdict: Verdict) -> dict[str, Any]:
    pace = verdict.pace
    return {
        "topic": name.topic,
        "partition": name.partition,
        "member": verdict.sample.member,
        "offset": verdict.sample.committed,
        "start_offset": verdict.sample.start,
        "end_offset": verdict.sample.end,
        "state": verdict.state.value,
        "reason": verdict.reason,
        "records": verdict.records,
        "records_exact": verdict.is_exact,
        **_age_values(verdict.age),
        "write_rate": None if pace is None else pace.write_rate,
        "read_rate": None if pace is None else pace.read_rate,
        "trend": None if pace is None else pace.trend,
        "catch_up_seconds": verdict.catch_up_s,
    }


def _age_values(age: Age | None) -> dict[str, Any]:
    return {
        "seconds": None if age is None else age.seconds,
        "seconds_from": None if age is None else age.basis.value,
    }


def changes(
    before: Mapping[tuple[str, TopicPartition], State], lags: Iterable[GroupLag], at_ms: int
) -> Iterator[str]:
    """Yield a line for each partition that is new or whose state has changed."""
    for lag in lags:
        for name, verdict in lag.verdicts.items():
            old = before.get((lag.group.group_id, name))
            if old is verdict.state:
                continue
            change = verdict.state.value if old is None else f"{old.value} -> {verdict.state.value}"
            reason = f" ({verdict.reason})" if verdict.reason else ""
            yield (
                f"{instant_text(at_ms)} {lag.group.group_id} {name}: {change}, "
                f"lag {records_text(verdict)}, {age_text(verdict.age)} s{reason}"
            )


def states(lags: Iterable[GroupLag]) -> dict[tuple[str, TopicPartition], State]:
    """Return the state of each group in each partition."""
    return {
        (lag.group.group_id, name): verdict.state
        for lag in lags
        for name, verdict in lag.verdicts.items()
    }


def families(lags: Sequence[GroupLag], looked_at_ms: int) -> list[Family]:
    """Return the metrics of a poll. An unknown number has no sample."""
    records, seconds, trends, catch_ups, reached = [], [], [], [], []
    for lag in lags:
        for name, verdict in lag.verdicts.items():
            labels = (
                ("group", lag.group.group_id),
                ("topic", name.topic),
                ("partition", str(name.partition)),
            )
            if verdict.records is not None:
                records.append(Sample(verdict.records, labels))
            if verdict.age is not None:
                seconds.append(Sample(verdict.age.seconds, labels))
            if verdict.pace is not None:
                trends.append(Sample(verdict.pace.trend, labels))
            if verdict.catch_up_s is not None:
                catch_ups.append(Sample(verdict.catch_up_s, labels))
            reached.append(Sample(1, (*labels, ("state", verdict.state.value))))
    look = [Sample(looked_at_ms / 1000)]
    return [
        gauge(
            "barnabas_group_lag_records",
            "Upper bound of the number of records that a group has not read",
            records,
        ),
        gauge(
            "barnabas_group_lag_seconds",
            "How long the first unread record has been waiting",
            seconds,
        ),
        gauge("barnabas_group_lag_trend", "Growth of the lag, in offsets per second", trends),
        gauge(
            "barnabas_group_catch_up_seconds",
            "Time until the group has caught up, at the current rate; absent if never, or unknown",
            catch_ups,
        ),
        gauge(
            "barnabas_group_partition_state", "1 for the current state of the partition", reached
        ),
        gauge("barnabas_group_lag_looked_at_seconds", "Time of the last poll", look),
    ]
