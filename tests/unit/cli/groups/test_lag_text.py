"""IN-5: the lag of groups as lines, as JSON, as metrics, and on a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, ConsoleDimensions

from barnabas.cli.groups.lag_table import lag_screen, show_lags
from barnabas.cli.groups.lag_text import (
    changes,
    duration_text,
    families,
    lag_text,
    lag_values,
    states,
    summary,
)
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.channel import BrokerAddress
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.history import Pace
from barnabas.client.lag.sample import Sample
from barnabas.client.lag.verdict import Age, Basis, State, Verdict
from barnabas.net.metrics_page import text
from barnabas.types import TopicPartition

COORDINATOR = BrokerAddress(0, "127.0.0.1", 24608)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
WELL = Verdict(
    State.CAUGHT_UP, "", 0, True, Age(0.0, Basis.RECORD), None, 0.0,
    Sample(0, 0, 60, 0, 60, member="m"),
)  # fmt: skip
SLOW = Verdict(
    State.CATCHING_UP, "", 20, False, Age(12.5, Basis.BOUND), Pace(1.0, 3.0, -2.0, 0.1), 10.0,
    Sample(0, 0, 40, 0, 60, member="m"),
)  # fmt: skip
LEADERLESS = Verdict(
    State.UNKNOWN, "no leader", None, False, None, None, None, Sample(0, 0, None, 0, None)
)
STUCK = SLOW._replace(state=State.STUCK, reason="stayed at 40", pace=None, catch_up_s=None)


def lag(verdicts: Mapping[TopicPartition, Verdict], name: str = "g", **more: Any) -> GroupLag:
    group = GroupDescription(name, "Stable", "consumer", "range", COORDINATOR, (), ())
    return GroupLag(group._replace(**more), verdicts)


def test_in_5_a_table_with_bounds_and_a_sum() -> None:
    empty, heading, first, second, last = lag_text(lag({T0: SLOW, T1: LEADERLESS})).splitlines()
    assert empty == "" and heading.split()[5:] == [
        "RECORDS", "SECONDS", "TREND", "CATCH-UP", "STATE", "REASON",
    ]  # fmt: skip
    cells = ["g", "t", "0", "40", "60", "<=20", ">=12.5", "-2.0/s", "10", "s", "catching", "up"]
    assert first.split() == [*cells, "-"]
    assert second.split() == ["g", "t", "1", *"------", "unknown", "no", "leader"]
    assert last == (
        "g: unknown, about 20 records behind, oldest waiting for >=12.5 s; "
        "slowest member m: catching up, 1 partition behind by <=20"
    )


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ({}, "reads no partitions"),
        ({T0: WELL}, "caught up"),
        (
            {T0: SLOW},
            "catching up, at most 20 records behind, oldest waiting for >=12.5 s, caught up in "
            "10 s; slowest member m: catching up, 1 partition behind by <=20",
        ),
        (
            {T0: STUCK},
            "stuck, at most 20 records behind, oldest waiting for >=12.5 s, not going to catch up; "
            "slowest member m: stuck, 1 partition behind by <=20",
        ),
    ],
)
def test_in_5_a_line_sums_it_up(verdicts: dict[TopicPartition, Verdict], line: str) -> None:
    assert summary(lag(verdicts)) == line


def test_in_5_what_could_not_be_counted_is_said() -> None:
    found = lag({T0: SLOW})._replace(unread_reason="not authorized")
    assert summary(found).endswith("; records were not counted (not authorized)")
    assert summary(lag({}, state="Dead")) == "the group does not exist"


def test_in_5_a_duration_has_one_unit() -> None:
    shown = [duration_text(each) for each in (0.4, 59, 90, 5_400, 200_000)]
    assert shown == ["0 s", "59 s", "1.5 min", "1.5 h", "2.3 d"]


def test_in_5_json_has_null_for_what_is_unknown() -> None:
    values = json.loads(json.dumps(lag_values(lag({T0: SLOW, T1: LEADERLESS}))))
    slow, leaderless = values["partitions"]
    assert (slow["trend"], slow["write_rate"], slow["read_rate"]) == (-2.0, 1.0, 3.0)
    assert (slow["seconds"], slow["seconds_from"], slow["catch_up_seconds"]) == (12.5, "bound", 10)
    assert {leaderless[key] for key in ("records", "seconds", "trend", "end_offset")} == {None}
    assert values["lag"]["state"] == "unknown" and values["lag"]["catch_up_seconds"] is None
    assert values["slowest_member"]["member"] == "m"


def test_in_5_a_change_of_state_is_a_line() -> None:
    before = states([lag({T0: SLOW, T1: WELL})])
    (line,) = changes(before, [lag({T0: STUCK, T1: WELL})], 1_795_281_471_007)
    assert line.endswith("Z g t-0: catching up -> stuck, lag <=20, >=12.5 s (stayed at 40)")
    assert list(changes(before, [lag({T0: SLOW, T1: WELL})], 0)) == []
    (line,) = changes({}, [lag({T0: WELL})], 0)
    assert line == "1970-01-01T00:00:00.000Z g t-0: caught up, lag 0, 0.0 s"


def test_in_5_an_unknown_number_is_no_metric() -> None:
    page = text(families([lag({T0: SLOW, T1: LEADERLESS})], 1_500))
    labels = 'group="g",topic="t",partition='
    assert f'barnabas_group_lag_records{{{labels}"0"}} 20.0\n' in page
    assert f'barnabas_group_lag_seconds{{{labels}"0"}} 12.5\n' in page
    assert f'barnabas_group_lag_trend{{{labels}"0"}} -2.0\n' in page
    assert f'barnabas_group_catch_up_seconds{{{labels}"0"}} 10.0\n' in page
    assert f'barnabas_group_partition_state{{{labels}"1",state="unknown"}} 1.0\n' in page
    assert "barnabas_group_lag_looked_at_seconds 1.5\n" in page
    assert page.count('partition="1"') == 1


def shown(*lags: GroupLag, height: int = 24, width: int = 160, unready: str = "") -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, highlight=False)
    console.print(lag_screen(lags, ConsoleDimensions(width, height), unready))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_in_5_the_screen_shows_the_worst_first() -> None:
    lines = shown(lag({T0: WELL}, "a"), lag({T0: WELL, T1: STUCK}, "b"), unready="no answer")
    assert lines[0] == "out of date: no answer"
    assert lines[1].startswith("b  stuck, ")
    assert lines[3].split()[:2] == ["t", "1"] and lines[4].split()[:2] == ["t", "0"]
    assert lines[5] == "a  caught up"


@pytest.mark.parametrize("height", range(5, 40))
@pytest.mark.parametrize("width", [40, 160])
def test_in_5_the_screen_never_scrolls(height: int, width: int) -> None:
    many = {TopicPartition("t", number): STUCK for number in range(20)}
    lines = shown(lag(many), lag({T0: WELL}, "a"), height=height, width=width, unready="late")
    assert len(lines) <= height
    rows = sum(line.startswith(" t ") for line in lines)
    hidden = re.search(r"not shown: (\d+) partition", lines[-1])
    assert rows + (int(hidden[1]) if hidden else 0) == 21


def test_in_5_a_hostile_name_is_shown_escaped() -> None:
    console = Console(file=StringIO(), width=160, highlight=False)
    show_lags([lag({T0: STUCK}, "\x1b[2J")], console)
    show_lags([], console)
    output = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in output and "[2J" in output and output.endswith("No groups.\n")
