"""Leaders and followers under elections, kills, delays and losses keep one history.

Hypothesis finds the short stories and shows them well; long walks by weighted chance get to places
that it hardly sees, and are counted, so that checks which had nothing to judge please no reader.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.effort import IS_QUICK, examples
from tests.kit.replication.replication_events import Events

WEIGHTS = {
    "elect": 1,
    "depose": 1,
    "take_out": 1,
    "tell": 16,
    "kill": 1,
    "start": 4,
    "expire": 4,
    "judge": 12,
    "hear": 12,
    "produce": 14,
    "delete_records": 3,
    "ask": 16,
    "serve": 14,
    "lose": 2,
    "take": 14,
    "fetch": 12,
    "work": 4,
}

# An event is one draw with its choice, since draws cost more than the rest.
_EVENTS = [(name, pick) for name in sorted(WEIGHTS) for pick in range(30)]
stories = st.lists(st.sampled_from(_EVENTS), max_size=80)


def _run(events: Events, story: list[tuple[str, int]]) -> None:
    for name, pick in story:
        getattr(events, name)(pick)
        events.check()
    events.heal()


@settings(max_examples=examples(300), deadline=None)
@given(story=stories, min_insync=st.integers(1, 3), may_be_unclean=st.booleans())
def test_any_story_ends_with_one_history(
    story: list[tuple[str, int]], min_insync: int, may_be_unclean: bool
) -> None:
    """RE-4, RE-8, RE-10, RE-12"""
    _run(Events(min_insync, may_be_unclean=may_be_unclean), story)


@pytest.mark.thorough
def test_long_walks_end_with_one_history() -> None:
    """RE-4, RE-8, RE-10, RE-12; and RE-11 where unclean elections are allowed."""
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    seen: Counter[str] = Counter()
    walks = 50 if IS_QUICK else 100  # in fewer some things are too rare to be counted
    for seed in range(walks):
        random = Random(seed)
        events = Events(1 + seed % 3, may_be_unclean=seed % 2 == 0)
        stage = events.stage
        for name in random.choices(names, weights, k=400):
            getattr(events, name)(random.randrange(30))
            events.check()
        seen.update(
            elections=stage.elections,
            proposals=stage.proposals,
            cuts=stage.cuts,
            starts=stage.starts,
            visible=len(stage.visible),
            unclean=stage.is_unclean,
        )
        events.heal()
    assert seen["elections"] > 3 * walks
    assert seen["proposals"] > walks
    assert seen["cuts"] > walks // 2
    assert seen["visible"] > 10 * walks
    assert IS_QUICK or min(seen["starts"], seen["unclean"]) > 0
