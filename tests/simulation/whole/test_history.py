"""What is noted of a run, and how it is printed."""

from __future__ import annotations

from barnabas.types import TopicPartition
from simulation.story import words
from simulation.whole.history import (
    OK,
    UNKNOWN,
    History,
    Read,
    Stretch,
    Writing,
    id_of,
)

NAME = TopicPartition("sure", 0)


class Ticking:
    """Each look at it is a millisecond later."""

    def __init__(self) -> None:
        self._now_ms = 0

    def wall_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms

    monotonic_ms = wall_ms


def test_a_value_names_its_record_and_has_the_wished_size() -> None:
    history = History(Ticking())
    writing = Writing("sure-0.1", 3, 17, NAME, -1)
    value = history.writes(writing, 40)
    assert len(value) == 40
    assert id_of(value) == writing.id == b"sure-0.1:3:17"
    assert id_of(history.writes(writing, 0) + b"sure-1.1:0:5") == writing.id
    assert id_of(None) == b""


def test_the_story_says_who_did_what_and_what_became_of_it() -> None:
    history = History(Ticking())
    writing = Writing("sure-0.1", 0, 1, NAME, -1)
    history.writes(writing, 0)
    assert writing.outcome == UNKNOWN, "until somebody says something else"
    history.acknowledged(writing, 5)
    history.ends_with(history.begins("t.1", 2), OK)
    assert [words(line) for line in history.lines] == [
        "   0.001 s  sure-0.1 writes sure-0.1:0:1 to sure-0",
        "   0.002 s  sure-0.1:0:1 is acknowledged at 5",
        "   0.003 s  t.1 begins transaction 2",
        "   0.004 s  transaction t.1:2 is committed ",
    ]


def test_the_first_reason_of_a_doubt_is_kept() -> None:
    history = History(Ticking())
    for reason in ("no answer", "another one"):
        history.in_doubt(Writing("sure-0.1", 0, 1, NAME, -1), ValueError(reason))
    assert history.doubtful == {"sure-0.1": "no answer"}


def test_positions_are_behind_what_was_read_since_it_was_sent_somewhere() -> None:
    history = History(Ticking())
    stretch = Stretch("reader", "", is_committed=False)
    assert stretch.positions() == {}
    for offset in (0, 1, 4):
        history.reads(stretch, NAME, Read(offset, b""))
    assert stretch.positions() == {NAME: 5}
    stretch.goes_to(NAME, 1)
    assert stretch.positions() == {}
    history.reads(stretch, NAME, Read(1, b""))
    assert stretch.positions() == {NAME: 2}
    assert [run.start for run in stretch.runs[NAME]] == [-1, 1]
