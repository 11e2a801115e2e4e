"""Producers as bytes say what producers as objects would (PR-6, KIP-98)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
    UnknownProducerId,
)
from barnabas.records.batch import NO_SEQUENCE, BatchHeader
from barnabas.records.control_records import ABORT, Marker
from barnabas.storage.producers import Producers
from barnabas.storage.snapshot import decode_snapshot, encode_snapshot
from tests.kit.effort import examples

WRAP = 2**31


class Model:
    """Of one partition: by producer id the epoch, batches of (base sequence, count, base offset,
    timestamp), time, coordinator epoch, first offset of the transaction."""

    def __init__(self) -> None:
        self.known: dict[int, dict[str, Any]] = {}

    def check(self, sent: BatchHeader) -> tuple[int, int, int] | None:
        known = self.known.get(sent.producer_id)
        if known is None:
            return None
        expected = 0
        if sent.producer_epoch < known["epoch"]:
            raise InvalidProducerEpoch
        if sent.producer_epoch == known["epoch"]:
            for sequence, count, offset, time in reversed(known["batches"]):
                if (sequence, count) == (sent.base_sequence, sent.record_count):
                    is_open = known["began"] is not None and known["began"] <= offset
                    if sent.is_transactional and not is_open:
                        raise UnknownProducerId
                    return offset, offset + count - 1, time
            if known["batches"]:
                sequence, count, _, _ = known["batches"][-1]
                expected = 0 if sequence == NO_SEQUENCE else (sequence + count) % WRAP
        if sent.base_sequence != expected:
            raise OutOfOrderSequenceNumber
        if known["began"] is not None and not sent.is_transactional:
            raise InvalidTxnState
        return None

    def _of(self, producer_id: int, epoch: int) -> dict[str, Any]:
        new = {"epoch": epoch, "batches": [], "time": -1, "coordinator": -1, "began": None}
        known = self.known.setdefault(producer_id, new)
        if known["epoch"] != epoch:
            known |= {"epoch": epoch, "batches": []}
        return known

    def apply(self, sent: BatchHeader, offset: int, time: int) -> None:
        known = self._of(sent.producer_id, sent.producer_epoch)
        batch = sent.base_sequence, sent.record_count, offset, time
        known["batches"] = [*known["batches"], batch][-5:]
        known["time"] = time
        if sent.is_transactional and known["began"] is None:
            known["began"] = offset

    def apply_marker(self, producer_id: int, epoch: int, marker: Marker) -> int | None:
        known = self._of(producer_id, epoch)
        began: int | None = known["began"]
        known |= {
            "time": marker.timestamp_ms,
            "coordinator": marker.coordinator_epoch,
            "began": None,
        }
        return began

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        known = self.known.get(producer_id)
        if known is not None and epoch < known["epoch"]:
            raise InvalidProducerEpoch
        if known is not None and coordinator_epoch < known["coordinator"]:
            raise TransactionCoordinatorFenced

    def expire(self, before_ms: int) -> None:
        self.known = {
            each: known
            for each, known in self.known.items()
            if known["time"] > before_ms or known["began"] is not None
        }

    def forget_batches(self) -> None:
        """All but the last one, which is as old as its producer: what a snapshot keeps."""
        for known in self.known.values():
            known["batches"] = [(*each[:3], known["time"]) for each in known["batches"][-1:]]


def header(producer_id: int, epoch: int, sequence: int, count: int, attributes: int) -> BatchHeader:
    return BatchHeader(
        0, 0, 0, 2, 0, attributes, count - 1, 5, 5, producer_id, epoch, sequence, count
    )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "send", "own", "marker", "expire", "snapshot"]),
        st.integers(0, 3),  # producer id
        st.integers(0, 2),  # epoch
        st.sampled_from([0, 0, 0, 0, -1, 1, -2, -3, WRAP - 4]),  # off the expected sequence
        st.integers(1, 4),  # records, or the coordinator's epoch
        st.sampled_from([0, 0, 0x10]),
    ),
    min_size=1,
    max_size=60,
)


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except KafkaError as error:
        return type(error)


@settings(max_examples=examples(300))
@given(STEPS)
def test_they_are_what_objects_would_be(steps: list[tuple[str, int, int, int, int, int]]) -> None:
    producers, model = Producers(), Model()
    offset = 0
    for time, (kind, producer_id, epoch, off, count, attributes) in enumerate(steps, 1):
        if kind == "send":
            known = model.known.get(producer_id)
            expected = 0
            if known is not None and known["batches"] and known["epoch"] == epoch:
                last = known["batches"][-1]
                expected = last[0] + last[1]
            sent = header(producer_id, epoch, max(0, expected + off) % WRAP, count, attributes)
            found = outcome(lambda: producers.check(sent))  # noqa: B023
            if found is not None and not isinstance(found, type):
                found = found.base_offset, found.last_offset, found.timestamp
            assert found == outcome(lambda: model.check(sent))  # noqa: B023
            if found is None:
                producers.apply(sent, offset, time)
                model.apply(sent, offset, time)
                offset += count
        elif kind == "own":  # a coordinator's, which has no sequence
            sent = header(producer_id + 10, epoch, NO_SEQUENCE, count, 0x10)
            producers.apply(sent, offset, time)
            model.apply(sent, offset, time)
            offset += count
        elif kind == "marker":
            refused = outcome(lambda: producers.check_marker(producer_id, epoch, count))  # noqa: B023
            assert refused == outcome(lambda: model.check_marker(producer_id, epoch, count))  # noqa: B023
            if refused is None:
                marker = Marker(offset, time, ABORT, count)
                ended = producers.apply_marker(producer_id, epoch, marker)
                assert (ended and ended.first_offset) == model.apply_marker(
                    producer_id, epoch, marker
                )
                offset += 1
        elif kind == "expire":
            producers.expire(time - 10 * count)
            model.expire(time - 10 * count)
        else:
            producers = decode_snapshot(encode_snapshot(producers))
            model.forget_batches()
        is_same(producers, model, offset)


def is_same(producers: Producers, model: Model, end: int) -> None:
    assert [each for each, _ in producers] == list(model.known)
    began = [known["began"] for known in model.known.values() if known["began"] is not None]
    assert producers.stable_below(end + 1) == min(began, default=end + 1)
    for producer_id, known in model.known.items():
        found = producers.get(producer_id)
        assert found is not None
        assert found.epoch == known["epoch"]
        assert found.timestamp == known["time"]
        assert found.coordinator_epoch == known["coordinator"]
        assert found.transaction_offset == (-1 if known["began"] is None else known["began"])
        assert [(each.base_offset, each.last_offset, each.timestamp) for each in found.batches] == [
            (at, at + count - 1, time) for _, count, at, time in known["batches"]
        ]
