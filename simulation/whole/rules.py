"""The rules for a run, and how often each had something to judge.

A rule that judged nothing proves nothing, so every judgement counts. Each rule takes the evidence
as it is: what clients recorded, and what is in the logs; no rule asks a broker.

The following is allowed and not judged: what acks=1 and acks=0 lose when another broker takes over;
the order and repetition of such records; the order of an idempotent writer that was in doubt and
started over, and duplicates of a record whose outcome it does not know. Nothing is promised for
partitions that are `lossy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.types import TopicPartition
from simulation.whole.history import FAIL, OK, OPEN, History, Transaction, Writing, id_of
from simulation.whole.keyed_rules import is_keyed
from simulation.whole.plan import HUNG, PAUSED_FOLLOWER, REPLACED
from simulation.whole.truth import Truth

RULES: Mapping[str, str] = MappingProxyType(
    {
        "kept": "what acks=all was acknowledged for is there, where it was said to be",
        "kept by one": "what acks=1 was acknowledged for is there while its leader stays",
        "sent": "nothing is there that no client has sent to this partition",
        "refused": "what was refused for certain is not there",
        "once": "an idempotent writer's record is there once",
        "in order": "an idempotent writer's records are in the order in which it wrote them",
        "aborted": "no reader of committed records sees what was not committed",
        "whole": "a committed transaction is there whole, one in doubt whole or not at all",
        "forward": "a reader's offsets only grow",
        "gapless": "a reader is given everything between its first record and its last",
        "stays": "what was read at an offset is there at the end",
        "readable": "no position that was reached is denied",
        "end forward": "the end of a partition that a client sees does not go back",
        "processed": "a group has processed everything below what it has committed",
        "commit forward": "what a group has committed does not go back",
        "commit kept": "what a group's commit was acknowledged for is not forgotten",
        "one owner": "a partition has one owner in a generation of a group",
        "exactly once": "what the copiers' group has committed is copied, each once, in order",
        "log": "a log has no gaps, its checksums hold and its epochs only grow",
        "one leader": "a leader epoch has one leader, and in the end a partition has one",
        "watermark": "a leader's high watermark does not fall while it runs",
        "equal": "in the end all replicas have the same bytes",
        "loads": "every replica of an internal topic can be loaded",
        "closed": "no transaction is left open",
        "over the wire": "consumers are given just what stands in the logs",
        "finished": "every client comes to its end",
        "expected": "no client meets the unexpected",
        "quiet": "after the faults everything comes back",
        "compacted": "of a compacted topic the last value of each key stays, where it was",
        "namesake": "a topic that is made again has its own records, and none of the one before",
        "young": "retention takes nothing before its time, whatever a calendar shows",
        "start": "no log begins above its high watermark, nor a leader's further in front",
        "lagging": "who does not keep up leaves the ISR in time",
        "hung": "who waits for a disk that hangs is replaced, and ends",
        "awake": "a follower that stands still delays no heartbeat, and leaves the ISR",
        "refilled": "a replica on an emptied disk gets everything from its leader",
        "reported": "whoever decides an ISR change, an election or a generation reports it",
        "cause": "the cause of an event is what happened in this run",
        "healthy": "a broker gives up a log directory only if its disk was spoiled",
    }
)


RULE_OF_DRILL: Mapping[str, str] = MappingProxyType(
    {HUNG: "hung", PAUSED_FOLLOWER: "awake", REPLACED: "refilled"}
)
"""Rules that judge nothing in a run without this drill."""


class Allowed(NamedTuple):
    """The losses that the faults of a run may have caused."""

    is_calm: bool = False  # no faults: acks=1 loses nothing either
    lossy: Mapping[TopicPartition, str] = MappingProxyType({})
    """The partitions for which nothing is promised, with the reason: an unclean election, or a
    power cut of all replicas at once."""

    def is_lossy(self, *topics: str) -> bool:
        return any(name.topic in topics for name in self.lossy)


class Evidence(NamedTuple):
    """The evidence that the rules below use."""

    history: History
    truths: Mapping[TopicPartition, Truth]
    leader_epochs: Mapping[TopicPartition, int]  # in the end
    committed: Mapping[str, Mapping[TopicPartition, int]]  # by group, in the end
    allowed: Allowed


class Tally:
    """How often each rule had something to judge, and what was wrong."""

    def __init__(self) -> None:
        self.judged = dict.fromkeys(RULES, 0)
        self.broken: list[str] = []

    def judge(self, rule: str, holds: bool, text: str, *values: object, times: int = 1) -> None:
        """Count a judgement.

        `text` is a format string for the values; `times`: how many things are judged at once.
        """
        self.judged[rule] += times
        if not holds:
            self.broken.append(f"{rule} ({RULES[rule]}): {text.format(*values)}")


def judge_writings(tally: Tally, evidence: Evidence) -> None:
    """Judge every record: whether it is there, and whether it should be."""
    for writing in evidence.history.writings.values():
        truth = evidence.truths.get(writing.name)
        if truth is None:
            continue
        offsets = [truth.records[place].offset for place in truth.places.get(writing.id, ())]
        is_there = bool(offsets) and (writing.offset < 0 or writing.offset in offsets)
        lost = "{} was acknowledged at {} of {}, and is at {}"
        values = (writing, writing.offset, writing.name, offsets)
        if truth.start > 0 and writing.offset < truth.start and not offsets:
            continue  # deleted, by age or on demand: see `removals`
        if writing.outcome == FAIL:
            tally.judge("refused", not offsets, "{} is at {}", writing, offsets)
        elif writing.outcome == OK and writing.name not in evidence.allowed.lossy:
            stays = evidence.allowed.is_calm or evidence.leader_epochs[writing.name] <= 0
            if writing.acks == -1:
                tally.judge("kept", is_there, lost, *values)
            elif writing.acks == 1 and stays:
                tally.judge("kept by one", is_there, lost, *values)
    for name, truth in evidence.truths.items():
        for id_ in truth.places:
            sent = evidence.history.writings.get(id_)
            holds = sent is not None and sent.name == name
            tally.judge("sent", holds, "{} holds {}", name, id_)


def forgiven(evidence: Evidence) -> dict[str, int]:
    """Count the missing records whose loss was allowed, by the acks with which they were
    written."""
    lost = {"acks=1": 0, "acks=0": 0}
    for writing in evidence.history.writings.values():
        truth = evidence.truths.get(writing.name)
        if truth is None or writing.acks < 0 or writing.outcome != OK:
            continue
        if writing.id not in truth.places:
            lost[f"acks={writing.acks}"] += 1
    return lost


def judge_sequences(tally: Tally, evidence: Evidence) -> None:
    """Judge idempotent writers: each record must be there once, and in order."""
    history = evidence.history
    for name, truth in evidence.truths.items():
        last: dict[str, tuple[int, int]] = {}
        for read in truth.records:
            for writing in _named(history, read.value):
                if writing.acks != -1 or name in evidence.allowed.lossy:
                    continue
                if writing.outcome != OK and writing.writer in history.doubtful:
                    continue
                at = (writing.transaction, writing.number)
                before = last.get(writing.writer, (-1, -1))
                twice = len(truth.places[writing.id])
                tally.judge("once", twice == 1, "{} is {} times in {}", writing, twice, name)
                if writing.writer in history.doubtful:
                    continue
                tally.judge(
                    "in order", at >= before, "{}: {} comes after {}", name, writing, before
                )
                last[writing.writer] = at


def judge_transactions(tally: Tally, evidence: Evidence) -> None:
    """Judge every transaction: it must be visible as a whole, or not at all."""
    if evidence.allowed.is_lossy(TRANSACTION_TOPIC):
        return
    for transaction in evidence.history.transactions:
        names = [writing.name for writing in transaction.writings]
        if any(name in evidence.allowed.lossy for name in names) or is_keyed(transaction):
            continue
        seen = _seen(transaction, evidence.truths)
        whole = sum(writing.outcome != FAIL for writing in transaction.writings)
        if transaction.outcome in (FAIL, OPEN):
            tally.judge("aborted", not seen, "{} was not committed, seen is {}", transaction, seen)
        else:
            may_be = (whole,) if transaction.outcome == OK else (0, whole)
            tally.judge(
                "whole",
                len(seen) in may_be,
                "{} is {}, of {} records are seen {}",
                transaction,
                "committed" if transaction.outcome == OK else "in doubt",
                whole,
                seen,
            )


def judge_reading(tally: Tally, evidence: Evidence) -> None:
    """Judge every reader: it must read forward, without gaps, and only what is there in the end."""
    history, lossy = evidence.history, evidence.allowed.lossy
    for stretch in history.stretches:
        for name, runs in stretch.runs.items():
            truth = evidence.truths.get(name)
            if truth is None or name in lossy:
                continue
            for run in runs:
                if not run.reads:
                    continue
                offsets = [read.offset for read in run.reads]
                tally.judge(
                    "forward",
                    all(one < other for one, other in pairwise(offsets)),
                    "{} reads {} of {}",
                    stretch.reader,
                    offsets,
                    name,
                )
                first = offsets[0] if run.start < 0 else run.start
                due = truth.visible(first, offsets[-1] + 1, is_committed=stretch.is_committed)
                read = set(offsets)
                missed = [each.offset for each in due if each.offset not in read]
                tally.judge(
                    "gapless", not missed, "{} misses {} of {}", stretch.reader, missed, name
                )
                there = dict(due)
                changed = [each for each in run.reads if there.get(each.offset) != each.value]
                tally.judge(
                    "stays",
                    not changed,
                    "{} has read {} of {}, where there is {}",
                    stretch.reader,
                    changed[:1],
                    name,
                    [there.get(each.offset) for each in changed[:1]],
                )
    refused = [] if lossy else history.refused_reads
    tally.judge("readable", not refused, "{}", refused)


def judge_ends(tally: Tally, evidence: Evidence) -> None:
    """Judge the ends of partitions that each client received.

    They are compared within one life: a client that knows of no leader yet may ask a deposed leader
    that does not know of its deposition, and receives the end as it was then.
    """
    before: dict[tuple[str, int, bool, TopicPartition], int] = {}
    for end in evidence.history.ends:
        if end.name in evidence.allowed.lossy:
            continue
        key = (end.client, end.life, end.is_committed, end.name)
        if key in before:
            tally.judge(
                "end forward",
                end.offset >= before[key],
                "{} saw {} end at {}, then at {}",
                end.client,
                end.name,
                before[key],
                end.offset,
            )
        before[key] = end.offset


def judge_group(tally: Tally, evidence: Evidence, group: str, topics: Iterable[str]) -> None:
    """Judge a group: it has processed what it has committed, and none of that is forgotten."""
    history = evidence.history
    if evidence.allowed.is_lossy(GROUP_TOPIC, *topics):
        return
    committed = evidence.committed.get(group, {})
    processed: dict[TopicPartition, set[int]] = {}
    for stretch in history.stretches:
        for name, runs in stretch.runs.items() if stretch.group == group else ():
            for run in runs:
                processed.setdefault(name, set()).update(read.offset for read in run.reads)
    for name, offset in committed.items():
        due = evidence.truths[name].visible(0, offset, is_committed=False)
        given = processed.get(name, set())
        missed = [read.offset for read in due if read.offset not in given]
        tally.judge(
            "processed",
            not missed,
            "{} has committed {} of {}, and no member was given {}",
            group,
            offset,
            name,
            missed,
            times=len(due),
        )
    _judge_commits(tally, evidence, group)
    owners: dict[tuple[int, TopicPartition], str] = {}
    for owned in history.owned:
        # A forgotten group may later get the same generation again, this time with offsets.
        if owned.group == group and owned.generation >= 0 and owned.has_offsets:
            owner = owners.setdefault((owned.generation, owned.name), owned.member)
            tally.judge("one owner", owner == owned.member, "{} is {}'s, too", owned, owner)


def _judge_commits(tally: Tally, evidence: Evidence, group: str) -> None:
    """Judge acknowledged commits: no offset of a generation is beyond an offset of the next
    generation.
    """
    own = [commit for commit in evidence.history.commits if commit.group == group]
    furthest: dict[TopicPartition, int] = {}
    for commit in sorted(own, key=lambda commit: commit.generation):
        before = furthest.get(commit.name, 0)
        tally.judge("commit forward", commit.offset >= before, "{} after {}", commit, before)
        furthest[commit.name] = max(before, commit.offset)
    for name, offset in furthest.items():
        now = evidence.committed.get(group, {}).get(name, 0)
        tally.judge(
            "commit kept", now >= offset, "{} has {} of {} after {}", group, now, name, offset
        )


class Copying(NamedTuple):
    group: str
    source: str
    target: str


def judge_copies(tally: Tally, evidence: Evidence, copying: Copying) -> None:
    """Judge the copies that readers of committed records see: each source record once, in order."""
    group, source, target = copying
    if evidence.allowed.is_lossy(GROUP_TOPIC, TRANSACTION_TOPIC, source, target):
        return
    history = evidence.history
    for name, offset in evidence.committed.get(group, {}).items():
        truth = evidence.truths[TopicPartition(target, name.partition)]
        read = evidence.truths[name].visible(0, offset, is_committed=True)
        wanted = [writing.id for each in read for writing in _named(history, each.value)]
        copies = truth.visible(0, truth.end, is_committed=True)
        found = [writing.source for each in copies for writing in _named(history, each.value)]
        for id_, times in (Counter(wanted) - Counter(found)).items():
            tally.judge("exactly once", False, "{} of {} is not copied ({})", id_, name, times)
        for id_, times in (Counter(found) - Counter(wanted)).items():
            tally.judge(
                "exactly once", False, "{} of {} is copied {} times too often", id_, name, times
            )
        for at, (one, other) in enumerate(zip(wanted, found, strict=False)):
            tally.judge(
                "exactly once", one == other, "copy {} of {} is {}, not {}", at, name, other, one
            )
            if one != other:
                break


def _named(history: History, value: bytes) -> Iterator[Writing]:
    """Yield the record with this value, or nothing if no client wrote it (which a separate rule
    judges)."""
    writing = history.writings.get(id_of(value))
    if writing is not None:
        yield writing


def _seen(transaction: Transaction, truths: Mapping[TopicPartition, Truth]) -> list[str]:
    """Return those of its records that readers of committed records see."""
    seen = []
    for writing in transaction.writings:
        truth = truths.get(writing.name)
        places = () if truth is None else truth.places.get(writing.id, ())
        if truth and any(truth.is_committed(truth.records[place].offset) for place in places):
            seen.append(str(writing))
    return seen
