"""The script of the demonstration ends as it began, so that it can begin again."""

from __future__ import annotations

from collections import Counter

from barnabas.console.demo.script import ROUND_S, SCRIPT, Action

_PAIRS = {
    Action.JOIN: Action.LEAVE,
    Action.KILL_BROKER: Action.START_BROKER,
    Action.PAUSE_BROKER: Action.RESUME_BROKER,
    Action.START_PROCESS: Action.KILL_PROCESS,
    Action.HELP: Action.END_HELP,
}


def test_steps_follow_each_other_within_the_round() -> None:
    times = [step.at_s for step in SCRIPT]
    assert times == sorted(set(times))
    assert times[-1] < ROUND_S


def test_each_change_is_undone_later() -> None:
    # The members that crash are gone by themselves.
    actions = [step.action for step in SCRIPT if step.action is not Action.CRASH_LOOP]
    assert Counter(actions) == Counter([*_PAIRS, *_PAIRS.values()])
    for change, undoing in _PAIRS.items():
        assert actions.index(change) < actions.index(undoing)


def test_in_7_a_rebalance_and_a_failover_happen_within_a_minute() -> None:
    first = {step.action: step.at_s for step in reversed(SCRIPT)}
    assert first[Action.JOIN] < first[Action.KILL_BROKER] < 60
