"""Batches whose header says what their records do not: refused, or stored as what they are (ST-1).

One such batch, appended as it is, stops every reader of its partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas import Broker
from barnabas.broker.partitions.batch_conversion import BatchConverter
from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTimestamp,
    TopicAuthorizationFailed,
)
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.records.batch import HEADER_BYTES, BatchHeader, iterate_batches, read_header, seal
from barnabas.records.compression import LZ4, compress
from barnabas.records.plausibility import AHEAD_MS, MAX_PLAIN_BYTES
from barnabas.records.record import Record, iterate_records
from tests.kit.broker.produces import produce, produce_request
from tests.kit.broker.topics import create
from tests.kit.effort import examples
from tests.kit.raw_client import RawClient
from tests.kit.storage.batches import lying, of_count
from tests.kit.storage.disk import T0, batch

HOUR_MS = 3_600_000
_NUMBERS = count()


def stored(client: RawClient, topic: str) -> tuple[list[BatchHeader], list[Record]]:
    wanted = FetchTopic(topic=topic, partitions=[FetchPartition(partition_max_bytes=1 << 20)])
    answer = client.call(FETCH, 4, FetchRequest(replica_id=-1, topics=[wanted]))
    records = bytes(answer.responses[0].partitions[0].records)
    return [each for _, each in iterate_batches(records)], list(iterate_records(records))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("claimed", [1, 4, 6, 500, 2**31 - 1])
def test_a_wrong_number_of_records_is_refused(
    client: RawClient, topic: str, codec: int, claimed: int
) -> None:
    refused = produce(client, topic, of_count(batch(5, codec=codec), claimed))
    assert refused.error_code == InvalidRecord.code
    assert "Incorrect declared batch size" in refused.error_message
    assert produce(client, topic, batch(5, codec=codec)).base_offset == 0


def test_a_repeated_request_is_looked_at_as_well(client: RawClient, topic: str) -> None:
    """PR-4: requests that are not decoded any more go through the same check."""
    for _ in range(3):
        assert produce(client, topic, batch(5)).error_code == 0
    assert produce(client, topic, of_count(batch(5), 4)).error_code == InvalidRecord.code
    assert produce(client, topic, batch(5)).base_offset == 15


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("step_ms", [0, 1])
def test_a_time_that_no_record_has_is_corrected(
    client: RawClient, topic: str, codec: int, step_ms: int
) -> None:
    """ST-6: retention believes it, and 2^62 would keep the segment for ever."""
    for _ in range(2):
        assert produce(client, topic, batch(5, codec=codec, step_ms=step_ms)).error_code == 0
    liar = lying(batch(5, codec=codec, step_ms=step_ms), max_timestamp=1 << 62)
    assert produce(client, topic, liar).error_code == 0
    headers, records = stored(client, topic)
    assert [each.max_timestamp for each in headers] == [T0 + 4 * step_ms] * 3
    assert len(records) == 15


def test_many_records_in_doubt_keep_their_place(client: RawClient, topic: str) -> None:
    """PR-6: what is walked in pieces is not overtaken by what the connection sends next."""
    large = lying(batch(20_000, step_ms=1), max_timestamp=1 << 62)
    for records in (large, batch(1), of_count(batch(20_000), 19_999), batch(2)):
        client.send(PRODUCE, 9, produce_request(topic, {0: bytes(records)}))
    answers = [client.receive(PRODUCE, 9)[1].responses[0].partition_responses[0] for _ in range(4)]
    assert [each.error_code for each in answers] == [0, 0, InvalidRecord.code, 0]
    assert [each.base_offset for each in answers] == [0, 20_000, -1, 20_001]


def framed(codec: int, body: bytes, count: int = 5) -> bytes:
    """A batch of so many records with these bytes as what was compressed, and a right checksum."""
    header = read_header(batch(count, codec=codec))
    return bytes(seal(header, body))


GARBAGE = bytes(range(7, 207))
STARTS = {
    1: b"\x1f\x8b\x08\xff",
    2: b"",
    3: b"\x04\x22\x4d\x18\x60\x40",
    4: b"\x28\xb5\x2f\xfd\x00",
}


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_after_a_good_compressed_batch_others_are_looked_at(
    client: RawClient, topic: str, codec: int
) -> None:
    """One that no reader can unpack would stop every reader of its partition (ST-1)."""
    for _ in range(3):
        assert produce(client, topic, bytes(batch(5, codec=codec))).error_code == 0
    good = bytes(batch(5, codec=codec))[HEADER_BYTES:]
    bodies = {
        "garbage": GARBAGE,
        "magic and garbage": STARTS[codec] + GARBAGE,
        "nothing": b"",
        "cut": good[:-3],
        "unpacks to too much": compress(codec, bytes(MAX_PLAIN_BYTES + 1)),
    }
    if codec == LZ4:
        bodies["another frame behind"] = good + compress(codec, bytes(1 << 20))
    else:  # an lz4 frame bounds what is in it, but does not count it
        bodies["unpacks to too little"] = compress(codec, bytes(20))
    for name, body in bodies.items():
        for _ in range(2):
            answer = produce(client, topic, framed(codec, body))
            assert answer.error_code == InvalidRecord.code, name
    assert produce(client, topic, bytes(batch(5, codec=codec))).base_offset == 15
    assert len(stored(client, topic)[1]) == 20


def poisoned(codec: int) -> bytes:
    """Five records, of which the third has the first one's offset."""
    good = batch(5)
    third = HEADER_BYTES + 2 * ((len(good) - HEADER_BYTES) // 5)
    assert good[third + 3] == 2 << 1, "its offset delta"
    bad = bytearray(good)
    bad[third + 3] = 0
    body = bytes(bad[HEADER_BYTES:])
    return framed(codec, body if codec == 0 else compress(codec, body))


WALKING = (
    {"barnabas.verify.all.records": "true"},
    {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    },
)


@pytest.mark.parametrize("config", WALKING, ids=["set", "authorizer"])
def test_all_records_are_walked_where_that_is_set(config: dict[str, str]) -> None:
    """Only a walk finds what is wrong between the first record and the last, or behind a framing
    that is right. Where rules are set for some, none of them may spoil a topic (SE-1)."""
    with Broker(config=config) as strict, RawClient(strict.bootstrap_servers) as client:
        create(client, "t")
        for codec in range(5):
            for _ in range(2):
                assert produce(client, "t", bytes(batch(5, codec=codec))).error_code == 0
            assert produce(client, "t", poisoned(codec)).error_code == InvalidRecord.code


LIES = st.fixed_dictionaries(
    {},
    optional={
        "record_count": st.one_of(st.integers(-2, 70), st.integers(-(2**31), 2**31 - 1)),
        "last_offset_delta": st.one_of(st.integers(-2, 70), st.integers(-(2**31), 2**31 - 1)),
        "base_timestamp": st.one_of(st.integers(T0 - 5, T0 + 5), st.integers(-(2**63), 2**63 - 1)),
        "max_timestamp": st.one_of(st.integers(T0 - 5, T0 + 5), st.integers(-(2**63), 2**63 - 1)),
        "attributes": st.one_of(st.integers(0, 7), st.integers(-(2**15), 2**15 - 1)),
    },
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LIES, st.integers(1, 66), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_any_lie_is_refused_or_does_no_harm(
    node: Broker, lies: dict[str, int], records: int, codec: int, step_ms: int, is_count: bool
) -> None:
    """ST-1, ST-6: what was accepted can be read, record by record, and is not kept too long."""
    if is_count and "record_count" in lies:  # a lie that is consistent in itself
        lies["last_offset_delta"] = lies["record_count"] - 1
        lies["last_offset_delta"] = max(lies["last_offset_delta"], -(2**31))
    honest = batch(records, codec=codec, step_ms=step_ms)
    lies.setdefault("attributes", codec)
    lies["attributes"] &= ~0x10  # transactions have their own rules
    name = f"lie-{next(_NUMBERS)}"
    with RawClient(node.bootstrap_servers) as client:
        create(client, name)
        answer = produce(client, name, bytes(lying(honest, **lies)))
        headers, found = stored(client, name)
    if answer.error_code:
        assert answer.error_code in (InvalidRecord.code, CorruptMessage.code, 76) or (
            answer.error_code == InvalidTimestamp.code and lies["attributes"] & 8
        )
        assert not found
        return
    assert len(found) == headers[0].record_count == records
    assert [each.offset for each in found] == list(range(records))
    newest = max(each.timestamp for each in found)
    ahead_ms = int(time.time() * 1000) + AHEAD_MS
    assert newest <= headers[0].max_timestamp <= max(newest, ahead_ms) or newest < T0 - HOUR_MS


@pytest.mark.parametrize("codec", [0, 1])
def test_se_4_the_batches_of_a_client_that_may_not_write_are_not_unpacked(
    client: RawClient,
    topic: str,
    codec: int,
    deny: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor converted: the refusal costs no work. The error is that of the missing right."""
    prepared = []
    prepare = BatchConverter.prepare

    def counted(*arguments: Any, **settings: Any) -> object:
        prepared.append(arguments)
        return prepare(*arguments, **settings)

    monkeypatch.setattr(BatchConverter, "prepare", counted)
    doubtful = of_count(batch(5, codec=codec), 4)
    assert produce(client, topic, doubtful).error_code == InvalidRecord.code
    assert len(prepared) == 1
    deny(topic)
    for acks, error in ((-1, TopicAuthorizationFailed), (7, InvalidRequiredAcks)):
        assert produce(client, topic, doubtful, acks=acks).error_code == error.code
    assert len(prepared) == 1
