"""What Kafka's brokers were recorded saying to each other, and messages that travel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from barnabas.protocol.api import APIS, Api
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.frame import decode_request_header, decode_response
from barnabas.protocol.message import Message
from tests.kit.request import decode_request

M = TypeVar("M", bound=Message)


def travelled(message: M, version: int) -> M:
    """The message as the other side decodes it."""
    return decode(type(message), b"".join(encode(message, version)), version)  # type: ignore[arg-type]


def recorded(shared: Path, api: Api, file_name: str = "interbroker") -> list[tuple[int, Any, Any]]:
    """What brokers of Kafka 3.9 said to each other: version, request and answer."""
    exchanges = []
    file = shared / "fixtures" / "kafka-3.9" / "wire" / f"{file_name}.jsonl"
    for exchange in map(json.loads, file.read_text().splitlines()):
        if exchange["api_key"] == api.key:
            version = exchange["version"]
            request = bytes.fromhex(exchange["request_hex"])
            response = bytes.fromhex(exchange["response_hex"])
            exchanges.append(
                (
                    version,
                    decode_request(decode_request_header(memoryview(request))),
                    decode_response(APIS[api.key], version, memoryview(response))[1],
                )
            )
    assert len(exchanges) >= 2
    return exchanges


def recorded_bodies(shared: Path, api: Api) -> list[tuple[int, bytes]]:
    """The requests among what brokers of Kafka 3.9 said to each other: version and bytes."""
    found = []
    file = shared / "fixtures" / "kafka-3.9" / "wire" / "interbroker.jsonl"
    for exchange in map(json.loads, file.read_text().splitlines()):
        if exchange["api_key"] == api.key:
            header = decode_request_header(memoryview(bytes.fromhex(exchange["request_hex"])))
            found.append((exchange["version"], bytes(header.body)))
    assert len(found) >= 2
    return found
