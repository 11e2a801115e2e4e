"""PR-5, PR-6: an idempotent producer and its leader in any order of events: all once, in order."""

from __future__ import annotations

from collections import deque

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.client.config import ProducerConfig
from barnabas.client.errors import ConnectionLost, DeliveryTimedOut
from barnabas.client.producer.batch import ProducerBatch
from barnabas.errors import (
    BarnabasError,
    InvalidRecord,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
)
from barnabas.records.batch import iterate_batches, verify_crc
from barnabas.records.record import iterate_records
from tests.kit.accumulators import T0, identified, record
from tests.kit.effort import examples

_LIMIT_MS = ProducerConfig().delivery_timeout_ms


class Leader:
    """The broker's side of idempotence, written down as simply as it can be (PR-6)."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._next: dict[int, int] = {}  # producer id -> the sequence that must come
        self._seen: dict[int, list[tuple[int, int]]] = {}  # ... -> (sequence, offset), last five

    def append(self, data: bytes) -> int | BarnabasError:
        """The base offset, or the error."""
        ((position, header),) = iterate_batches(data)
        assert verify_crc(data, position, header)
        for sequence, offset in self._seen.get(header.producer_id, []):
            if sequence == header.base_sequence:
                return offset
        # Of a producer that it does not know it takes any first sequence, as Kafka does.
        if header.base_sequence != self._next.get(header.producer_id, header.base_sequence):
            return OutOfOrderSequenceNumber()
        offset = len(self.log)
        self.log += [(each.value or b"").decode() for each in iterate_records(data)]
        self._next[header.producer_id] = header.base_sequence + header.record_count
        seen = self._seen.setdefault(header.producer_id, [])
        seen.append((header.base_sequence, offset))
        del seen[:-5]
        return offset

    def restart(self) -> None:
        """A snapshot has no more than the last batch of a producer."""
        for seen in self._seen.values():
            del seen[:-1]


class Course:
    """A producer and its leader, and what happens between them."""

    def __init__(self) -> None:
        self.accumulator = identified()
        self.leader = Leader()
        self.sent: list[str] = []
        self.outcomes: dict[str, tuple[ProducerBatch, int]] = {}
        self._connection: deque[tuple[ProducerBatch, bytes]] = deque()
        self._now_ms = 0
        self._producer_ids = 0

    def step(self, kind: str) -> None:
        if kind == "append":
            text = f"r{len(self.sent)}"
            self.sent.append(text)
            self._now_ms += 1
            self.outcomes[text] = self.accumulator.append(T0, record(text), self._now_ms, 0)
        elif kind == "take":
            self._identify()
            for queue in self.accumulator.ready(self._now_ms).queues:
                batch = self.accumulator.take(queue)
                self._connection.append((batch, batch.encode()))
        elif kind == "cut":
            self._drop()
        elif kind == "mute":
            self._silence()
        elif kind == "restart":
            self.leader.restart()
        elif kind == "expire":  # the oldest of those that wait
            for oldest in self.accumulator.unfinished_batches[:1]:
                self.accumulator.expire(oldest.created_ms + _LIMIT_MS)
        elif self._connection:
            self._answer(kind, *self._connection.popleft())

    def _identify(self) -> None:
        """As the sender does, once nothing is in flight."""
        if self.accumulator.needs_producer_id and not self.accumulator.in_flight_count:
            self._producer_ids += 1
            self.accumulator.identify(9 + self._producer_ids, 0)

    def _drop(self) -> None:
        """The connection is gone, and with it every request that the leader has not read."""
        while self._connection:
            self._fail(self._connection.popleft()[0], ConnectionLost("cut"))

    def _silence(self) -> None:
        """The leader has it all, and its answers are lost."""
        sent, self._connection = self._connection, deque()
        for _, data in sent:
            self.leader.append(data)
        for batch, _ in sent:
            self._fail(batch, ConnectionLost("mute"))

    def _answer(self, kind: str, batch: ProducerBatch, data: bytes) -> None:
        if kind == "not-leader":
            self._fail(batch, NotLeaderOrFollower())
        elif kind == "refuse" and batch.attempts == 1:
            self._fail(batch, InvalidRecord("refused"))
        else:
            answer = self.leader.append(data)
            if kind == "lose":
                self._fail(batch, ConnectionLost("lost"))
                self._drop()
            elif not isinstance(answer, int):
                self._fail(batch, answer)
            elif kind == "resign":  # a client that waits for acks=all gets this
                self._fail(batch, NotLeaderOrFollower())
            else:
                self.accumulator.acknowledge(batch, answer, -1)

    def _fail(self, batch: ProducerBatch, error: BarnabasError) -> None:
        self.accumulator.fail_attempt(batch, error, 0)


Step = st.sampled_from(
    [
        *("append", "append", "take", "take", "answer"),
        *("not-leader", "resign", "lose", "cut", "refuse", "restart", "expire", "mute"),
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(Step, min_size=30, max_size=60))  # shorter ones are all it draws else
@example(
    ["append", "take", "answer", "append", "take", "append", "take", "mute", "expire", "take"]
)  # of two that are stored and unanswered the first one expires
def test_every_record_is_stored_once_and_in_order_whatever_fails(steps: list[str]) -> None:
    """PR-5, PR-6, PR-8: lost answers, lost requests, leaders that move, resign behind an append, or
    come back with a snapshot, and refusals, in any mixture."""
    course = Course()
    for kind in steps:
        course.step(kind)
    for _ in range(4 * len(steps) + 4):
        course.step("take")
        course.step("answer")

    assert course.accumulator.unfinished_batches == []
    assert course.accumulator.used_bytes == 0
    # What has expired may be stored or not, but for once; all else is stored if it succeeded.
    expired = {
        text
        for text in course.sent
        if isinstance(course.outcomes[text][0].error, DeliveryTimedOut)
        or (course.outcomes[text][0].error is not None and course.outcomes[text][0].in_doubt)
    }
    acknowledged = [text for text in course.sent if course.outcomes[text][0].error is None]
    assert [text for text in course.leader.log if text not in expired] == acknowledged
    assert course.leader.log == [text for text in course.sent if text in set(course.leader.log)]
    for offset, text in enumerate(course.leader.log):
        batch, index = course.outcomes[text]
        if text not in expired:
            assert batch.base_offset in (offset - index, -1)
