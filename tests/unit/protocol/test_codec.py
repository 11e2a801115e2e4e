"""Golden bytes written by hand, and the edges of the compiled codec; see tests/property too."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from barnabas.errors import CorruptData
from barnabas.protocol import interpreter
from barnabas.protocol.codec import decode, decode_prefix, encode
from barnabas.protocol.message import Message, field
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.wire import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT32,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Array,
)
from barnabas.types import FileSlice


class Inner(Message):
    name: str = field(STRING)


class Rare(Message, flexible="1+"):
    """Types and combinations that no message of ours has yet."""

    port: int = field(UINT16)
    epoch: int = field(UINT32)
    ratio: float = field(FLOAT64)
    blob: bytes | None = field(BYTES, nullable="0+")
    one: Inner = field(Inner)
    maybe: Inner | None = field(Inner, nullable="0+", default=None)
    ids: list[bytes] = field(Array(UUID))
    names: list[str] | None = field(Array(STRING), nullable="0+")
    flags: list[bool] = field(Array(BOOLEAN))
    label: str | None = field(STRING, versions="1+", nullable="1+", tag=200, ignorable=True)
    counts: list[int] = field(Array(INT32), versions="1+", tag=1, ignorable=True)


def bytes_of(message: Message, version: int) -> bytes:
    return b"".join(encode(message, version))  # type: ignore[arg-type]


def produce_request(records: Any) -> ProduceRequest:
    partition = PartitionProduceData(index=2, records=records)
    topic = TopicProduceData(name="t", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def test_inflexible_golden() -> None:
    expected = (
        "ffff"  # transactional id null
        "ffff"
        "000003e8"  # acks -1, 1000 ms
        "00000001"
        "0001"
        "74"  # one topic, "t"
        "00000001"
        "00000002"  # one partition, number 2
        "00000003"
        "616263"  # three bytes of records
    )
    assert bytes_of(produce_request(b"abc"), 8).hex() == expected


def test_flexible_golden() -> None:
    expected = (
        "00"  # transactional id null
        "ffff"
        "000003e8"
        "02"
        "02"
        "74"  # one topic, "t", each length plus one
        "02"
        "00000002"
        "04"
        "616263"
        "00"  # records, no tagged fields of the partition
        "00"
        "00"  # nor of the topic, nor of the request
    )
    assert bytes_of(produce_request(b"abc"), 9).hex() == expected


def test_tagged_fields_are_sent_only_if_set() -> None:
    answer = ApiVersionsResponse()
    assert bytes_of(answer, 3).hex() == "0000010000000000"
    answer.zk_migration_ready = True
    answer.finalized_features_epoch = 5
    assert bytes_of(answer, 3).hex() == (
        "0000"
        "01"
        "00000000"
        "02"
        "01"
        "08"
        "0000000000000005"  # two; tag 1, 8 bytes
        "03"
        "01"
        "01"  # tag 3, 1 byte
    )
    assert decode(ApiVersionsResponse, bytes_of(answer, 3), 3) == answer


def test_unknown_tagged_fields_are_skipped() -> None:
    golden = bytes.fromhex("00000100000000026303aabbcc030101")
    answer = decode(ApiVersionsResponse, golden, 3)
    assert answer.zk_migration_ready
    request = decode(ApiVersionsRequest, b"\x02a\x02b\x01\x05\x02zz", 3)
    assert (request.client_software_name, request.client_software_version) == ("a", "b")


@pytest.mark.parametrize("version", [0, 1])
def test_rare_types(version: int) -> None:
    message = Rare(
        port=65_535, epoch=2**32 - 1, ratio=0.5, blob=b"xyz", one=Inner(name="a"),
        maybe=Inner(name="b"), ids=[bytes(range(16))] * 2, names=["x", "y" * 200], flags=[True],
    )  # fmt: skip
    if version == 1:
        message.label = "seen"
        message.counts = list(range(300))
    for made in (message, Rare()):
        data = bytes_of(made, version)
        assert data == interpreter.encode(made, version)
        assert decode(Rare, data, version) == made == interpreter.decode(Rare, data, version)


def test_records_are_views_of_the_frame_and_parts_of_the_answer() -> None:
    frame = bytearray(bytes_of(produce_request(bytes(16_384)), 9))
    records = decode(ProduceRequest, memoryview(frame), 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0] = 0xAA  # patched in place: base offset, leader epoch
    assert 0xAA in frame
    parts = encode(produce_request(records), 9)
    assert any(part is records for part in parts)


class OpenFile:
    """A file in memory that counts who holds it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.holders = 0

    def acquire(self) -> None:
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1

    def fileno(self) -> int:
        return -1

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]


def test_file_slices_stand_in_the_parts() -> None:
    """ST-5's way out: the bytes of a segment go from the file to the socket."""
    file = OpenFile(bytes(range(100)))
    slices = [FileSlice(file, 10, 20), FileSlice(file, 50, 5)]
    partition = PartitionData(records=slices, aborted_transactions=None)
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    parts = encode(answer, 17)
    assert [part for part in parts if isinstance(part, FileSlice)] == slices
    sent = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
    received = decode(FetchResponse, sent, 17).responses[0].partitions[0].records
    assert received == file.data[10:30] + file.data[50:55]
    assert sent == interpreter.encode(answer, 17)


def test_no_part_is_empty() -> None:
    assert all(len(part) for part in encode(produce_request(b""), 9))
    assert all(len(part) for part in encode(produce_request([]), 9))
    assert all(len(part) for part in encode(produce_request(b"x"), 3))


def test_a_value_that_the_version_lacks_is_refused_unless_ignorable() -> None:
    partition = PartitionData(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2))
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    for codec in (encode, interpreter.encode):
        with pytest.raises(ValueError, match="diverging_epoch cannot be sent in version 11"):
            codec(answer, 11)
    ignored = FetchRequest(rack_id="r1")
    assert decode(FetchRequest, bytes_of(ignored, 10), 10).rack_id == ""


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (ProduceRequest(acks=1 << 20), 9),
        (ProduceRequest(acks="all"), 9),  # type: ignore[arg-type]
        (ProduceRequest(transactional_id="x" * 40_000), 8),
        (ProduceRequest(transactional_id="x" * 40_000), 9),
        (FetchResponse(responses=[FetchableTopicResponse(topic_id=b"short")]), 17),
    ],
)
def test_what_does_not_fit_is_a_value_error(message: Message, version: int) -> None:
    with pytest.raises(ValueError):
        encode(message, version)


@pytest.mark.parametrize(
    ("hexadecimal", "why"),
    [
        ("", "ProduceRequest version 9 is truncated at 0 bytes"),
        ("00ffff000003e80100" + "00", "1 bytes follow"),
        ("00ffff000003e8ffffffff0f", "topic_data: length 4294967294"),  # an absurd count
        ("00ffff000003e800", "topic_data: length -1 .*null is not allowed"),
        ("00ffff000003e80205616263", "name: length 4"),  # a string past the end
        ("00ffff000003e80203ff8001", "utf-8"),
        ("00ffff000003e80202740200000002ffffffff07", "records: length"),
        ("00ffff000003e801010509", "tagged field 5"),
        ("00ffff000003e801ffffffffff01", "32 bits"),
    ],
)
def test_corrupt_bytes(hexadecimal: str, why: str) -> None:
    with pytest.raises(CorruptData, match=why):
        decode(ProduceRequest, bytes.fromhex(hexadecimal), 9)


def test_what_follows_a_request_may_be_ignored() -> None:
    """As Kafka does: librdkafka's Metadata request ends in bytes of older versions."""
    request = produce_request(b"abc")
    data = bytes_of(request, 9) + b"\x00\x01\x02"
    assert decode_prefix(ProduceRequest, data, 9) == request
    with pytest.raises(CorruptData, match="3 bytes follow"):
        decode(ProduceRequest, data, 9)
    with pytest.raises(CorruptData):
        decode_prefix(ProduceRequest, data[:-4], 9)


def test_a_tagged_field_has_the_size_it_says() -> None:
    golden = bytes.fromhex("000001000000000103020100")
    for codec in (decode, interpreter.decode):
        with pytest.raises(CorruptData, match="another size"):
            codec(ApiVersionsResponse, golden, 3)


def test_a_traceback_shows_the_compiled_lines() -> None:
    try:
        decode(ApiVersionsRequest, b"\x02", 3)
    except CorruptData as error:
        assert error.__cause__ is not None
        shown = "".join(traceback.format_exception(error.__cause__))
    assert "<decode ApiVersionsRequest v3>" in shown
    assert "data[position]" in shown or "raise CorruptData" in shown
