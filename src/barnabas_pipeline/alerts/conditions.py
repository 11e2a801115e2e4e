"""Finds the incidents that match alert rules in a pipeline's tables. Pure.

All times are taken from the log lines, and `now` is the time of the newest line. A run over old
logs therefore finds the same incidents as a service that was running while the logs were being
written. An incident lasts as long as its condition holds; an interruption shorter than the rule's
window does not end the incident.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas_pipeline.accounts import Accounts
from barnabas_pipeline.alerts import funnels
from barnabas_pipeline.alerts.incidents import LINES, Example, Incident
from barnabas_pipeline.alerts.rules import MINUTE, Rule, Rules
from barnabas_pipeline.logs.intrusions import intruders
from barnabas_pipeline.logs.logins import ACCEPTED
from barnabas_pipeline.logs.silences import silences
from barnabas_pipeline.view import View

_SECOND: Final = timedelta(seconds=1)
_MINUTE_S: Final = 60


def check_kinds(rules: Rules, name: str) -> None:
    """Raise `ConfigError` if the pipeline's tables do not support a rule's kind.

    `name`: the pipeline's name, `logs` or `behaviour`.
    """
    for rule in rules.alerts:
        own = _PIPELINE_OF.get(rule.kind, name)
        if own != name:
            raise ConfigError(
                f"alert {rule.name!r}: {rule.kind} is for {_CALLED[own]}, but these are the "
                f"tables of {_CALLED[name]}"
            )


def find_incidents(view: View, rules: Rules, now: datetime) -> list[Incident]:
    """Return the incidents that are ongoing at `now` or ended within the lookback, oldest first."""
    earliest = now - rules.lookback
    found: list[Incident] = []
    for rule in rules.alerts:
        if rule.kind == _FUNNEL:
            found += _funnels(view, _At(rule, now), earliest)
        else:
            found += _KINDS[rule.kind](view, rule, now)
    return sorted(
        (each for each in found if each.end is None or each.end >= earliest),
        key=lambda each: (each.start, each.alert, each.subject),
    )


class _At(NamedTuple):
    """Represents a rule and the period for which the rule is evaluated."""

    rule: Rule
    now: datetime


class _Counts(NamedTuple):
    """Counts by minute since the epoch. The minutes are in ascending order, without duplicates."""

    minutes: np.ndarray
    lines: np.ndarray
    of: np.ndarray


class _Run(NamedTuple):
    """A run of consecutive minutes during which a condition holds; `end` is exclusive."""

    start: int
    end: int
    most: int
    of: int
    worst: int
    """The last minute of the window from which `most` and `of` were taken."""


def _rates(view: View, rule: Rule, now: datetime) -> list[Incident]:
    if rule.levels:
        rows = view.frame("minutes").filter(pl.col("level").is_in(rule.levels))
        if rule.format is not None:
            rows = rows.filter(pl.col("format") == rule.format)
        label = f"level {', '.join(rule.levels)}"
        return _rate_incidents(rows, _At(rule, now), label, ("level", rule.levels), label)
    texts = dict(_templates(view, rule).select("template", "text").iter_rows())
    counts = view.frame("template_minutes").filter(pl.col("template").is_in(list(texts)))
    found = []
    for (template,), rows in counts.sort("template").group_by(["template"], maintain_order=True):
        # A template's text may become more general, but its id stays the same.
        shown = ("template", (str(template),))
        label = f'"{texts[template]}"'
        found += _rate_incidents(rows, _At(rule, now), f"template {template}", shown, label)
    return found


def _templates(view: View, rule: Rule) -> pl.DataFrame:
    """Return the templates that a rule selects by id or by part of their text, or all templates by
    default."""
    templates = view.frame("templates").sort("number")
    if rule.format is not None:
        templates = templates.filter(pl.col("format") == rule.format)
    if rule.template is not None:
        templates = templates.filter(
            (pl.col("template") == rule.template)
            | pl.col("text").str.contains(rule.template, literal=True)
        )
    return templates


def _rate_incidents(
    rows: pl.DataFrame,
    at: _At,
    subject: str,
    shown: tuple[str, tuple[str, ...]],
    label: str,
) -> list[Incident]:
    rule = at.rule
    counts = _counts(rows, "lines", "lines", at.now)
    found = []
    for run in _runs(counts, at, lambda lines, of: lines >= rule.threshold):
        summary = (
            f"{counted(run.most, 'entry', 'entries')} of {label} in {_span(rule.window)} (threshold"
            f" {rule.threshold:,})"
        )
        example = ("entries", *shown, None)
        found.append(_incident(at, subject, run, summary, example))
    return found


def _error_shares(view: View, rule: Rule, now: datetime) -> list[Incident]:
    counts = _counts(view.frame("traffic"), "server_errors", "hits", now)

    def is_met(errors: np.ndarray, hits: np.ndarray) -> np.ndarray:
        return (hits >= rule.minimum) & (errors >= rule.share * hits)

    return [
        _incident(
            _At(rule, now),
            "5xx",
            run,
            f"{run.most / run.of:.1%} of {counted(run.of, 'hit')} in {_span(rule.window)} were"
            f" answered with 5xx (threshold {rule.share:.1%})",
            ("events", "status", ("5xx",), None),
        )
        for run in _runs(counts, _At(rule, now), is_met)
    ]


def _funnels(view: View, at: _At, earliest: datetime) -> list[Incident]:
    """Return the incidents of a funnel that are ongoing, or ended after `earliest`.

    No table contains the number of visits, so the visits are computed from the recent hits. Sums
    over the first window are incomplete, so the hits are read from two windows earlier.
    """
    rule, now = at
    begin = earliest - 2 * rule.window
    since = begin - 2 * rule.within
    visits = funnels.visits(
        funnels.hits(view.dataset("events"), rule.steps, (since, now)), rule.steps, rule.within
    ).filter((pl.col("end") <= now) & (pl.col("end") >= begin))
    is_lost = pl.col("reached") < len(rule.steps)
    each_visit = visits.with_columns(
        pl.col("end").dt.truncate("1m").alias("minute"),
        is_lost.cast(pl.Int64).alias("lost"),
        pl.lit(1, pl.Int64).alias("visits"),
    )

    def is_met(lost: np.ndarray, visits: np.ndarray) -> np.ndarray:
        is_drop: np.ndarray = (visits >= rule.minimum) & (visits - lost < rule.share * visits)
        return is_drop

    return [
        _funnel_incident(each_visit, at, run)
        for run in _runs(_counts(each_visit, "lost", "visits", now), at, is_met)
    ]


def _funnel_incident(visits: pl.DataFrame, at: _At, run: _Run) -> Incident:
    rule = at.rule
    until = datetime.fromtimestamp((run.worst + 1) * _MINUTE_S, UTC)
    worst = visits.filter((pl.col("end") >= until - rule.window) & (pl.col("end") < until))
    counts = ", ".join(
        f"{step} {(worst['reached'] >= number).sum():,}"
        for number, step in enumerate(rule.steps, 1)
    )
    summary = (
        f"{(run.of - run.most) / run.of:.1%} of {counted(run.of, 'visitor')} in"
        f" {_span(rule.window)} went on from {rule.steps[0]} to {rule.steps[-1]} (threshold"
        f" {rule.share:.1%}): {counts}"
    )
    incident = _incident(
        at, f"{rule.steps[0]} to {rule.steps[-1]}", run, summary, ("events", "client", (), None)
    )
    # Show the last steps of visitors who did not go on.
    lost = worst.filter(pl.col("lost") == 1).sort("end", "client").tail(LINES)
    times = lost["time"].to_list()
    example = incident.example._replace(
        values=tuple(lost["client"].drop_nulls().unique().sort()),
        paths=tuple(lost["path"].unique().sort()),
        since=min(times),
        until=max(times) + _SECOND,
    )
    return incident._replace(example=example)


def _counts(rows: pl.DataFrame, lines: str, of: str, now: datetime) -> _Counts:
    """Sum the counts of each minute up to `now`. Rows with later minutes exist if a machine's clock
    is ahead.
    """
    sums = (
        rows.filter(pl.col("minute") <= now)
        .group_by("minute")
        .agg(pl.col(lines).sum().alias("lines"), pl.col(of).sum().alias("of"))
        .sort("minute")
    )
    minutes = sums["minute"].dt.epoch("s").to_numpy() // _MINUTE_S
    return _Counts(minutes, sums["lines"].to_numpy(), sums["of"].to_numpy())


def _runs(
    counts: _Counts,
    at: _At,
    is_met: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[_Run]:
    """Return the runs of minutes in which the sum over the preceding window meets a condition.

    A minute's count enters the window at that minute and leaves it one window length later. Between
    these events, the sum does not change.
    """
    if not len(counts.minutes):
        return []
    window = at.rule.window // MINUTE
    events = np.concatenate([counts.minutes, counts.minutes + window])
    order = np.argsort(events, kind="stable")
    sums = [np.cumsum(np.concatenate([each, -each])[order]) for each in (counts.lines, counts.of)]
    last = np.flatnonzero(np.diff(events[order], append=events.max() + 1))
    times, lines, of = events[order][last], sums[0][last], sums[1][last]
    present = int(at.now.timestamp()) // _MINUTE_S + 1
    runs: list[_Run] = []
    for i in np.flatnonzero(is_met(lines, of)):
        # After the last event, the window is empty, and an empty window meets no condition.
        end = int(times[i + 1])
        each = _Run(int(times[i]), end, int(lines[i]), int(of[i]), int(times[i]))
        if runs and runs[-1].end == each.start:
            runs[-1] = _union(runs[-1], each)
        else:
            runs.append(each)
    held = [each for each in runs if (min(each.end, present) - each.start) * MINUTE >= at.rule.hold]
    joined: list[_Run] = []
    for each in held:
        if joined and each.start - joined[-1].end < window:
            joined[-1] = _union(joined[-1], each)
        else:
            joined.append(each)
    return joined


def _union(first: _Run, then: _Run) -> _Run:
    worst = max(first, then, key=lambda each: (each.most / max(each.of, 1), each.most))
    return _Run(first.start, then.end, worst.most, worst.of, worst.worst)


def _incident(
    at: _At,
    subject: str,
    run: _Run,
    summary: str,
    shown: tuple[str, str | None, tuple[str, ...], str | None],
) -> Incident:
    rule, now = at
    start, end = (datetime.fromtimestamp(each * _MINUTE_S, UTC) for each in (run.start, run.end))
    # The incident may continue until a whole window has passed.
    over = end if end + rule.window <= now else None
    example = Example(*shown, since=start - rule.window + MINUTE, until=over or now + _SECOND)
    return Incident(rule.name, rule.kind, subject, start, over, summary, example)


def _new_templates(view: View, rule: Rule, now: datetime) -> list[Incident]:
    begins = view.frame("templates").group_by("format").agg(pl.col("first").min().alias("begin"))
    rows = (
        _templates(view, rule)
        .join(begins, on="format")
        .filter((pl.col("first") >= pl.col("begin") + rule.learn) & (pl.col("first") <= now))
    )
    found = []
    for row in rows.iter_rows(named=True):
        first = row["first"]
        summary = f"a new message of {row['format']}: {row['text']}"
        example = Example("entries", "template", (row["template"],), None, first)
        subject = f"template {row['template']}"
        found.append(_event(_At(rule, now), subject, (first, first), summary, example))
    return found


def _event(
    at: _At,
    subject: str,
    times: tuple[datetime, datetime],
    summary: str,
    example: Example,
) -> Incident:
    """Return the incident for an event; the incident ends one window after the event
    last occurred.
    """
    rule, now = at
    first, last = times
    end = last + rule.window
    over = end if end <= now else None
    return Incident(rule.name, rule.kind, subject, first, over, summary, example)


def _silences(view: View, rule: Rule, now: datetime) -> list[Incident]:
    components = view.frame("components").filter(pl.col("first") <= now)
    if rule.format is not None:
        components = components.filter(pl.col("format") == rule.format)
    if rule.host is not None:
        components = components.filter(pl.col("host") == rule.host)
    if rule.components:
        named = components.filter(pl.col("component").is_in(rule.components))
        rows = named.group_by("format", "component").agg(pl.col("last").max()).sort(pl.all())
        last_lines = list(rows.iter_rows())
    else:
        # The page shows the same silences: busy components that are missing dozens of lines.
        last_lines = [(each.format, each.component, each.last) for each in silences(components)]
    found = []
    for name, component, last in last_lines:
        if now - last >= rule.hold:
            where = f" on {rule.host}" if rule.host is not None else ""
            subject = f"component {component} of {name}{where}"
            summary = f"{subject} has logged nothing since {_at(last)}"
            example = Example("entries", "component", (component,), None, last, last + _SECOND)
            found.append(Incident(rule.name, rule.kind, subject, last, None, summary, example))
    return found


def _break_ins(view: View, rule: Rule, now: datetime) -> list[Incident]:
    logins = view.frame("logins").filter(pl.col("first") <= now)
    accepted = logins.filter(pl.col("outcome") == ACCEPTED)
    found = []
    for each in intruders(logins):
        if not each.entered_as:
            continue
        rows = accepted.filter(
            (pl.col("address") == each.address) & (pl.col("last") >= each.first)
        ).sort("first", "last")
        visits: list[list[tuple[datetime, datetime]]] = []
        for first, last in rows.select("first", "last").iter_rows():
            times = (first if first >= each.first else last, last)
            # A login after the end of an incident starts a new one.
            if visits and times[0] < visits[-1][-1][1] + rule.window:
                visits[-1].append(times)
            else:
                visits.append([times])
        hosts = ", ".join(rows["host"].drop_nulls().unique().sort()) or "a host"
        users = ", ".join(each.entered_as)
        for visit in visits:
            begin, end = visit[0][0], max(last for _, last in visit)
            summary = (
                f"{each.address} guessed passwords ({counted(each.failures, 'failure')}) and got"
                f" in to {hosts} as {users}"
            )
            example = Example("entries", None, (), each.address, begin, end + _SECOND)
            found.append(
                _event(_At(rule, now), f"address {each.address}", (begin, end), summary, example)
            )
    return found


def _rejected_shares(view: View, rule: Rule, now: datetime) -> list[Incident]:
    """Return an incident for each file with many rejected lines. Dead letters have no time, so the
    incidents are dated `now`."""
    found = []
    columns = ("file", "valid", "dead_letters")
    sums = view.frame("files").select(columns).group_by("file").sum().sort("file")
    for file, valid, letters in sums.iter_rows():
        of = Accounts(valid=valid, dead_letters=letters)
        lines = of.valid + of.dead_letters
        if lines >= rule.minimum and of.dead_letters >= rule.share * lines:
            summary = (
                f"{of.dead_letters / lines:.1%} of {counted(lines, 'record')} were rejected"
                f" (threshold {rule.share:.1%})"
            )
            example = Example("dead_letters", "file", (file,))
            subject = f"file {file}" if file is not None else "records without a file"
            if file is None:
                example = Example("dead_letters", "reason", tuple(view.reasons()))
            found.append(Incident(rule.name, rule.kind, subject, now, None, summary, example))
    return found


def _span(window: timedelta) -> str:
    return counted(window // MINUTE, "minute")


def _at(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


_FUNNEL: Final = "funnel"
_LOGS: Final = "logs"
_BEHAVIOUR: Final = "behaviour"
_CALLED: Final = MappingProxyType({_LOGS: "system logs", _BEHAVIOUR: "access logs"})
_PIPELINE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rate": _LOGS,
        "new_template": _LOGS,
        "silence": _LOGS,
        "break_in": _LOGS,
        "error_share": _BEHAVIOUR,
        _FUNNEL: _BEHAVIOUR,
    }
)
_KINDS: Final[Mapping[str, Callable[[View, Rule, datetime], Sequence[Incident]]]] = (
    MappingProxyType(
        {
            "rate": _rates,
            "new_template": _new_templates,
            "silence": _silences,
            "break_in": _break_ins,
            "error_share": _error_shares,
            "rejected_share": _rejected_shares,
        }
    )
)
