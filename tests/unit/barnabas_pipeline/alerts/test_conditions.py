"""The incidents of each kind of rule, from lines (LG-4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.alerts.conditions import check_kinds, find_incidents
from barnabas_pipeline.alerts.incidents import Incident
from barnabas_pipeline.alerts.rules import Rule, Rules
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.file_pass import MemoryView, take_batch
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.view import View
from tests.kit.pipeline.log_records import KNOWN, records
from tests.kit.pipeline.web_records import line, record, table

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def logs(lines: Sequence[str]) -> View:
    view = MemoryView(LOGS)
    take_batch(KNOWN, view, records("app.log", [each.encode() for each in lines], 0))
    return view


def entry(minute: float, message: str, level: str = "INFO", component: str = "jobs.Run") -> str:
    at = START + minute * MINUTE
    return f"{at:%Y-%m-%d %H:%M:%S},000 {level} [main] {component}: {message}"


def login(second: int, text: str) -> str:
    at = START + timedelta(seconds=second)
    return f"{at:%Y-%m-%dT%H:%M:%S}.000000+00:00 gate sshd[7]: {text} port 9 ssh2"


def found(view: View, rule: Rule, now: datetime | None = None) -> list[Incident]:
    assert view.newest_s is not None
    at = now or datetime.fromtimestamp(view.newest_s, UTC)
    return find_incidents(view, Rules((rule,), (), DAY), at)


def errors(minutes: Sequence[int]) -> list[str]:
    return [entry(minute, f"Job {minute} failed", "ERROR") for minute in minutes]


LEVEL = Rule("errors", "rate", (), threshold=10, levels=("ERROR",))


def test_lg_4_a_level_from_the_threshold_on() -> None:
    """LG-4: ten lines within five minutes, and not nine."""
    quiet = [entry(minute, "started") for minute in range(30)]
    (one,) = found(logs(quiet + errors([12] * 5 + [14] * 5)), LEVEL)
    assert (one.subject, one.start) == ("level ERROR", START + 14 * MINUTE)
    # The window that ends in minute 16 is the last one with both.
    assert one.end == START + 17 * MINUTE
    assert one.summary == "10 entries of level ERROR in 5 minutes (threshold 10)"
    assert found(logs(quiet + errors([12] * 5 + [14] * 4)), LEVEL) == []
    assert found(logs(quiet + errors([12] * 5 + [17] * 5)), LEVEL) == [], "five minutes apart"


def test_lg_4_it_fires_while_it_lasts_and_a_window_longer() -> None:
    view = logs([*errors([0] * 10), entry(20, "started")])
    assert [each.end for each in found(view, LEVEL, START + 9 * MINUTE)] == [None]
    (over,) = found(view, LEVEL, START + 10 * MINUTE)
    assert over.end == START + 5 * MINUTE
    assert over.id == found(view, LEVEL, START)[0].id, "the identity is the same throughout"


def test_lg_4_interruptions_shorter_than_the_window() -> None:
    (one,) = found(logs(errors([0] * 10 + [9] * 10 + [60])), LEVEL)
    assert (one.start, one.end) == (START, START + 14 * MINUTE)
    apart = found(logs(errors([0] * 10 + [10] * 10 + [60])), LEVEL)
    assert [each.start for each in apart] == [START, START + 10 * MINUTE]


def test_lg_4_held_for_some_time() -> None:
    rule = LEVEL._replace(hold=8 * MINUTE)
    assert found(logs(errors([0] * 10 + [60])), rule) == [], "it holds for the window"
    lasting = errors([minute for minute in range(10) for _ in range(10)])
    view = logs([*lasting, entry(60, "started")])
    assert found(view, rule, START + 6 * MINUTE) == [], "not yet"
    assert [each.start for each in found(view, rule, START + 7 * MINUTE)] == [START]


def test_lg_4_lines_far_apart() -> None:
    """A clock that was wrong leads to no table of fifty years of minutes."""
    old = ["1980-01-01 00:00:00,000 ERROR [main] jobs.Run: Job 1 failed"] * 10
    assert found(logs(old + errors([0] * 9)), LEVEL) == [], "over for longer than the lookback"
    assert len(found(logs(old + errors([0] * 10)), LEVEL)) == 1


def test_lg_4_a_template_by_its_text_or_id() -> None:
    rule = Rule("failed", "rate", (), threshold=10, template="failed")
    view = logs(errors([0] * 10) + [entry(1, "started")] * 20)
    (one,) = found(view, rule)
    assert one.summary == '10 entries of "Job <num> failed" in 5 minutes (threshold 10)'
    (same,) = found(view, rule._replace(template=one.example.values[0]))
    assert same == one
    assert found(view, rule._replace(threshold=11)) == []
    assert found(view, rule._replace(format="other")) == []


def test_lg_4_a_new_template() -> None:
    """LG-4: what first occurs when a log has been read for an hour; it is over after another."""
    rule = Rule("new", "new_template", (), window=60 * MINUTE)
    usual = [entry(minute, "started") for minute in range(0, 180, 5)]
    view = logs([*usual, entry(59, "one thing"), entry(60, "quite another thing")])
    (one,) = found(view, rule)
    assert one.summary == "a new message of log4j: quite another thing"
    assert (one.start, one.end) == (START + 60 * MINUTE, START + 120 * MINUTE)
    assert [each.end for each in found(view, rule, START + 119 * MINUTE)] == [None]
    assert found(view, rule._replace(template="nothing")) == []


def test_lg_4_a_silent_component() -> None:
    rule = Rule("quiet", "silence", (), hold=10 * MINUTE, components=("jobs.Mail",))
    lines = [entry(minute, "started") for minute in range(30)]
    lines += [entry(minute, "sent", component="jobs.Mail") for minute in range(20)]
    view = logs(lines)
    (one,) = found(view, rule)
    assert (one.subject, one.start) == ("component jobs.Mail of log4j", START + 19 * MINUTE)
    assert one.end is None
    assert found(view, rule._replace(hold=11 * MINUTE)) == []
    assert found(view, rule._replace(components=("jobs.Run",))) == []
    assert found(view, rule._replace(host="other")) == []
    assert found(logs([*lines, entry(30, "sent", component="jobs.Mail")]), rule) == [], "it is back"


def test_lg_4_silent_components_of_the_page() -> None:
    """LG-4: without a name, those that were busy and of which dozens of lines are missing."""
    rule = Rule("quiet", "silence", (), hold=10 * MINUTE)
    lines = [entry(minute, "started") for minute in range(90)]
    lines += [entry(minute, "sent", component="jobs.Mail") for minute in range(50)]
    lines += [entry(0, "once", component="jobs.Once")]
    assert [each.subject for each in found(logs(lines), rule)] == ["component jobs.Mail of log4j"]


GUESSES = [login(i, "Failed password for root from 192.0.2.7") for i in range(6)]


@pytest.mark.thorough
def test_lg_4_a_guessed_password_that_got_in() -> None:
    rule = Rule("in", "break_in", (), window=60 * MINUTE)
    entered = login(60, "Accepted password for root from 192.0.2.7")
    (one,) = found(logs([*GUESSES, entered]), rule)
    assert (one.subject, one.start) == ("address 192.0.2.7", START + MINUTE)
    assert one.summary == ("192.0.2.7 guessed passwords (6 failures) and got in to gate as root")
    assert one.end is None
    assert found(logs(GUESSES), rule) == [], "none got in"
    elsewhere = login(60, "Accepted password for root from 192.0.2.8")
    assert found(logs([*GUESSES, elsewhere]), rule) == []
    assert found(logs([*GUESSES[:4], entered]), rule) == [], "a user who mistyped"


def test_lg_4_the_same_address_much_later() -> None:
    rule = Rule("in", "break_in", (), window=60 * MINUTE)
    entries = [login(60 + i * 8_000, "Accepted password for root from 192.0.2.7") for i in (0, 1)]
    first, second = found(logs([*GUESSES, *entries]), rule)
    assert (first.end, second.end) == (START + 61 * MINUTE, None)


def hits(good: int, bad: int, clock: str = "10:00") -> View:
    statuses = [200] * good + [502] * bad + [200]
    rows = [
        record(line(clock=f"{clock}:00", status=status), i, position=i * 100)
        for i, status in enumerate(statuses)
    ]
    view = MemoryView(BEHAVIOUR)
    take_batch(Behaviour(), view, table(rows))
    return view


def test_lg_4_the_share_of_5xx() -> None:
    rule = Rule("5xx", "error_share", (), share=0.1, minimum=100)
    (one,) = found(hits(89, 10), rule)
    assert one.summary == "10.0% of 100 hits in 5 minutes were answered with 5xx (threshold 10.0%)"
    assert (one.subject, one.end) == ("5xx", None)
    assert found(hits(90, 9), rule) == []
    assert found(hits(0, 98), rule) == [], "fewer hits than the minimum"


def test_lg_4_the_share_of_rejected_records() -> None:
    rule = Rule("bad", "rejected_share", (), share=0.2, minimum=10)
    rows = [entry(minute, "started").encode() for minute in range(8)]
    for bad, count in ((2, 1), (1, 0)):
        view = MemoryView(LOGS)
        take_batch(
            KNOWN,
            view,
            records("app.log", [*rows, *[b"260231 101500 17 INFO a.B: c"] * bad, rows[0]][:10], 0),
        )
        incidents = found(view, rule)
        assert len(incidents) == count
    assert found(view, rule._replace(share=0.1))[0].summary == (
        "10.0% of 10 records were rejected (threshold 10.0%)"
    )


def test_lg_4_lines_after_now_do_not_count() -> None:
    view = logs(errors([0] * 5 + [100] * 10))
    assert found(view, LEVEL, START + MINUTE) == []


@pytest.mark.parametrize(
    ("kind", "pipeline", "message"),
    [
        ("error_share", "logs", "error_share is for access logs, but these are the tables of sys"),
        ("funnel", "logs", "funnel is for access logs, but these are the tables of system logs"),
        ("break_in", "behaviour", "break_in is for system logs, but these are the tables of acc"),
    ],
)
def test_ux_4_a_rule_for_other_tables(kind: str, pipeline: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_kinds(Rules((Rule("a", kind, ()),), (), DAY), pipeline)
    both: Callable[[str], None] = lambda name: check_kinds(  # noqa: E731
        Rules((Rule("a", "rejected_share", ()),), (), DAY), name
    )
    both("logs")
    both("behaviour")
