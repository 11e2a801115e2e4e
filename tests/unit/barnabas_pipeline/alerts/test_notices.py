"""What is sent, once, to each sink (LG-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from barnabas_pipeline.alerts.incidents import Example, Incident
from barnabas_pipeline.alerts.notices import (
    FIRING,
    MOST_KNOWN,
    RESOLVED,
    Known,
    recipients,
    update,
)
from barnabas_pipeline.alerts.rules import Rule, Rules, SinkOptions

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULES = Rules(
    (Rule("errors", "rate", ("team",)),),
    (SinkOptions("team", "webhook", {}), SinkOptions("other", "webhook", {})),
    timedelta(days=1),
)


def incident(start: int, end: int | None = None, subject: str = "level ERROR") -> Incident:
    times = (START + start * MINUTE, None if end is None else START + end * MINUTE)
    return Incident("errors", "rate", subject, *times, "text", Example("entries"))


def evaluated(known: list[Known], *found: Incident, at: int = 0) -> list[Known]:
    return update(known, found, RULES, START + at * MINUTE)


def due(known: list[Known]) -> list[str | None]:
    return [each.due("team") for each in known]


def sent(known: list[Known]) -> list[Known]:
    return [
        each if (status := each.due("team")) is None else each.after_sending("team", status)
        for each in known
    ]


def test_lg_4_once_and_once_more_when_it_is_over() -> None:
    """LG-4: firing once per incident, resolved once."""
    known = evaluated([], incident(0))
    assert due(known) == [FIRING]
    assert due(evaluated(known, incident(0))) == [FIRING], "a failure is retried"
    known = evaluated(sent(known), incident(0))
    assert due(known) == [None]
    known = evaluated(known, incident(0, 5), at=9)
    assert due(known) == [RESOLVED]
    assert due(evaluated(sent(known), incident(0, 5), at=10)) == [None]


def test_lg_4_begun_and_over_between_two_evaluations() -> None:
    known = evaluated([], incident(0, 5), at=9)
    assert due(known) == [FIRING]
    assert due(evaluated(sent(known), incident(0, 5), at=10)) == [RESOLVED]


def test_lg_4_another_of_the_same_subject() -> None:
    known = sent(sent(evaluated([], incident(0, 5), at=9)))
    assert due(evaluated(known, incident(0, 5), incident(60), at=60)) == [None, FIRING]


def test_lg_4_late_lines_keep_the_identity() -> None:
    known = sent(evaluated([], incident(2)))
    again = evaluated(known, incident(1))
    assert due(again) == [None]
    assert again[0].incident.id == known[0].incident.id


def test_lg_4_a_late_line_continues_it() -> None:
    known = sent(sent(evaluated([], incident(0, 5), at=9)))
    assert due(evaluated(known, incident(0), at=10)) == [FIRING]


def test_lg_4_what_is_found_no_more_is_over() -> None:
    """LG-4: a component that logs again leaves no trace in the tables."""
    known = evaluated(sent(evaluated([], incident(0))), at=7)
    assert due(known) == [RESOLVED]
    assert known[0].incident.end == START + 7 * MINUTE


def test_lg_4_old_ones_are_forgotten_unless_due() -> None:
    later = 3 * 24 * 60
    unsent = evaluated([], incident(0, 5), at=9)
    assert due(evaluated(unsent, at=later)) == [FIRING], "the sink was down for days"
    assert evaluated(sent(sent(unsent)), at=later) == []


def test_lg_4_memory_is_bounded() -> None:
    many = [incident(0, subject=str(number)) for number in range(MOST_KNOWN + 1)]
    known = sent(evaluated([], *many))
    assert len(known) == MOST_KNOWN
    assert evaluated(known, *reversed(many)) == known, "none is sent again"


def test_lg_4_an_alert_that_was_removed() -> None:
    """Those that have heard of the incident learn its end."""
    known = sent(evaluated([], incident(0)))
    rules = RULES._replace(alerts=())
    (left,) = update(known, [], rules, START)
    assert recipients(left, rules) == ("team",)
    assert left.due("team") == RESOLVED
    assert recipients(left, RULES) == ("team",)
