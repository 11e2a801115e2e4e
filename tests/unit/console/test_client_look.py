"""IN-6: partitions are asked for their producers in turns, within limits."""

from __future__ import annotations

from barnabas.client.admin.transaction_admin import ProducerState
from barnabas.console.client_look import (
    MOST_AT_ONCE,
    MOST_STATES,
    ProducersOf,
    next_turn,
    within_bounds,
)
from barnabas.types import TopicPartition

NAMES = [TopicPartition("orders", number) for number in range(1_200)]


def test_in_6_each_partition_has_its_turn() -> None:
    asked_at: dict[TopicPartition, int] = {}
    for turn in range(1, 4):
        names = next_turn(NAMES, asked_at)
        assert len(names) == MOST_AT_ONCE
        asked_at |= dict.fromkeys(names, turn)
    assert len(asked_at) == len(NAMES)


def test_in_6_the_oldest_answers_are_cut_and_counted() -> None:
    def answer(at_ms: int, count: int) -> ProducersOf:
        return ProducersOf(at_ms, (ProducerState(1, 0, 0, 0, 0, -1),) * count)

    half = MOST_STATES // 2
    given = {NAMES[0]: answer(1, half), NAMES[1]: answer(3, half), NAMES[2]: answer(2, 7)}
    kept = within_bounds(given)
    assert {name: len(each.states) for name, each in kept.items()} == {
        NAMES[0]: half - 7,
        NAMES[1]: half,
        NAMES[2]: 7,
    }
    assert kept[NAMES[0]].left_out == 7
