"""The log line of a rebalance: complete for a small one, bounded for a large one."""

from __future__ import annotations

from barnabas.coordinator.decision import Now
from barnabas.coordinator.member import Member
from barnabas.coordinator.movement import UNKNOWN, Movement
from barnabas.coordinator.rebalance_log import RebalanceLog, cause
from barnabas.types import TopicPartition

HARMLESS = Movement(0, 0, 0, 4, (), True)


def member(name: str) -> Member:
    made = Member("g", name, None, ())
    made.client_host = "/10.0.0.7"
    return made


def line_of(moved: Movement, members: int = 2, *causes: str) -> str:
    log = RebalanceLog(1000, 4, {})
    for what in causes or ("left",):
        log.add(cause(member("a"), what))
    return log.end(Now(4012, 1_700_000_000_000), "g", 5, members, moved).story


def test_the_line() -> None:
    moves = (
        (TopicPartition("t", 1), "a", "b"),
        (TopicPartition("t", 2), "a", "b"),
        (TopicPartition("t", 3), "a", "c"),
    )
    assert line_of(Movement(3, 0, 0, 4, moves, False)) == (
        "group g: generation 4 -> 5 in 3012 ms, 2 members: a (/10.0.0.7) left; "
        "moved 3 of 4 partitions: t-1, t-2 from a to b; t-3 from a to c"
    )
    assert line_of(HARMLESS).endswith("; harmless: nothing moved")
    assert ", empty: " in line_of(HARMLESS, 0) and ", 1 member: " in line_of(HARMLESS, 1)
    assert line_of(Movement(0, 2, 1, 4, (), False)).endswith(
        "; 2 partitions unassigned, 1 partition newly assigned"
    )
    assert line_of(Movement(UNKNOWN, 0, 0, 0, (), False)).endswith("; assignments changed")
    assert line_of(Movement(UNKNOWN, 0, 0, 0, (), True)).endswith(
        "; harmless: no member lost anything"
    )


def test_the_event() -> None:
    log = RebalanceLog(1000, 4, {})
    event = log.end(Now(4012, 1_700_000_000_000), "g", 5, 2, Movement(3, 0, 0, 4, (), False))
    assert (event.ended_at_ms, event.duration_ms, event.generation_id) == (
        1_700_000_000_000,
        3012,
        5,
    )
    assert (event.member_count, event.moved_partitions, event.is_harmless) == (2, 3, False)


def test_a_group_whose_members_all_left_is_not_harmed() -> None:
    """IN-1: a consumer that is closed gives up its own partitions."""
    left = cause(member("a"), "left")._replace(is_own_choice=True)
    given_up = Movement(0, 2, 0, 0, (), False)
    for members, causes, is_harmless in (
        (0, [left], True),
        (0, [left, cause(member("b"), "session timed out")], False),
        (1, [left], False),
        (0, [left] * 10_000, True),
    ):
        log = RebalanceLog(1000, 4, {})
        for why in causes:
            log.add(why)
        event = log.end(Now(4012, 1_700_000_000_000), "g", 5, members, given_up)
        assert event.is_harmless is is_harmless, (members, len(causes))
        assert ("; harmless: 2 partitions unassigned" in event.story) is is_harmless


def test_a_large_rebalance_is_logged_in_few_words() -> None:
    moves = tuple((TopicPartition("t", n), "a", f"b{n}") for n in range(500))
    line = line_of(Movement(500, 0, 0, 500, moves, False), 2, *["joined"] * 10_000)
    assert "and 9997 more; moved 500 of 500 partitions" in line
    assert line.endswith("; and 492 more") and len(line) < 600


def test_a_client_cannot_write_lines_into_the_log() -> None:
    """Names and KIP-800's reason come from the network."""
    log = RebalanceLog(0, 0, {})
    log.add(cause(member("a\nb"), "left", "bye\nERROR: all is lost" + "!" * 1000))
    moves = ((TopicPartition("t" * 30_000, 0), "a", "b" * 30_000),)
    line = log.end(Now(0, 0), "g\n" * 9, 1, 1, Movement(1, 0, 0, 1, moves, False)).story
    assert "\n" not in line and len(line) <= 2_000
    assert "a b (/10.0.0.7) left (bye ERROR: all is lost!!!" in line
