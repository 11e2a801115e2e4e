"""Frames that real clients and a real Kafka 3.9.1 exchanged: decoded, and encoded again to the
very bytes. What we have no messages for is named, so that nothing is passed over silently.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import interpreter
from barnabas.protocol.api import API_VERSIONS, APIS
from barnabas.protocol.frame import (
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from tests.kit.request import decode_request

pytestmark = pytest.mark.foreign

LEAST_FRAMES = 312
"""How many the recordings have of the APIs in the table today; more APIs only add to it."""


@pytest.fixture(scope="module")
def exchanges(shared: Path) -> list[dict[str, Any]]:
    """Every recorded exchange: the columns are described in the README beside the files."""
    files = sorted((shared / "fixtures" / "kafka-3.9" / "wire").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_frame_is_encoded_to_the_bytes_it_was_decoded_from(
    exchanges: list[dict[str, Any]], record_property: Callable[[str, object], None]
) -> None:
    frames: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for exchange in exchanges:
        if exchange["api_key"] not in APIS:
            left_out[exchange["api"]] += 1 + (exchange["response_hex"] is not None)
            continue
        check_request(exchange)
        frames[exchange["api"]] += 1
        if exchange["response_hex"] is not None:
            check_response(exchange)
            frames[exchange["api"]] += 1
    total = sum(1 + (exchange["response_hex"] is not None) for exchange in exchanges)
    record_property("frames", dict(frames))
    record_property("left_out", dict(left_out))
    print(f"{frames.total()} of {total} frames: {dict(frames.most_common())}")
    print(f"not in the table of APIs: {dict(left_out.most_common())}")
    assert frames.total() + left_out.total() == total
    assert frames.total() >= LEAST_FRAMES
    assert not left_out.keys() & {api.name for api in APIS.values()}


def check_request(exchange: dict[str, Any]) -> None:
    frame = bytes.fromhex(exchange["request_hex"])
    header = decode_request_header(memoryview(frame))
    assert header.api_key == exchange["api_key"]
    assert header.api_version == exchange["version"]
    assert header.correlation_id == exchange["correlation_id"]
    assert header.client_id == exchange["client_id"]
    api = APIS[header.api_key]
    request = decode_request(header)
    again = encode_request(
        api, header.api_version, header.correlation_id, header.client_id, request
    )
    assert framed(again) == frame
    assert interpreter.decode(api.request, header.body, header.api_version) == request


def check_response(exchange: dict[str, Any]) -> None:
    frame = bytes.fromhex(exchange["response_hex"])
    api, version = APIS[exchange["api_key"]], exchange["version"]
    correlation_id, response = decode_response(api, version, memoryview(frame))
    assert correlation_id == exchange["correlation_id"]
    assert framed(encode_response(api, version, correlation_id, response)) == frame


def framed(parts: list[Any]) -> bytes:
    """The frame without its length, which must be right."""
    whole = b"".join(parts)
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    return whole[4:]


def test_versions_are_those_that_kafka_advertises(exchanges: list[dict[str, Any]]) -> None:
    """Our ranges are 3.9.1's, by its own answer to its own tools."""
    (exchange,) = (
        one
        for one in exchanges
        if one["client"] == "java-tools" and one["api_key"] == API_VERSIONS.key
    )
    frame = memoryview(bytes.fromhex(exchange["response_hex"]))
    _, answer = decode_response(API_VERSIONS, exchange["version"], frame)
    assert isinstance(answer, ApiVersionsResponse)
    theirs = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert {key: (api.min_version, api.max_version) for key, api in APIS.items()} == {
        key: theirs[key] for key in APIS
    }
