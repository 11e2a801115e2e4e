"""Summarises the log over time: hits per interval, status classes, and the hours of the week.

Times are in the log's local time, as written in its lines, because this is what a site owner
expects.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Numbers = npt.NDArray[np.int64]

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_WEEK_S = 7 * _DAY_S
# Pairs of a log's maximum time span and the interval for such a log.
_STEPS_S = (
    (3 * _HOUR_S, _MINUTE_S),
    (12 * _HOUR_S, 5 * _MINUTE_S),
    (36 * _HOUR_S, 15 * _MINUTE_S),
    (31 * _DAY_S, _HOUR_S),
    (120 * _DAY_S, 6 * _HOUR_S),
    (730 * _DAY_S, _DAY_S),
)
_MOST_WEEKS = 520
_COUNTS = ("hits", "robot_hits", "pages", "robot_pages", "client_errors", "server_errors", "bytes")


class Moment(NamedTuple):
    """The traffic in one interval, which starts at `at`, in the log's local time."""

    at: datetime
    human_hits: int
    robot_hits: int
    human_pages: int
    errors: int
    size_bytes: int = 0


class Timeline(NamedTuple):
    """The log over time, in intervals of `step`."""

    step: timedelta
    moments: list[Moment]
    class_step: timedelta
    classes: list[tuple[datetime, dict[str, int]]]  # hits by status class
    heat: list[list[float]]  # weekday (Monday first), hour -> human page views, on average
    size_bytes: int
    offsets_minutes: list[int]  # the log's own offsets from UTC; several if the clock was changed

    @property
    def begin(self) -> datetime | None:
        return self.moments[0].at if self.moments else None

    @property
    def end(self) -> datetime | None:
        return self.moments[-1].at + self.step if self.moments else None


def timeline_of(traffic: pl.DataFrame, statuses: pl.DataFrame) -> Timeline:
    """Return the timeline computed from the tables `traffic` and `statuses`."""
    if not traffic.height:
        hour = timedelta(hours=1)
        return Timeline(hour, [], hour, [], [[0.0] * 24 for _ in range(7)], 0, [])
    offset_s = _numbers(traffic, "utc_offset_minutes") * _MINUTE_S
    local_s = _seconds(traffic, "minute") + offset_s
    step_s = _step(int(local_s.max() - local_s.min()))
    counts = {name: _numbers(traffic, name) for name in _COUNTS}
    human_pages = counts["pages"] - counts["robot_pages"]
    class_step_s = max(step_s, _HOUR_S)
    return Timeline(
        step=timedelta(seconds=step_s),
        moments=_moments(local_s, step_s, counts),
        class_step=timedelta(seconds=class_step_s),
        classes=_classes(statuses, int(offset_s.max()), class_step_s),
        heat=_heat(local_s, human_pages),
        size_bytes=int(counts["bytes"].sum()),
        offsets_minutes=sorted(int(offset) for offset in traffic["utc_offset_minutes"].unique()),
    )


def _moments(local_s: Numbers, step_s: int, counts: dict[str, Numbers]) -> list[Moment]:
    per_interval = {
        "human_hits": counts["hits"] - counts["robot_hits"],
        "robot_hits": counts["robot_hits"],
        "human_pages": counts["pages"] - counts["robot_pages"],
        "errors": counts["client_errors"] + counts["server_errors"],
        "size_bytes": counts["bytes"],
    }
    first, bins = _bins(local_s, step_s)
    sums = {name: _summed(bins, values) for name, values in per_interval.items()}
    return [
        Moment(_time(first + i * step_s), **{name: int(values[i]) for name, values in sums.items()})
        for i in range(int(bins.max()) + 1)
    ]


def _classes(
    statuses: pl.DataFrame, offset_s: int, step_s: int
) -> list[tuple[datetime, dict[str, int]]]:
    # The table has no offsets; use the log's largest offset for all rows.
    first, bins = _bins(_seconds(statuses, "hour") + offset_s, step_s)
    hits = _numbers(statuses, "hits")
    names = np.asarray(statuses["class"].to_list())
    series = {
        str(name): _summed(bins, np.where(names == name, hits, 0)) for name in np.unique(names)
    }
    return [
        (_time(first + i * step_s), {name: int(values[i]) for name, values in series.items()})
        for i in range(int(bins.max()) + 1)
    ]


def _heat(local_s: Numbers, pages: Numbers) -> list[list[float]]:
    """Return the mean number of page views in each hour of the week, over all days in the log."""
    days = local_s // _DAY_S
    weekdays = (days + 3) % 7  # the epoch was a Thursday
    hours = local_s % _DAY_S // _HOUR_S
    sums = np.bincount(weekdays * 24 + hours, weights=pages, minlength=7 * 24).reshape(7, 24)
    present = np.arange(days.min(), days.max() + 1)
    occurrences = np.maximum(1, np.bincount((present + 3) % 7, minlength=7))
    return [[float(value) for value in row] for row in sums / occurrences[:, None]]


def _step(span_s: int) -> int:
    for longest_s, step_s in _STEPS_S:
        if span_s <= longest_s:
            return step_s
    # If the log spans many years, or any line has a wrong time, make the intervals as long as
    # needed.
    return _WEEK_S * (span_s // (_WEEK_S * _MOST_WEEKS) + 1)


def _bins(local_s: Numbers, step_s: int) -> tuple[int, Numbers]:
    """Return the start of the first interval, and each row's interval number."""
    first = int(local_s.min()) // step_s * step_s
    return first, (local_s - first) // step_s


def _summed(bins: Numbers, values: Numbers) -> Numbers:
    sums = np.zeros(int(bins.max()) + 1, dtype=np.int64)
    np.add.at(sums, bins, values)
    return sums


def _numbers(rows: pl.DataFrame, name: str) -> Numbers:
    return rows[name].cast(pl.Int64).to_numpy()


def _seconds(rows: pl.DataFrame, name: str) -> Numbers:
    return rows[name].dt.epoch("s").to_numpy()


def _time(local_s: int) -> datetime:
    return datetime.fromtimestamp(local_s, UTC).replace(tzinfo=None)
