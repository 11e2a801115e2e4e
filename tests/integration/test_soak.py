"""`make soak`, for less than a minute and from one seed: several faults, and the whole account."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.types import TopicPartition
from tests.integration.soak.compacting import Kept, wrongly_compacted
from tests.integration.soak.readings import Reading
from tests.integration.soak.run import Report, soak
from tests.integration.soak.transactions import ABORTED, COMMITTED, UNKNOWN
from tests.integration.soak.verdict import (
    Judged,
    never_back,
    read_as_stored,
    sent_once,
    unordered,
    untrue_outcomes,
)
from tests.kit.processes.java_at_work import Acknowledged

SECONDS = 40
STORED = {(0, 0): b"0", (1, 0): b"1", (0, 1): b"2", (1, 1): b"3", (0, 2): b"4"}
NAME = TopicPartition("t", 0)


@pytest.mark.slow
@pytest.mark.foreign
@pytest.mark.timeout(900)
def test_faults_at_random_while_everybody_works(tmp_path: Path) -> None:
    """RE-10, RE-12, RE-13, ZK-3, ZK-5, GC-2, PR-6, PR-7, CO-3, DL-1, DL-2: idempotent and
    transactional producers, groups, and a copy job that reads and writes in transactions."""
    report = soak(tmp_path, seed=4, seconds=SECONDS)
    assert report.is_good, "\n".join(map(str, report.judged))
    assert sum(report.faults.values()) >= 2, report.faults


# ---- each rule finds what it is for ----


class Sent(NamedTuple):
    """What a producer says of itself."""

    topic: str = "t"
    sent_count: int = 5
    failed: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("sent", "stored", "found"),
    [
        (Sent(), STORED, []),
        (Sent(failed=("timed out",)), STORED, ["t: given up: timed out"]),
        (Sent(sent_count=6), STORED, ["t-1: lost [5] (1), too many [] (0)"]),
        (Sent(), {**STORED, (0, 3): b"4"}, ["t-0: lost [] (0), too many [4] (1)"]),
        (Sent(), {**STORED, (0, 1): b"4", (0, 2): b"2"}, ["t-0: 4 in the place of 2"]),
        (Sent(), {**STORED, (0, 3): b"7"}, ["t-0: lost [] (0), too many [7] (1)"]),
    ],
)
def test_what_was_sent_is_there_once(
    sent: Sent, stored: dict[tuple[int, int], bytes], found: list[str]
) -> None:
    judged = sent_once("records", sent, stored)
    assert (judged.total, judged.wrong) == (sent.sent_count, found)


@pytest.mark.parametrize(
    ("outcomes", "there", "found"),
    [
        ([COMMITTED, ABORTED, UNKNOWN, UNKNOWN], [0, 0, 3, 3], []),
        ([COMMITTED], [], ["t: 0 was committed, 0 are there"]),
        ([COMMITTED], [0, 0, 0], ["t: 0 was committed, 3 are there"]),
        ([ABORTED], [0, 0], ["t: 0 was aborted, 2 are there"]),
        ([UNKNOWN], [0], ["t: 0 was unknown, 1 are there"]),
        ([], [0], ["t: 0 was never sent"]),
    ],
)
def test_a_transaction_is_as_its_outcome_says(
    outcomes: list[str], there: list[int], found: list[str]
) -> None:
    assert untrue_outcomes("t", outcomes, there) == found


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ([Reading(1, 0, 0, b"0"), Reading(1, 0, 1, b"2"), Reading(2, 0, 1, b"2")], []),
        ([Reading(1, 0, 1, b"9")], ["0@1: b'9' was read, is b'2'"]),
        ([Reading(1, 0, 7, b"9")], ["0@7: b'9' was read, is None"]),
        (
            [Reading(1, 0, 0, b"0"), Reading(1, 0, 2, b"4")],
            ["reader 0, assignment 1: 0@2 after 0"],
        ),
        (
            [Reading(1, 0, 1, b"2"), Reading(1, 0, 1, b"2")],
            ["reader 0, assignment 1: 0@1 after 1"],
        ),
    ],
)
def test_a_reader_reads_what_is_stored_and_skips_nothing(
    readings: list[Reading], found: list[str]
) -> None:
    judged = read_as_stored("readings", [readings], STORED)
    assert (judged.total, judged.wrong) == (len(readings), found)


def test_committed_offsets_do_not_go_back() -> None:
    assert never_back([{}, {NAME: 3}, {NAME: 3}, {NAME: 4}]).wrong == []
    assert never_back([{NAME: 4}, {NAME: 3}]).wrong == ["t-0: committed 4, later 3"]
    assert never_back([{NAME: 4}, {}]).wrong == ["t-0: committed 4, later None"]


def test_offsets_acknowledged_to_java_are_in_order() -> None:
    first, second = Acknowledged(0, 0, 2), Acknowledged(0, 1, 0)
    assert unordered([first, second]) == [f"{second} is behind 2"]
    assert unordered([first, Acknowledged(1, 1, 0)]) == []


A, B, NEWER_A = Kept(0, 0, b"a", b"1"), Kept(0, 1, b"b", b"2"), Kept(0, 2, b"a", b"3")


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([B, NEWER_A], []),
        ([NEWER_A], [f"b'b': the newest is {B}, and None was read"]),
        ([A, B], [f"b'a': the newest is {NEWER_A}, and {A} was read"]),
        ([NEWER_A, B], [f"{B} is behind 3"]),
        ([A, B, NEWER_A], ["nothing was compacted: 3 of 3 are there"]),
        (
            [B, NEWER_A._replace(value=b"9")],
            [
                f"{NEWER_A._replace(value=b'9')} is there, but was never acknowledged so",
                f"b'a': the newest is {NEWER_A}, and {NEWER_A._replace(value=b'9')} was read",
            ],
        ),
    ],
)
def test_compaction_leaves_the_newest_of_each_key(found: list[Kept], wrong: list[str]) -> None:
    assert wrongly_compacted([A, B, NEWER_A], found) == wrong


def test_an_offset_that_librdkafka_does_not_know_is_no_fault() -> None:
    somewhere = NEWER_A._replace(offset=None)
    assert wrongly_compacted([A, B, somewhere], [B, NEWER_A]) == []
    assert wrongly_compacted([A, B, somewhere], [A, B]) == [
        f"b'a': the newest is {somewhere}, and {A} was read"
    ]


def test_a_rule_without_anything_to_judge_is_no_success() -> None:
    assert Report({}, [Judged("rule", 1, [])]).is_good
    assert not Report({}, [Judged("rule", 0, [])]).is_good
    assert not Report({}, [Judged("rule", 1, ["wrong"])]).is_good
