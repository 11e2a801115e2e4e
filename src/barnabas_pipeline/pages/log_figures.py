"""Computes the figures of selected system log entries, as the tables of the pipeline would have
them.

The static page's own functions compute everything from these tables, so both show the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from barnabas_pipeline.arrow import to_frame
from barnabas_pipeline.instants import HOUR_US, MINUTE_US, utc, utc_floor
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import Figures, read_figures
from barnabas_pipeline.logs.logins import SSHD
from barnabas_pipeline.page.addresses import mask_addresses, mask_column
from barnabas_pipeline.pages.filters import MISSING, Filters, Period
from barnabas_pipeline.pages.log_columns import LogColumns, Numbers, take
from barnabas_pipeline.view import View

_OF_LOGINS: Final = frozenset({"host", "component"})
"""The dimensions by which logins can be filtered."""


class SelectedTables(View):
    """The merged tables as they would be if only the selected entries existed.

    There are no records and no dead letters in it, because filters do not apply to them.
    """

    def __init__(
        self, columns: LogColumns, rows: Numbers, templates: pl.DataFrame, logins: pl.DataFrame
    ) -> None:
        """`templates`: those of all entries. `logins`: the selected logins."""
        self._columns = columns
        self._all_templates = templates
        self._logins = logins
        names = ("format", "host", "component", "level", "template")
        codes = {name: take(columns.texts[name].codes, rows) for name in names}
        self._rows = pl.DataFrame({"time_us": take(columns.time_us, rows), **codes})
        self._computed: Mapping[str, Callable[[], pl.DataFrame]] = {
            "minutes": self._minutes,
            "components": self._components,
            "templates": self._templates,
            "template_minutes": self._template_minutes,
            "logins": lambda: self._logins,
        }

    @property
    def newest_s(self) -> int | None:
        return None

    def frame(self, name: str) -> pl.DataFrame:
        computed = self._computed.get(name)
        return to_frame(LOGS.all[name].empty_table()) if computed is None else computed()

    def dataset(self, name: str) -> Any:
        return None

    def reasons(self) -> Counter[str]:
        return Counter()

    def some(
        self, name: str, number: int, columns: list[str], of: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        return []

    def _minutes(self) -> pl.DataFrame:
        minute = utc_floor(pl.col("time_us"), MINUTE_US).alias("minute")
        found = self._rows.group_by(minute, "format", "level").agg(_LINES)
        return found.with_columns(self._named("format"), self._named("level"))

    def _components(self) -> pl.DataFrame:
        names = ("format", "host", "component", "level")
        hour = utc_floor(pl.col("time_us"), HOUR_US).alias("hour")
        found = self._rows.group_by(hour, *names).agg(_LINES, *_ENDS)
        return found.with_columns(map(self._named, names))

    def _templates(self) -> pl.DataFrame:
        found = self._rows.group_by("template").agg(_LINES, *_ENDS)
        counts = found.with_columns(self._named("template")).drop_nulls("template")
        known = self._all_templates.drop("lines", "first", "last")
        return known.join(counts, on="template").select(self._all_templates.columns)

    def _template_minutes(self) -> pl.DataFrame:
        minute = utc_floor(pl.col("time_us"), MINUTE_US).alias("minute")
        found = self._rows.filter(pl.col("template") != 0).group_by(minute, "template").agg(_LINES)
        return found.with_columns(self._named("template"))

    def _named(self, name: str) -> pl.Expr:
        values = pl.Series(self._columns.texts[name].values, dtype=pl.String)
        codes = pl.col(name).cast(pl.UInt32)
        return pl.lit(values).gather(codes).alias(name)


_LINES: Final = pl.len().cast(pl.Int64).alias("lines")
_ENDS: Final = (
    utc(pl.col("time_us").min()).alias("first"),
    utc(pl.col("time_us").max()).alias("last"),
)


class Selected(NamedTuple):
    """The entries that match filters."""

    rows: Numbers
    figures: Figures
    logins: pl.DataFrame
    """The rows of the table `logins`, in which addresses are shown as on pages."""
    has_logins: bool
    """Whether the filters apply to logins. If not, there are no logins."""


class LogFigures:
    """Computes the figures of any selection."""

    def __init__(self, columns: LogColumns, stored: View, *, show_addresses: bool) -> None:
        self._columns = columns
        self._show_addresses = show_addresses
        self.mask = str if show_addresses else mask_addresses
        self.all = read_figures(stored, show_addresses=show_addresses)
        self._templates = stored.frame("templates")
        self._logins = stored.frame("logins")

    def select(self, filters: Filters, period: Period) -> Selected:
        """Return the entries that match the filters in this period."""
        rows = self._columns.select(period, filters)
        if period == Period() and not filters.values:
            return Selected(rows, self.all, self._shown(self._logins), has_logins=True)
        logins = select_logins(self._logins, period, filters, self.mask)
        some = self._logins.clear() if logins is None else logins
        tables = SelectedTables(self._columns, rows, self._templates, some)
        found = read_figures(tables, show_addresses=self._show_addresses)
        of_id = {each.id: each for each in found.templates}
        # Each template has a first entry in any selection, so that alone does not make it new.
        new = [of_id[each.id] for each in self.all.new_templates if each.id in of_id]
        figures = found._replace(new_templates=new)
        return Selected(rows, figures, self._shown(some), logins is not None)

    def _shown(self, logins: pl.DataFrame) -> pl.DataFrame:
        if self._show_addresses:
            return logins
        return logins.with_columns(mask_column(logins["address"]).alias("address"))


def select_logins(
    logins: pl.DataFrame, period: Period, filters: Filters, mask: Callable[[str], str]
) -> pl.DataFrame | None:
    """Return the selected rows of the table `logins`, or None if the filters do not apply to them.

    Logins are counted by hours, so the hours that the period touches are included.
    """
    if not filters.values.keys() <= _OF_LOGINS:
        return None
    components = filters.values.get("component")
    if components is not None and not any(each.startswith(SSHD) for each in components):
        return None
    if period.since_us is not None:
        since = pl.lit(period.since_us // HOUR_US * HOUR_US)
        logins = logins.filter(pl.col("hour").dt.epoch("us") >= since)
    if period.until_us is not None:
        logins = logins.filter(pl.col("hour").dt.epoch("us") < period.until_us)
    hosts = filters.values.get("host")
    if hosts is not None:
        wanted = np.fromiter(
            ((MISSING if host is None else mask(host)) in hosts for host in logins["host"]), bool
        )
        logins = logins.filter(pl.Series(wanted, dtype=pl.Boolean))
    return logins
