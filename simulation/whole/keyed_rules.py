"""Judges the topics that do not keep everything (faults.md, rules 13, 14 and 17)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client import Consumer
from barnabas.client.errors import Unreachable
from barnabas.errors import BarnabasError
from barnabas.records.batch import iterate_batches
from barnabas.records.record import records_of
from barnabas.types import TopicPartition
from simulation.whole.environment import FLEETING, KEYED
from simulation.whole.history import FAIL, OK, History, Transaction, Writing, id_of

if TYPE_CHECKING:
    from simulation.whole.environment import Environment
    from simulation.whole.rules import Tally
    from simulation.whole.truth import Truth

_LOOK_EVERY_S = 0.1


class Row(NamedTuple):
    """A record of a compacted topic, as read; the value of a tombstone is None."""

    offset: int
    key: bytes
    value: bytes | None


async def read_table(
    around: Environment, ends: Mapping[TopicPartition, int], *, is_committed: bool
) -> dict[TopicPartition, list[Row]]:
    """Return what a new consumer reads from these partitions, up to the ends."""
    given: dict[TopicPartition, list[Row]] = {name: [] for name in ends}
    deadline_ms = around.clock.monotonic_ms() + around.options.finish_ms
    async with Consumer(
        around.servers,
        seams=around.seams("verdict"),
        isolation_level="read_committed" if is_committed else "read_uncommitted",
        auto_offset_reset="earliest",
        **around.common(),
    ) as consumer:
        consumer.assign(list(ends))
        while around.clock.monotonic_ms() < deadline_ms:
            try:
                for each in await consumer.poll(around.options.poll_ms):
                    row = Row(each.offset, each.key or b"", each.value)
                    given[TopicPartition(each.topic, each.partition)].append(row)
                positions = {name: await consumer.position(name) for name in ends}
            except (Unreachable, BarnabasError) as error:
                around.history.tell("the verdict cannot read: {}", error)
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            if all(positions[name] >= end for name, end in ends.items()):
                break
    return given


def judge_table(
    tally: Tally,
    history: History,
    name: TopicPartition,
    rows: Sequence[Row],
    *,
    is_committed: bool,
) -> None:
    """Judge a compacted partition by what a consumer reads from it (rule 13)."""
    transactions = {writing.id: each for each in history.transactions for writing in each.writings}
    written = [each for each in history.writings.values() if each.name == name]
    found: dict[bytes, Row] = {}
    before = -1
    for row in rows:
        tally.judge("compacted", row.offset > before, "{}: {} comes after {}", name, row, before)
        before = row.offset
        found[row.key] = row
        if row.value is not None:
            _judge_row(tally, history, transactions, row, is_committed=is_committed)
    for key in sorted({each.key or b"" for each in written}):
        own = [each for each in written if each.key == key]
        _judge_key(tally, own, transactions, found.get(key), is_committed=is_committed)


def _judge_row(
    tally: Tally,
    history: History,
    transactions: Mapping[bytes, Transaction],
    row: Row,
    *,
    is_committed: bool,
) -> None:
    writing = history.writings.get(id_of(row.value))
    if writing is None or writing.key != row.key:
        tally.judge("compacted", False, "no client has written {}", row)
        return
    stays = writing.offset in (-1, row.offset)
    tally.judge("compacted", stays, "{} of {} is at {}", writing, writing.offset, row.offset)
    transaction = transactions.get(writing.id)
    if is_committed and transaction is not None:
        holds = transaction.outcome != FAIL
        tally.judge("compacted", holds, "{} was aborted, and is read at {}", writing, row.offset)


def _judge_key(
    tally: Tally,
    own: Iterable[Writing],
    transactions: Mapping[bytes, Transaction],
    found: Row | None,
    *,
    is_committed: bool,
) -> None:
    """Judge whether the last value of a key is there; a doubtful record may follow it."""
    certain: list[Writing] = []
    doubtful: list[Writing] = []
    for each in own:
        transaction = transactions.get(each.id)
        ended = OK if transaction is None else transaction.outcome
        if each.outcome == ended == OK and each.offset >= 0:
            certain.append(each)
        elif each.outcome != FAIL and not (is_committed and ended == FAIL):
            doubtful.append(each)  # or aborted, and not compacted yet
    if not certain:
        return
    last = max(certain, key=lambda each: each.offset)
    may_be_gone = last.is_tombstone or any(each.is_tombstone for each in doubtful)
    if found is None:
        tally.judge("compacted", may_be_gone, "{} at {} is gone", last, last.offset)
        return
    holds = found.offset >= last.offset
    if found.offset == last.offset:
        value = None if found.value is None else id_of(found.value)
        holds = value == (None if last.is_tombstone else last.id)
    elif found.offset > last.offset:
        names = [each.id for each in doubtful if not each.is_tombstone]
        holds = id_of(found.value) in names or (
            found.value is None and any(each.is_tombstone for each in doubtful)
        )
    wrong = "the last of key {} was {} at {}, found is {}"
    tally.judge("compacted", holds, wrong, last.key, last, last.offset, found)


def judge_namesake(tally: Tally, history: History, truth: Truth) -> None:
    """Judge a topic that was deleted and recreated: rule 17, and whether the records of its last
    era are kept."""
    last = history.eras[-1]
    writers = {f"{each.writer.rpartition('.')[0]}.{last.number}" for each in _fleeting(history)}
    for writing in _fleeting(history):
        if writing.outcome != OK or writing.attempts != 1:
            continue  # a record sent twice may still have been under way when the era began
        is_there = writing.id in truth.places
        if writing.writer in writers:
            holds = is_there or not last.is_certain
            tally.judge("namesake", holds, "{} at {} is lost", writing, writing.offset)
        else:
            tally.judge("namesake", not is_there, "{} is of another topic's past", writing)


def _fleeting(history: History) -> list[Writing]:
    return [each for each in history.writings.values() if each.name.topic == FLEETING]


def same_records(data: bytes, other: bytes) -> bool:
    """Return whether two replicas of a compacted partition have the same record wherever both have
    one. Either may lack records, because each broker compacts its logs independently."""
    one, two = _by_offset(data), _by_offset(other)
    return all(two[offset] == record for offset, record in one.items() if offset in two)


def _by_offset(data: bytes) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {
        record.offset: (record.key, record.value)
        for position, header in iterate_batches(data)
        for record in records_of(data, position, header)
    }


def is_keyed(transaction: Transaction) -> bool:
    """Return whether a transaction wrote to the compacted topic, which has a separate rule."""
    return any(each.name.topic == KEYED for each in transaction.writings)
