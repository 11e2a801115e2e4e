"""`groups reset-offsets`: from the command line to the plan, and the file between two runs."""

from __future__ import annotations

from io import StringIO
from time import tzset

import pytest
from rich.console import Console

from barnabas.cli.groups.instants import BadInstant, duration_ms, instant_ms, instant_text
from barnabas.cli.groups.reset_plan import (
    BadReset,
    Goal,
    Log,
    Move,
    Selection,
    Target,
    plan_move,
    select_partitions,
    selection,
)
from barnabas.cli.groups.reset_text import plan_file, plan_text, plan_values, read_plan
from barnabas.cli.groups.tables import show_plan
from barnabas.types import TopicPartition

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOG = Log(start=5, end=10, committed=7, at_time=8)


@pytest.mark.parametrize(
    ("target", "log", "after", "remark"),
    [
        (Target(Goal.EARLIEST), LOG, 5, None),
        (Target(Goal.LATEST), LOG, 10, None),
        (Target(Goal.CURRENT), LOG, 7, None),
        (Target(Goal.CURRENT), LOG._replace(committed=None), 10, "no committed offset"),
        (Target(Goal.CURRENT), LOG._replace(committed=2), 5, "lower than earliest"),
        (Target(Goal.TIME, 123), LOG, 8, None),
        (Target(Goal.TIME, 123), LOG._replace(at_time=None), 10, "no record at or after this time"),
        (Target(Goal.SHIFT, 2), LOG, 9, None),
        (Target(Goal.SHIFT, -2), LOG, 5, None),
        (
            Target(Goal.SHIFT, -3),
            LOG,
            5,
            "New offset (4) is lower than earliest offset for topic partition orders-0. "
            "Value will be set to 5",
        ),
        (Target(Goal.OFFSET, 6), LOG, 6, None),
        (Target(Goal.OFFSET, 10), LOG, 10, None),
        (
            Target(Goal.OFFSET, 500),
            LOG,
            10,
            "New offset (500) is higher than latest offset for topic partition orders-0. "
            "Value will be set to 10",
        ),
    ],
)
def test_where_a_group_goes(target: Target, log: Log, after: int, remark: str | None) -> None:
    """What lies outside of the log becomes its nearer end, and is reported in Kafka's words."""
    move = plan_move("g", ORDERS_0, target, log)
    assert (move.before, move.after) == (log.committed, after)
    assert (move.remark is None) == (remark is None)
    assert (remark or "") in (move.remark or "")


def test_nothing_can_be_shifted_that_was_never_committed() -> None:
    with pytest.raises(BadReset, match="orders-0"):
        plan_move("g", ORDERS_0, Target(Goal.SHIFT, 1), LOG._replace(committed=None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", Selection("orders", None)),
        ("orders:0", Selection("orders", (0,))),
        ("orders:2, 0,2", Selection("orders", (0, 2))),
    ],
)
def test_topics_and_partitions_are_named(text: str, expected: Selection) -> None:
    assert selection(text) == expected


@pytest.mark.parametrize("text", ["", ":0", "orders:", "orders:a", "orders:-1", "orders:1-3",
                                  "orders:99999999999", "orders:\u0661"])  # fmt: skip
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(BadReset, match="--topic"):
        selection(text)


def test_only_what_is_there_is_selected() -> None:
    topics = {"orders": [0, 1], "bills": [0]}
    named = [Selection("orders", (1,)), Selection("orders", None), Selection("bills", None)]
    assert select_partitions(named, topics) == [ORDERS_1, ORDERS_0, TopicPartition("bills", 0)]
    with pytest.raises(BadReset, match="topic gone does not exist"):
        select_partitions([Selection("gone", None)], topics)
    with pytest.raises(BadReset, match="partitions 0 to 1, not 7"):
        select_partitions([Selection("orders", (7,))], topics)


MOVES = [Move("gone", ORDERS_0, 7, 5), Move("gone", ORDERS_1, None, 3)]


def test_the_plan_has_kafkas_columns() -> None:
    assert plan_text(MOVES) == (
        "\n"
        "GROUP                          TOPIC                          PARTITION  NEW-OFFSET\n"
        "gone                           orders                         0          5\n"
        "gone                           orders                         1          3\n"
    )
    assert plan_values(MOVES[1:], False) == {
        "executed": False,
        "offsets": [
            {"group": "gone", "topic": "orders", "partition": 1, "offset": None, "new_offset": 3}
        ],
    }
    output = StringIO()
    show_plan(MOVES, Console(file=output, width=100, color_system=None))
    assert [line.split() for line in output.getvalue().splitlines()[1:]] == [
        ["gone", "orders", "0", "7", "5", "2"],
        ["gone", "orders", "1", "-", "3", "-"],
    ]


def test_a_plan_is_read_back_as_it_was_written() -> None:
    """The lines are those that Kafka's tool exports."""
    assert plan_file(MOVES) == "orders,0,5\norders,1,3\n"
    assert read_plan(plan_file(MOVES), ["gone"]) == {"gone": {ORDERS_0: 5, ORDERS_1: 3}}
    several = [*MOVES, Move('a "group", of two', ORDERS_1, 1, 2)]
    text = plan_file(several)
    assert text.startswith("gone,orders,0,5\ngone,orders,1,3\n")
    assert read_plan(text, ["gone", 'a "group", of two']) == {
        "gone": {ORDERS_0: 5, ORDERS_1: 3},
        'a "group", of two': {ORDERS_1: 2},
    }
    assert read_plan(text, ["gone"]) == {"gone": {ORDERS_0: 5, ORDERS_1: 3}}
    assert read_plan('"orders", 0, 5\r\n\r\n', ["gone"]) == {"gone": {ORDERS_0: 5}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("orders,0\n", "line 1 has 2 columns"),
        ("orders,0,5\norders,x,5\n", "line 2: 'x' is not a number"),
        ("orders,0,-1\n", "line 1: '-1'"),
        ("orders,0,9223372036854775808\n", "line 1"),
        ("orders,2147483648,1\n", "line 1"),
        ("other,orders,0,5\n", "no offset for group gone"),
        ("", "no offset for group gone"),
        ("orders,0," + "9" * 200_000, "line 1"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(text: str, problem: str) -> None:
    """UX-4: which line, and what is wrong with it."""
    with pytest.raises(BadReset, match=problem):
        read_plan(text, ["gone"])


def test_lines_without_a_group_are_for_one_group() -> None:
    with pytest.raises(BadReset, match="line 1 does not name its group"):
        read_plan("orders,0,5\n", ["gone", "live"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01", 1_000),
        ("2026-11-21T17:30:00.007", 1_795_282_200_007),
        ("2026-11-21T17:30:00.007Z", 1_795_282_200_007),
        ("2026-11-21T18:30:00.007+01:00", 1_795_282_200_007),
        ("2026-11-21", 1_795_219_200_000),
        ("1960-01-01T00:00:00", 0),
        ("0001-01-01T00:00:00+14:00", 0),
    ],
)
def test_an_instant_is_utc_unless_it_says_more(
    text: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the command is run."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tzset()
    try:
        assert instant_ms(text) == expected
    finally:
        monkeypatch.undo()
        tzset()


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00", "17:30", "1795282200007"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BadInstant):
        instant_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("P1DT2H3M4S", 93_784_000),
        ("PT0.5S", 500),
        ("pt2.0079s", 2_007),
        ("PT0S", 0),
    ],
)
def test_a_duration_is_iso_8601(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "PT1", "P1H", "PT1H1D", "P-1D",
                                  "P1W", "PT.5S", "PT1.S", "P" + "9" * 50 + "D"])  # fmt: skip
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInstant, match="not a duration"):
        duration_ms(text)


def test_an_instant_is_written_to_the_millisecond() -> None:
    assert instant_text(1_795_282_200_007) == "2026-11-21T17:30:00.007Z"
    assert instant_ms(instant_text(1)) == 1
