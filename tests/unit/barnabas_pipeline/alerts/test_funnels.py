"""How far visitors go in a funnel, and the incidents of a drop, from lines (LG-4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.alerts import funnels
from barnabas_pipeline.alerts.conditions import find_incidents
from barnabas_pipeline.alerts.incidents import Incident, lines_of
from barnabas_pipeline.alerts.rules import Rule, Rules, SinkOptions
from barnabas_pipeline.alerts.watch import Watch, load_state
from barnabas_pipeline.behaviour.definition import Behaviour
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.alert_receivers import web_receiver
from tests.kit.pipeline.table_batches import (
    QUERY,
    in_tasks,
    send_nothing,
    snapshot_of,
    tables_in,
    taken,
)
from tests.kit.pipeline.web_records import line, record, table

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
CLOCK = datetime(2026, 3, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
STEPS = ("/cart", "/checkout", "/thanks")
RULE = Rule(
    "checkout",
    "funnel",
    (),
    share=0.5,
    minimum=4,
    window=60 * MINUTE,
    steps=STEPS,
    within=30 * MINUTE,
)


def hit(minute: float, path: str, client: str = "a", status: int = 200, **more: str) -> bytes:
    at = START + minute * MINUTE
    return line(client, f"{at:%H:%M:%S}", path, day=f"{at:%d/%b/%Y}", status=status, **more)


def write(directory: Path, lines: Sequence[bytes], batch: int = 0, first: int = 0) -> Snapshot:
    """Write a batch of lines, the first of which has this number."""
    rows = table(record(each, i, position=i * 100) for i, each in enumerate(lines, first))
    taken(tables_in(directory), batch, QUERY, lambda each: in_tasks(rows, each), send_nothing)
    return snapshot_of(directory)


def reached(lines: Sequence[bytes], steps: Sequence[str] = STEPS) -> list[tuple[str, int, int]]:
    """The client, the steps, and the minute from which it counts, of each visit."""
    rows = table(record(each, i, position=i * 100) for i, each in enumerate(lines))
    events = Behaviour().work(None).part(rows, {}).rows["events"]
    hits = funnels.hits(ds.dataset(events), steps, (START, START + DAY))
    return [
        (row["client"], row["reached"], (row["end"] - START) // MINUTE)
        for row in funnels.visits(hits, steps, RULE.within).iter_rows(named=True)
    ]


def cohort(minute: int, buyers: int, others: int) -> list[bytes]:
    """Visitors that begin in a minute; some of them go to the end, all others to the middle."""
    found = []
    for number in range(buyers + others):
        client = f"c{minute}-{number}"
        found += [hit(minute, "/cart", client), hit(minute + 1, "/checkout", client)]
        if number < buyers:
            found.append(hit(minute + 2, "/thanks", client))
    return found


def found(view: Snapshot, rule: Rule = RULE, now: datetime | None = None) -> list[Incident]:
    assert view.newest_s is not None
    at = now or datetime.fromtimestamp(view.newest_s, UTC)
    return find_incidents(view, Rules((rule,), (), DAY), at)


def test_lg_4_steps_in_order() -> None:
    """LG-4: a visitor counts for a step only after the step before it."""
    lines = [
        *(hit(minute, path, "all") for minute, path in enumerate(STEPS)),
        *(hit(minute, path, "back") for minute, path in enumerate(reversed(STEPS))),
        *(hit(0, path, "second") for path in STEPS),
        *(hit(minute, path, "skips") for minute, path in enumerate(("/cart", "/thanks"))),
        *(hit(minute, path, "none") for minute, path in enumerate(STEPS[1:])),
    ]
    assert reached(lines) == [
        ("all", 3, 30),
        ("back", 1, 32),
        ("second", 3, 30),
        ("skips", 1, 30),
    ]


def test_lg_4_a_visitor_is_an_address_with_an_agent() -> None:
    """LG-4: as in sessions; robots are no visitors, and a missing agent is no robot's."""
    robot = "Googlebot/2.1 (+http://www.google.com/bot.html)"
    common = b'plain - - [12/Mar/2026:09:0%d:00 +0000] "GET %s HTTP/1.1" 200 100'
    lines = [
        hit(0, "/cart", agent="One"),
        hit(1, "/checkout", agent="Two"),
        *(hit(minute, path, "bot", agent=robot) for minute, path in enumerate(STEPS)),
        *(common % (minute, path.encode()) for minute, path in enumerate(STEPS)),
    ]
    assert reached(lines) == [("a", 1, 30), ("plain", 3, 30)]


def test_lg_4_errors_are_no_steps() -> None:
    lines = [hit(0, "/cart"), hit(1, "/checkout", status=302), hit(2, "/thanks", status=500)]
    assert reached(lines) == [("a", 2, 30)]


def test_lg_4_a_step_by_the_beginning_of_its_path() -> None:
    lines = [hit(0, "/shop/tea?size=2"), hit(1, "/shop"), hit(2, "/order/7/thanks")]
    assert reached(lines, ("/shop/*", "/order/*")) == [("a", 2, 30)]
    assert reached(lines, ("/shop/tea", "/order/7")) == [("a", 1, 30)]
    assert reached(lines, ("/shop*", "/shop*")) == [("a", 2, 31)], "two hits"
    assert reached(lines[:1], ("/shop*", "/shop*")) == [("a", 1, 30)], "one hit"
    assert reached(lines, ("/order/7", "/order/*")) == []
    assert reached(lines, ("/none", "/order/*")) == []


def test_lg_4_the_time_to_go_on() -> None:
    """LG-4: it begins again with each hit on the first step, until it has passed."""
    lines = [
        *(hit(minute, "/cart", "slow") for minute in (0, 29)),
        hit(58, "/checkout", "slow"),
        hit(59, "/thanks", "slow"),
        hit(0, "/cart", "twice"),
        hit(30, "/cart", "twice"),
        hit(31, "/checkout", "twice"),
    ]
    assert reached(lines) == [("slow", 2, 59), ("twice", 1, 30), ("twice", 2, 60)]


def test_lg_4_a_drop_in_a_funnel(tmp_path: Path) -> None:
    """LG-4: from below the share on, with as many visitors as it needs, and with lines."""
    asset = hit(1, "/logo.png", "c0-1")
    view = write(tmp_path, [asset, *cohort(0, 1, 3), hit(31, "/")])
    (one,) = found(view)
    assert (one.subject, one.start, one.end) == ("/cart to /thanks", START + 30 * MINUTE, None)
    assert one.summary == (
        "25.0% of 4 visitors in 60 minutes went on from /cart to /thanks (threshold 50.0%):"
        " /cart 4, /checkout 4, /thanks 1"
    )
    assert [each.text for each in lines_of(one, view)] == [
        f"2026-03-12 09:01:00 c0-{number} GET /checkout 200" for number in (1, 2, 3)
    ]
    assert found(view, RULE._replace(minimum=5)) == [], "fewer visitors than that"
    assert found(view, now=START + 29 * MINUTE) == [], "they may still go on"
    later = RULE._replace(within=30.5 * MINUTE)
    assert found(view, later, START + 30.4 * MINUTE) == [], "the same minute is too early, too"
    assert found(view, RULE._replace(share=0.25)) == [], "as many as the threshold"


def test_lg_4_a_funnel_that_recovers(tmp_path: Path) -> None:
    """LG-4: it is over when the share has not been below the threshold for a window."""
    lines = [*cohort(0, 0, 4), *cohort(40, 8, 0), *cohort(2_000, 0, 4), hit(2_031, "/")]
    view = write(tmp_path, lines)
    (over,) = found(view, now=START + 130 * MINUTE)
    assert (over.start, over.end) == (START + 30 * MINUTE, START + 70 * MINUTE)
    assert "0.0% of 4 visitors" in over.summary
    (firing,) = found(view, now=START + 129 * MINUTE)
    assert (firing.end, firing.id) == (None, over.id)
    held = RULE._replace(hold=41 * MINUTE)
    assert found(view, held, START + 130 * MINUTE) == [], "it held for forty minutes"
    (later,) = found(view)
    assert later.start == START + 2_030 * MINUTE, "the first is over for longer than the lookback"


@pytest.mark.thorough
def test_lg_4_a_funnel_once_over_restarts(tmp_path: Path) -> None:
    """LG-4: firing once and resolved once, though each evaluation is that of a new process."""
    with web_receiver() as receiver:
        sink = SinkOptions("team", "webhook", {"url": f"{receiver.url}/team"})
        rules = Rules((RULE._replace(sinks=("team",)),), (sink,), DAY)
        lines = 0
        sent = []
        batches = (
            cohort(0, 0, 4),
            [hit(31, "/")],
            cohort(40, 1, 1),
            [*cohort(80, 9, 0), hit(200, "/")],
        )
        for number, batch in enumerate(batches):
            view = write(tmp_path, batch, number, lines)
            lines += len(batch)
            for _ in range(2):
                evaluation = Watch(rules, tmp_path, "behaviour").evaluate(view, CLOCK)
                sent.append(evaluation.sent)
                assert load_state(tmp_path) == evaluation.known
    assert sent == [0, 0, 1, 0, 0, 0, 1, 0]
    assert [each.body["status"] for each in receiver.posts] == ["firing", "resolved"]
    assert len({each.body["id"] for each in receiver.posts}) == 1


def test_lg_4_a_funnel_without_hits() -> None:
    assert reached([hit(0, "/")]) == reached([]) == []
    hits = funnels.hits(None, STEPS, (START, CLOCK))
    assert funnels.visits(hits, STEPS, RULE.within).is_empty()
