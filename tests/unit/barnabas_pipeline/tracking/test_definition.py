"""BT-1, BT-3: the tables of the events: each id once, wherever and whenever it was repeated."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.counts import count_events, merge
from barnabas_pipeline.tracking.definition import Tracking, TrackingWork, classify
from barnabas_pipeline.tracking.known_ids import KnownIds
from barnabas_pipeline.tracking.schemas import EVENTS, MERGED
from tests.kit.effort import examples
from tests.kit.pipeline.event_records import DAY_MS, MINUTE_MS, MONDAY_MS, event, records, take


def test_bt_1_an_id_counts_once(tmp_path: Path) -> None:
    """BT-1: in one task, in two tasks of a batch, and in two batches."""
    again = event("again")
    first = take(tmp_path, 0, records([again, event("other"), again, again]))
    assert sorted(first.frame("events")["id"]) == ["000again", "000other"]
    assert read_accounts(first)[0] == Accounts(4, 2, 0, 2)

    second = take(tmp_path, 1, records([again, event("new"), event("other")], first=10))
    assert sorted(second.frame("events")["id"]) == ["00000new", "000again", "000other"]
    assert read_accounts(second)[0] == Accounts(7, 3, 0, 4)
    assert second.frame("pages")["views"].sum() == 3
    assert second.frame("arrivals").select("events", "late", "repeated").rows() == [(3, 0, 4)]


def test_bt_1_an_id_that_is_repeated_with_another_time_counts_once(tmp_path: Path) -> None:
    """BT-1: also if the job was restarted in between, or goes on in the same process."""
    tracking = Tracking()
    take(tmp_path, 0, records([event("a"), event("b")]), tracking)
    other = event("a", MONDAY_MS + 20 * DAY_MS, received=MONDAY_MS + 20 * DAY_MS)
    found = take(tmp_path, 1, records([other, event("c")], first=10), tracking)
    assert sorted(found.frame("events")["id"]) == ["0000000a", "0000000b", "0000000c"]

    late = event("c", MONDAY_MS - 9 * DAY_MS, received=MONDAY_MS)
    for number, again in enumerate((tracking, Tracking())):
        rows = records([late, other], first=20 + 10 * number)
        found = take(tmp_path, 2 + number, rows, again)
        assert sorted(found.frame("events")["id"]) == ["0000000a", "0000000b", "0000000c"]
    assert read_accounts(found)[0] == Accounts(8, 3, 0, 5)


def test_ids_of_a_batch_that_failed_are_not_known() -> None:
    """Only the table decides which ids are stored."""
    known = KnownIds()
    schema = {"id": pl.String, "time": pl.Datetime("us", "UTC")}
    batch = pl.DataFrame([("a", datetime(2026, 3, 2, tzinfo=UTC))], schema, orient="row")
    assert known.find_stored(None, batch).to_list() == []
    known.add(batch["id"])
    table = ds.dataset(EVENTS.empty_table())
    assert known.find_stored(table, batch).to_list() == []


@given(st.lists(st.lists(st.integers(0, 600), max_size=30), max_size=40))
def test_at_least_half_of_the_newest_ids_are_remembered(batches: list[list[int]]) -> None:
    """Of those that the limit allows; the oldest are forgotten together."""
    known = KnownIds(most=200)
    for batch in batches:
        known.add(pl.Series([str(each) for each in batch], dtype=pl.String))
    newest: list[str] = []
    for batch in reversed(batches):
        if len(newest) + len(batch) > 100:
            break
        newest += map(str, batch)
    assume(newest)
    ids = pl.Series(newest, dtype=pl.String)
    rows = {"id": ids, "time": [datetime(2026, 3, 2, tzinfo=UTC)] * len(ids)}
    stored = pa.table(
        {name: rows[name] if name in rows else [None] * len(ids) for name in EVENTS.names}
    ).cast(EVENTS)
    later = pl.DataFrame(rows).with_columns(pl.col("time") + timedelta(days=1))
    assert set(known.find_stored(ds.dataset(stored), later)) == set(newest)


def test_bt_3_a_batch_that_is_taken_again_changes_nothing(tmp_path: Path) -> None:
    """A batch without any valid event is a batch, too."""
    rows = records([event("a"), event("a"), b"{"])
    before = take(tmp_path, 0, rows)
    after = take(tmp_path, 0, rows)
    assert contents(after) == contents(before)
    last = take(tmp_path, 1, records([b"", b"[]"], first=10))
    assert read_accounts(last)[0] == Accounts(5, 1, 3, 1)


def test_bt_3_sessions_end_by_inactivity_and_late_events_join_them(tmp_path: Path) -> None:
    """BT-3: an event that arrives a day late is in the session in which it happened."""
    early = event("a", path="/a")
    parted = event("b", MONDAY_MS + 50 * MINUTE_MS, path="/b")
    robot = event("c", visitor="visitor-r", bot=True)
    unknown = event("d", visitor=None)
    found = take(tmp_path, 0, records([early, parted, robot, unknown]))
    people = [row for row in found.frame("sessions").to_dicts() if not row["robot"]]
    assert sorted(row["entry"] for row in people) == ["/a", "/b"]
    assert found.frame("sessions").height == 3, "nobody's events are in no session"
    assert found.frame("pages")["views"].sum() == 4

    bridge = event("e", MONDAY_MS + 25 * MINUTE_MS, path="/c", received=MONDAY_MS + DAY_MS)
    found = take(tmp_path, 1, records([bridge], first=10))
    [joined] = [row for row in found.frame("sessions").to_dicts() if not row["robot"]]
    assert (joined["entry"], joined["exit"], joined["pages"]) == ("/a", "/b", 3)
    assert found.frame("arrivals")["late"].sum() == 1


def test_what_nobody_checked_is_rejected_with_a_reason(tmp_path: Path) -> None:
    """BT-6: other programs may write to the topic; nothing fails, and reasons are counted."""
    bad: list[object] = [
        b"\xff",
        b"[" * 60_000,
        b"[1]",
        b"7",
        b"x" * 70_000,
        {**event("a"), "time": 10**300},
        {**event("b"), "received": "now"},
        {**event("c"), "received": 10**30},
        {**event("d"), "received": True},
        {**event("e"), "properties": [[]]},
        {**event("f"), "name": "\n"},
        {**event("g"), "url": "javascript:alert(1)"},
        {**event("h"), "time": MONDAY_MS - 40 * DAY_MS},
    ]
    rows = records([*bad, event("good"), event("odd", url="https://[::1")], partitions=1)
    found = take(tmp_path, 0, rows)
    assert read_accounts(found)[0] == Accounts(len(bad) + 2, 2, len(bad), 0)
    assert found.reasons()["not JSON"] == 2
    assert found.reasons()["received: not a whole number of milliseconds since 1970"] == 3
    assert all(len(reason) < 200 for reason in found.reasons())


def test_the_parts_of_an_address(tmp_path: Path) -> None:
    """BT-4: campaigns come from the address, and the site itself is no source."""
    marked = "/a//b?utm_source=letter&utm_medium=email&utm_campaign=Fr%C3%BChling&x=1#top"
    found = take(
        tmp_path,
        0,
        records(
            [
                event("a", path=marked, referrer="https://www.search.example/?q=1"),
                event("b", path="?utm_campaign=", referrer="https://www.shop.example/a"),
                event("c", url="app://shop/basket", campaign="own", properties={"value": 2.5}),
                event("d", name="purchase", properties={"value": 4}),
                event("e", name="purchase", bot=True, properties={"value": 9, "n": [1]}),
                event("f", name="purchase", properties={"value": True}),
            ]
        ),
    )
    rows = {row["id"][-1]: row for row in found.frame("events").to_dicts()}
    names = ("host", "path", "referrer", "source", "medium", "campaign")
    assert [rows["a"][name] for name in names] == [
        "shop.example", "/a/b", "search.example", "letter", "email", "Frühling",
    ]  # fmt: skip
    assert [rows["b"][name] for name in names] == ["shop.example", "/", None, None, None, None]
    assert [rows["c"][name] for name in names] == ["shop", "/basket", None, None, None, "own"]
    named = {row["name"]: row for row in found.frame("names").to_dicts()}
    assert named["purchase"]["value"] == 4 and named["purchase"]["robot_events"] == 1
    assert found.frame("campaigns")["views"].sum() == 2


def test_the_tasks_do_not_receive_the_tables() -> None:
    pickled = pickle.dumps(TrackingWork(b"key", Snapshot.__new__(Snapshot)))
    assert b"Snapshot" not in pickled and isinstance(pickle.loads(pickled), TrackingWork)


events = st.builds(
    event,
    st.sampled_from("abcdefgh"),
    st.integers(0, 60).map(lambda minutes: MONDAY_MS + 7 * minutes * MINUTE_MS),
    st.sampled_from(("pageview", "click", "error")),
    st.sampled_from(("/", "/a?utm_source=s", "/b")),
    st.sampled_from(("visitor-a", "visitor-b", None)),
    bot=st.booleans(),
    screen=st.sampled_from(("390x844", "1920x1080")),
)


@pytest.mark.thorough
@settings(max_examples=examples(20))
@given(st.lists(events, max_size=12, unique_by=lambda each: each["id"]), st.randoms())
def test_bt_3_any_order_and_any_batches_give_the_same_tables(
    given_events: list[dict[str, Any]], random: Any
) -> None:
    """BT-3, BT-4: backfill and service agree."""
    shuffled = [*given_events]
    random.shuffle(shuffled)
    cut = random.randint(0, len(shuffled))
    whole = parts_of(given_events)
    for name, part in parts_of(shuffled[:cut]).items():
        rest = parts_of(shuffled[cut:])[name]
        assert rows_of(merge(name, pl.concat([part, rest]))) == rows_of(whole[name]), name


def parts_of(events: list[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    rows = classify(records(events), {})
    return count_events(rows)


def contents(snapshot: Snapshot) -> dict[str, Counter[str]]:
    return {name: rows_of(snapshot.frame(name)) for name in MERGED}


def rows_of(frame: pl.DataFrame) -> Counter[str]:
    left = [each for each in ("entry_order", "exit_order") if each in frame.columns]
    return Counter(map(repr, frame.drop(left).iter_rows()))
