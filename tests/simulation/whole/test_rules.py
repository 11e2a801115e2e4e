"""Each rule that looks at evidence: it holds for what is true, and finds what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.records.control_records import COMMIT
from barnabas.types import TopicPartition
from simulation.whole.environment import COPIERS, MEMBERS
from simulation.whole.history import (
    FAIL,
    OK,
    OPEN,
    UNKNOWN,
    Commit,
    End,
    Owned,
    Read,
    Writing,
)
from simulation.whole.rules import RULES, Allowed, forgiven
from tests.simulation.whole.hand_made import (
    ATOMIC_0,
    COPIES_0,
    ONE_0,
    SURE_0,
    HandMade,
    true_story,
)

OF_BROKERS = {
    "awake",
    "cause",
    "closed",
    "compacted",
    "equal",
    "expected",
    "finished",
    "healthy",
    "hung",
    "lagging",
    "loads",
    "log",
    "namesake",
    "one leader",
    "over the wire",
    "quiet",
    "refilled",
    "reported",
    "start",
    "watermark",
    "young",
}
"""Rules that need brokers, or a witness. Those of drills are tested in `test_drills.py`, those of
events in `test_causes.py`, and all others in `test_verdict.py`."""

Plant = Callable[[HandMade], object]


def broken_by(plant: Plant) -> list[str]:
    """The rules that a true story breaks after this."""
    made = true_story()
    plant(made)
    return [text.partition(" (")[0] for text in made.judge().broken]


def test_a_true_story_breaks_nothing_and_leaves_no_rule_idle() -> None:
    tally = true_story().judge()
    assert tally.broken == []
    assert {rule for rule, count in tally.judged.items() if not count} == OF_BROKERS
    assert set(PLANTS) == RULES.keys() - OF_BROKERS


# ---- one falsity for each rule ----


def lose(made: HandMade) -> None:
    made.history.acknowledged(add(made, SURE_0, -1), 4)


def lose_from_one(made: HandMade) -> None:
    made.history.acknowledged(add(made, ONE_0, 1), 1)


def add(made: HandMade, name: TopicPartition, acks: int) -> Writing:
    """A record that is sent, and is in no log."""
    writing = Writing("x.1", 0, 1, name, acks)
    made.writes(writing)
    return writing


def invent(made: HandMade) -> None:
    made.stores(SURE_0, b"y.1:0:1|")


def store_what_was_refused(made: HandMade) -> None:
    made.stores(SURE_0, b"s.1:0:5|")


def repeat(made: HandMade) -> None:
    made.stores(SURE_0, b"s.1:0:4|")


def swap(made: HandMade) -> None:
    for number in (2, 1):
        made.sends(SURE_0, "z.1", number)


def commit_what_was_aborted(made: HandMade) -> None:
    made.transacts(4, OK).outcome = FAIL


def commit_what_was_left_open(made: HandMade) -> None:
    made.transacts(4, OK).outcome = OPEN


def tear(made: HandMade) -> None:
    """Half of a transaction in doubt comes to be visible."""
    transaction = made.transacts(4, UNKNOWN)
    half = transaction.writings[0]
    made.stores(ATOMIC_0, half.id + b"|", 8)
    made.ends(ATOMIC_0, 8, COMMIT)


def hide_what_was_committed(made: HandMade) -> None:
    made.transacts(4, FAIL).outcome = OK


def read_backwards(made: HandMade) -> None:
    made.gives(made.stretch("other"), SURE_0, 1, 2, 1)


def skip(made: HandMade) -> None:
    made.gives(made.stretch("other"), SURE_0, 0, 1, 3)


def skip_the_beginning(made: HandMade) -> None:
    stretch = made.stretch("other")
    stretch.goes_to(SURE_0, 1)
    made.gives(stretch, SURE_0, 2, 3)


def read_what_changes(made: HandMade) -> None:
    made.history.reads(made.stretch("other"), SURE_0, Read(3, b"x.1:0:1|"))


def read_what_is_lost(made: HandMade) -> None:
    made.history.reads(made.stretch("other"), SURE_0, Read(4, b"x.1:0:1|"))


def read_what_was_aborted(made: HandMade) -> None:
    made.gives(made.stretch("other", is_committed=True), ATOMIC_0, 3)


def deny(made: HandMade) -> None:
    made.history.refuses_read("other", ValueError("out of range"))


def see_the_end_fall(made: HandMade) -> None:
    made.history.sees_end(End("reader", False, SURE_0, 3))


def process_less(made: HandMade) -> None:
    last = made.stretch("m.2", MEMBERS)
    made.sends(SURE_0, "s.1", 6)
    made.gives(last, SURE_0)
    made.committed[MEMBERS][SURE_0] = 5


def commit_less(made: HandMade) -> None:
    made.history.commits_offset(Commit(MEMBERS, 2, "n.1", SURE_0, 3))


def forget_a_commit(made: HandMade) -> None:
    made.committed[MEMBERS][SURE_0] = 3


def share(made: HandMade) -> None:
    made.history.owns(Owned(MEMBERS, 2, "m.1", SURE_0, has_offsets=True))


def copy_twice(made: HandMade) -> None:
    made.copies(5, made.history.writings[b"s.1:0:4"])


def copy_less(made: HandMade) -> None:
    made.sends(SURE_0, "s.1", 6)
    made.gives(made.stretch("n.2", COPIERS), SURE_0, 4)
    made.committed[COPIERS][SURE_0] = 5


def copy_in_another_order(made: HandMade) -> None:
    for number in (6, 7):
        made.sends(SURE_0, "s.1", number)
    made.gives(made.stretch("n.2", COPIERS), SURE_0, 4, 5)
    made.committed[COPIERS][SURE_0] = 6
    for number in (7, 6):
        made.copies(number, made.history.writings[f"s.1:0:{number}".encode()])


PLANTS: dict[str, list[Plant]] = {
    "kept": [lose],
    "kept by one": [lose_from_one],
    "sent": [invent],
    "refused": [store_what_was_refused],
    "once": [repeat],
    "in order": [swap],
    "aborted": [commit_what_was_aborted, commit_what_was_left_open],
    "whole": [tear, hide_what_was_committed],
    "forward": [read_backwards],
    "gapless": [skip, skip_the_beginning],
    "stays": [read_what_changes, read_what_is_lost, read_what_was_aborted],
    "readable": [deny],
    "end forward": [see_the_end_fall],
    "processed": [process_less],
    "commit forward": [commit_less],
    "commit kept": [forget_a_commit],
    "one owner": [share],
    "exactly once": [copy_twice, copy_less, copy_in_another_order],
}


@pytest.mark.parametrize(
    ("rule", "plant"),
    [(rule, plant) for rule, plants in PLANTS.items() for plant in plants],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_rule_finds_what_breaks_it(rule: str, plant: Plant) -> None:
    """DL-1, DL-2: what is planted is found under its own name."""
    assert rule in broken_by(plant)


# ---- what is allowed ----


def test_a_group_without_offsets_may_be_forgotten_and_begin_again() -> None:
    def begin_again(made: HandMade) -> None:
        made.history.owns(Owned(MEMBERS, 7, "m.1", SURE_0, has_offsets=False))
        made.history.owns(Owned(MEMBERS, 7, "m.2", SURE_0, has_offsets=True))

    assert not broken_by(begin_again)


def test_acks_one_promises_nothing_once_another_leads() -> None:
    """DL-3: unless there was no fault at all."""

    def lose_it(made: HandMade) -> None:
        lose_from_one(made)
        made.leader_epoch = 1

    def lose_it_in_calm(made: HandMade) -> None:
        lose_it(made)
        made.allowed = Allowed(is_calm=True)

    assert broken_by(lose_it) == []
    assert broken_by(lose_it_in_calm) == ["kept by one"]


def test_what_is_lost_and_may_be_is_counted() -> None:
    made = true_story()
    lose(made)
    zero = Writing("w.1", 0, 1, ONE_0, 0)
    made.writes(zero)
    made.history.acknowledged(zero, -1)
    assert forgiven(made.evidence()) == {"acks=1": 0, "acks=0": 1}, "acks=all is never forgiven"
    one = Writing("w.1", 0, 2, ONE_0, 1)
    made.writes(one)
    made.history.acknowledged(one, 7)
    assert forgiven(made.evidence()) == {"acks=1": 1, "acks=0": 1}


def test_what_has_no_outcome_may_be_there_or_not() -> None:
    def doubt(made: HandMade) -> None:
        made.history.in_doubt(add(made, SURE_0, -1), ValueError("no answer"))
        there = made.sends(SURE_0, "x.1", 2)
        made.history.in_doubt(there, ValueError("no answer"))

    assert broken_by(doubt) == []


def test_a_writer_in_doubt_may_repeat_what_it_wrote() -> None:
    def doubt_and_repeat(made: HandMade) -> None:
        made.history.in_doubt(made.history.writings[b"s.1:0:4"], ValueError("no answer"))
        repeat(made)

    assert broken_by(doubt_and_repeat) == []


def test_a_transaction_in_doubt_may_be_there_whole() -> None:
    def commit_it(made: HandMade) -> None:
        made.transacts(4, OK).outcome = UNKNOWN

    assert broken_by(commit_it) == []


def test_a_client_that_starts_over_may_see_less_at_first() -> None:
    """By a leader that does not know yet that it is deposed; from then on it goes forward."""

    def start_over(made: HandMade) -> None:
        made.history.sees_end(End("reader", False, SURE_0, 3, life=2))

    def start_over_and_fall(made: HandMade) -> None:
        start_over(made)
        made.history.sees_end(End("reader", False, SURE_0, 2, life=2))

    assert broken_by(start_over) == []
    assert broken_by(start_over_and_fall) == ["end forward"]


def test_nothing_is_promised_where_it_was_lost() -> None:
    def lose_everything(name: TopicPartition, *plants: Plant) -> Plant:
        def plant(made: HandMade) -> None:
            made.allowed = Allowed(lossy={name: "an unclean election"})
            for each in plants:
                each(made)

        return plant

    assert broken_by(lose_everything(SURE_0, lose, repeat, skip, deny, see_the_end_fall)) == []
    assert broken_by(lose_everything(SURE_0, invent)) == ["sent"], "that holds everywhere"
    assert broken_by(lose_everything(COPIES_0, copy_less)) == []
    groups = TopicPartition(GROUP_TOPIC, 0)
    assert broken_by(lose_everything(groups, forget_a_commit, commit_less, copy_twice)) == []
    transactions = TopicPartition(TRANSACTION_TOPIC, 0)
    assert broken_by(lose_everything(transactions, commit_what_was_aborted)) == []


def test_a_rewound_reader_may_read_again() -> None:
    def rewind(made: HandMade) -> None:
        stretch = made.stretch("other")
        made.gives(stretch, SURE_0, 1, 2)
        stretch.goes_to(SURE_0, 0)
        made.gives(stretch, SURE_0, 0, 1)

    assert broken_by(rewind) == []
