"""Lengths and headers: v1 and v2 of requests, v0 and v1 of responses."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.protocol.api import API_VERSIONS, CONTROLLED_SHUTDOWN, METADATA
from barnabas.protocol.frame import (
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.types import FileSlice, Part
from tests.kit.request import decode_request


def joined(parts: list[Part]) -> bytes:
    assert not any(isinstance(part, FileSlice) for part in parts)
    return b"".join(parts)  # type: ignore[arg-type]


def test_request_header_v1_golden() -> None:
    frame = joined(encode_request(METADATA, 1, 7, "me", MetadataRequest(topics=[])))
    assert frame.hex() == "00000010000300010000000700026d6500000000"
    header = decode_request_header(memoryview(frame)[4:])
    assert header[:4] == (3, 1, 7, "me")
    assert decode_request(header) == MetadataRequest(topics=[])


def test_request_header_v2_keeps_the_old_client_id() -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    frame = joined(encode_request(API_VERSIONS, 3, 7, None, request))
    assert frame.hex() == "000000100012000300000007ffff000261023100"
    header = decode_request_header(memoryview(frame)[4:])
    assert header.client_id is None
    assert decode_request(header) == request


@pytest.mark.parametrize("client_id", ["broker", None])
def test_a_controlled_shutdown_of_version_0_has_no_client_id(client_id: str | None) -> None:
    """As brokers before 0.9 ask for it; its header is the only one of version 0."""
    request = ControlledShutdownRequest(broker_id=5)
    frame = joined(encode_request(CONTROLLED_SHUTDOWN, 0, 7, client_id, request))
    assert frame.hex() == "0000000c000700000000000700000005"
    header = decode_request_header(memoryview(frame)[4:])
    assert header[:4] == (7, 0, 7, None)
    assert decode_request(header) == request
    frame = joined(encode_request(CONTROLLED_SHUTDOWN, 1, 7, "me", request))
    assert frame.hex() == "00000010000700010000000700026d6500000005"
    header = decode_request_header(memoryview(frame)[4:])
    assert header.client_id == "me"
    assert decode_request(header) == request


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    frame = bytes.fromhex("0012000300000007ffff012a02beef0261023100")
    request = decode_request(decode_request_header(memoryview(frame)))
    assert request == ApiVersionsRequest(client_software_name="a", client_software_version="1")


def test_what_follows_a_request_is_ignored_and_what_follows_a_response_is_not() -> None:
    frame = joined(encode_request(METADATA, 1, 7, "me", MetadataRequest(topics=[])))
    header = decode_request_header(memoryview(frame + b"\x00\x00")[4:])
    assert decode_request(header) == MetadataRequest(topics=[])
    answer = joined(encode_response(METADATA, 8, 9, MetadataResponse()))
    with pytest.raises(CorruptData, match="2 bytes follow"):
        decode_response(METADATA, 8, memoryview(answer + b"\x00\x00")[4:])


def test_the_response_header_of_api_versions_is_always_v0() -> None:
    """KIP-511: the client does not know yet what the broker speaks."""
    frame = joined(encode_response(API_VERSIONS, 4, 9, ApiVersionsResponse()))
    assert frame.hex() == "0000000c000000090000010000000000"
    assert decode_response(API_VERSIONS, 4, memoryview(frame)[4:]) == (9, ApiVersionsResponse())


def test_response_header_v1_has_tagged_fields() -> None:
    frame = joined(encode_response(METADATA, 12, 9, MetadataResponse()))
    assert frame[4:9].hex() == "0000000900"
    assert decode_response(METADATA, 12, memoryview(frame)[4:]) == (9, MetadataResponse())
    with_tag = memoryview(frame[4:8] + b"\x01\x00\x01z" + frame[9:])
    assert decode_response(METADATA, 12, with_tag) == (9, MetadataResponse())


def test_response_header_v0() -> None:
    frame = joined(encode_response(METADATA, 8, 9, MetadataResponse()))
    assert decode_response(METADATA, 8, memoryview(frame)[4:]) == (9, MetadataResponse())


def test_the_header_of_an_unknown_api_is_readable() -> None:
    header = decode_request_header(memoryview(bytes.fromhex("7000000100000005000178")))
    assert header[:4] == (0x7000, 1, 5, "x")


def test_the_header_of_a_version_to_come_is_readable() -> None:
    """KIP-511: ApiVersions above our range is answered, so its header must be understood."""
    frame = bytes.fromhex("001200630000000500017800c0ffee")
    header = decode_request_header(memoryview(frame))
    assert header[:4] == (18, 99, 5, "x")
    assert bytes(header.body) == b"\xc0\xff\xee"


@pytest.mark.parametrize(
    "hexadecimal",
    [
        "",
        "0003",
        "0003000100000007",
        "000300010000000700056d65",
        "00120003000000070001ff00",
        "00120003000000070000",
    ],
)
def test_a_torn_header_is_corrupt(hexadecimal: str) -> None:
    with pytest.raises(CorruptData, match=r"empty frame|truncated at|client id of 5|utf-8"):
        decode_request_header(memoryview(bytes.fromhex(hexadecimal)))


def test_a_torn_response_is_corrupt() -> None:
    for frame in (b"", b"\0\0\0", b"\0\0\0\1"):
        with pytest.raises(CorruptData, match=f"truncated at {len(frame)} bytes"):
            decode_response(METADATA, 12, memoryview(frame))
