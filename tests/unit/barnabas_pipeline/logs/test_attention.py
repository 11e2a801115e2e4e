"""What the page of system logs says first (SP-5)."""

from __future__ import annotations

from datetime import datetime, timedelta

from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.logs.attention import concerns
from barnabas_pipeline.logs.bursts import Burst
from barnabas_pipeline.logs.figures import Figures, System
from barnabas_pipeline.logs.incidents import Incident
from barnabas_pipeline.logs.intrusions import Intruder
from barnabas_pipeline.logs.silences import Silence

AT = datetime.fromisoformat("2026-03-02T10:00:00")
MINUTE = timedelta(minutes=1)
SYSLOG = System("syslog", 1_000, {}, AT, AT + 60 * MINUTE, MINUTE, [], 3, 1)
RAW = SYSLOG._replace(name="raw", lines=2)
INTRUDER = Intruder("192.0.2.x", 51, 2, ("root", "git"), AT, AT + 29 * MINUTE, (), ())
CALM = Figures(
    accounts=Accounts(1_000, 1_000, 0, 0),
    files=[],
    systems=[SYSLOG],
    hosts=[("gate", 1_000)],
    templates=[],
    new_templates=[],
    texts=dict.fromkeys("tuvwx", "no disk"),
    incidents=[],
    silences=[],
    components=[],
    logins=[],
    intruders=[INTRUDER],
    raw_lines=0,
    raw_samples=[],
    dead_letters=[],
)


def test_sp_5_nothing_needs_attention() -> None:
    """SP-5: an address that guessed passwords and did not get in is for its card alone."""
    assert concerns(CALM) == []


def test_sp_5_a_break_in_is_first_and_urgent() -> None:
    """SP-5: with host and user."""
    figures = CALM._replace(
        intruders=[INTRUDER._replace(entered_as=("git",), hosts=("gate",)), INTRUDER],
        dead_letters=[DeadLetters("not UTF-8", 2, [("a.log, line 7", "\\xff")])],
        accounts=Accounts(1_000, 998, 2, 0),
        systems=[SYSLOG, RAW],
        raw_lines=2,
        raw_samples=[("b.log, line 1", "odd")] * 4,
        incidents=[Incident("syslog", (Burst(t, AT, 2, 839, 0.1),)) for t in "tuvwx"],
        silences=[Silence("syslog", "cron", 30, AT, 90 * MINUTE, 20.0)],
    )
    found = concerns(figures)
    assert [(each.title, each.is_urgent) for each in found] == [
        ("Break-in on gate: 192.0.2.x logged in as git", True),
        ("2 records were rejected", False),
        ("2 entries match no known format", False),
        *[("Burst of 839 entries", False)] * 3,
        ("2 more bursts", False),
        ("cron fell silent", False),
    ]
    assert found[0].about == "after 51 failed logins, 2 Mar 2026, 10:00 to 10:29"
    assert found[1].reasons == [("not UTF-8", 2)]
    assert found[1].examples == [("a.log, line 7", "\\xff")]
    assert len(found[2].examples) == 3
    assert found[3].examples == [("", "no disk")]
    assert "1 h 30 min before the end of its log" in found[-1].about


def test_sp_2_many_rejected_and_many_unknown_are_urgent() -> None:
    """SP-2: more than a fifth."""
    figures = CALM._replace(
        accounts=Accounts(10, 7, 3, 0),
        dead_letters=[DeadLetters("not UTF-8", 3, [])],
        systems=[SYSLOG._replace(lines=4), RAW._replace(lines=3)],
        raw_lines=3,
    )
    assert [(each.title, each.is_urgent) for each in concerns(figures)] == [
        ("30% of the records were rejected", True),
        ("43% of the entries match no known format", True),
    ]


def test_sp_5_the_bursts_of_one_template_are_one_concern() -> None:
    """SP-5: a message that bursts every hour does not hide the others."""
    bursts = [Burst("t", AT, 2, 839, 0.1), Burst("t", AT + 30 * MINUTE, 1, 40, 0.1)]
    other = Burst("u", AT + 10 * MINUTE, 1, 99, 0.1)
    found = concerns(
        CALM._replace(
            incidents=[Incident("syslog", (each,)) for each in (bursts[0], other, bursts[1])]
        )
    )
    assert [each.title for each in found] == [
        "2 bursts of 879 entries in all",
        "Burst of 99 entries",
    ]
    assert found[0].about.startswith("the largest ")
