"""IN-6: of many groups, each is looked at in its turn."""

from __future__ import annotations

from barnabas.console.turns import MOST_AT_ONCE, MOST_KEPT, latest, next_turn

NAMES = [f"group-{number:04d}" for number in range(1_000)]


def looks_until_all(opened: list[str], listed: list[str]) -> int:
    looked_at: dict[str, int] = {}
    for look in range(1, 100):
        names = next_turn(NAMES, looked_at, opened, listed)
        assert len(names) == len(set(names)) == MOST_AT_ONCE
        looked_at |= dict.fromkeys(names, look)
        if len(looked_at) == len(NAMES):
            return look
    raise AssertionError(f"only {len(looked_at)} groups were looked at")


def test_a_few_groups_are_all_looked_at_each_time() -> None:
    assert next_turn(NAMES[:100], dict.fromkeys(NAMES, 5)) == NAMES[:100]


def test_each_of_a_thousand_groups_gets_its_turn_within_twenty_looks() -> None:
    assert looks_until_all([], []) == 10
    assert looks_until_all(NAMES[:300], NAMES[300:800]) <= 20


def test_an_open_group_is_looked_at_each_time_and_a_listed_one_more_often() -> None:
    looked_at = dict.fromkeys(NAMES, 1) | dict.fromkeys(NAMES[500:600], 2)
    names = next_turn(NAMES, looked_at, ["group-0999", "gone"], NAMES[500:600])
    assert names[0] == "group-0999"
    assert names[1:31] == NAMES[500:530]
    assert names[31:] == NAMES[:69]


def test_what_is_remembered_is_bounded_and_only_of_groups_that_are_there() -> None:
    many = {str(number): number for number in range(MOST_KEPT + 10)}
    assert min(latest(many, many).values()) == 10
    assert latest({"a": 1, "gone": 2}, ["a"]) == {"a": 1}
