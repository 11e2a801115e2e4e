"""Whatever brokers and networks do, each record has one outcome, and that is true (PR-5, PR-6)."""

from __future__ import annotations

from collections import deque
from math import lcm
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.config import ProducerConfig
from barnabas.client.errors import ConnectionLost
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord, ProducerBatch
from barnabas.errors import (
    BarnabasError,
    KafkaError,
    MessageTooLarge,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
)
from barnabas.records.batch import read_header
from barnabas.records.record import iterate_records
from barnabas.storage.producers import Producers
from barnabas.storage.snapshot import decode_snapshot, encode_snapshot
from barnabas.types import TopicPartition
from tests.kit.effort import examples

NAME = TopicPartition("t", 0)
SIZE = 100
DELIVERY_MS = 10_000
TOO_LARGE = b"too large"

Moment = tuple[str, int]
_KINDS: tuple[list[Moment], ...] = (
    [("append", count) for count in range(1, 9)],
    [(what, times) for what in ("send", "serve", "hear") for times in range(1, 6)],
    [(what, 1) for what in ("append a large one", "refuse", "doubt", "cut", "restart", "identify")],
    [("wait", ms) for ms in (100, DELIVERY_MS // 2, DELIVERY_MS)],
)
# Each kind is as frequent as any other. A moment is one draw, since draws cost more than the rest.
MOMENTS = st.sampled_from(
    [each for kind in _KINDS for each in kind * (lcm(*map(len, _KINDS)) // len(kind))]
)


class Request(NamedTuple):
    batch: ProducerBatch
    data: bytes


class World:
    """A producer's accumulator, the connection to the leader of one partition, and that leader."""

    def __init__(self, in_flight: int) -> None:
        self.accumulator = Accumulator(
            ProducerConfig(
                batch_size=61 + 5 * SIZE,
                linger_ms=0,
                delivery_timeout_ms=DELIVERY_MS,
                max_in_flight_requests_per_connection=in_flight,
            )
        )
        self.now_ms = 0
        self.identities = 0
        self.appended: list[bytes] = []
        self.outcomes: dict[bytes, ProducerBatch] = {}
        self._sent: deque[Request] = deque()
        self._served: deque[tuple[ProducerBatch, BarnabasError | None]] = deque()
        self._refusal: KafkaError | None = None
        self.log: list[bytes] = []
        self._producers = Producers()

    def happen(self, what: str, how: int) -> None:
        if what == "append":
            for _ in range(how):
                self._append(b"%d" % len(self.appended))
        elif what == "append a large one":
            self._append(b"%d %s" % (len(self.appended), TOO_LARGE))
        elif what == "refuse":
            self._refusal = NotEnoughReplicas("for now")
        elif what == "doubt":
            self._refusal = NotEnoughReplicasAfterAppend("for now")
        elif what == "cut":
            self._cut()
        elif what == "restart":
            # From a snapshot a leader knows the last batch of each producer, and no other.
            self._cut()
            self._producers = decode_snapshot(encode_snapshot(self._producers))
        elif what == "identify":
            self._identify()
        elif what == "wait":
            self.now_ms += how
            self.accumulator.expire(self.now_ms)
        else:
            step = {"send": self._send, "serve": self._serve, "hear": self._hear}[what]
            for _ in range(how):
                step()

    def come_to_an_end(self) -> None:
        """With no more faults, and without giving anything up for its age."""
        self._refusal = None
        for _ in range(20 * (len(self.appended) + 1)):
            if not (self._sent or self._served or self.accumulator.unfinished_batches):
                return
            self.now_ms += DELIVERY_MS
            self._identify()
            self._send()
            self._serve()
            self._hear()

    def _append(self, value: bytes) -> None:
        record = CheckedRecord(NAME.topic, value, None, None, None, (), SIZE)
        batch, index = self.accumulator.append(NAME, record, self.now_ms, 0)
        self.appended.append(value)
        batch.when_done(lambda: self._done(value, batch.at(index)[0]))

    def _done(self, value: bytes, batch: ProducerBatch) -> None:
        assert value not in self.outcomes, "a record has one outcome"
        self.outcomes[value] = batch

    def _identify(self) -> None:
        accumulator = self.accumulator
        needs = accumulator.needs_producer_id and accumulator.unfinished_batches
        if needs and not accumulator.in_flight_count:
            accumulator.identify(self.identities, 0)
            self.identities += 1

    def _send(self) -> None:
        if self.accumulator.needs_producer_id:
            return
        for queue in self.accumulator.ready(self.now_ms).queues:
            batch = self.accumulator.take(queue)
            self._sent.append(Request(batch, batch.encode()))

    def _serve(self) -> None:
        if self._sent:
            request = self._sent.popleft()
            self._served.append((request.batch, self._answer(request.data)))

    def _answer(self, data: bytes) -> BarnabasError | None:
        refusal, self._refusal = self._refusal, None
        values = [each.value or b"" for each in iterate_records(data)]
        if any(value.endswith(TOO_LARGE) for value in values):
            return MessageTooLarge()
        if isinstance(refusal, NotEnoughReplicas):
            return refusal
        header = read_header(data)
        try:
            if self._producers.check(header) is not None:
                return refusal
        except KafkaError as error:
            return error
        self._producers.apply(header, len(self.log), 0)
        self.log += values
        return refusal

    def _hear(self) -> None:
        if self._served:
            batch, error = self._served.popleft()
            if batch.done:
                return
            if error is None:
                self.accumulator.acknowledge(batch, 0, -1)
            else:
                self.accumulator.fail_attempt(batch, error, self.now_ms + 100)

    def _cut(self) -> None:
        lost = [batch for batch, _ in self._served] + [request.batch for request in self._sent]
        self._served.clear()
        self._sent.clear()
        for batch in lost:
            if not batch.done:
                self.accumulator.fail_attempt(batch, ConnectionLost("cut"), self.now_ms + 100)


@pytest.mark.thorough
@given(st.integers(1, 5), st.lists(MOMENTS, max_size=80))
@settings(max_examples=examples(2000, least=200), deadline=None)
def test_each_record_has_one_outcome_and_that_is_true(
    in_flight: int, moments: list[Moment]
) -> None:
    world = World(in_flight)
    for what, how in moments:
        world.happen(what, how)
    world.come_to_an_end()
    assert world.accumulator.unfinished_batches == [], "something waits for ever"
    assert set(world.outcomes) == set(world.appended)
    assert world.accumulator.used_bytes == 0
    for value, batch in world.outcomes.items():
        if batch.error is None:
            assert value in world.log, "acknowledged, and not stored"
        elif not batch.in_doubt and batch.attempts:
            assert value not in world.log, "refused, and stored"
    if world.identities <= 1:  # else what was in doubt may be there twice
        order = [world.appended.index(value) for value in world.log]
        assert order == sorted(set(order)), "stored twice, or out of order"
