"""Encodes and decodes frames. A frame is a message that is preceded by a length and a header.

    request    INT32 length | INT16 api key | INT16 version | INT32 correlation id
               | client id (INT16 length, -1 = null, UTF-8) | tagged fields, if flexible | message
    response   INT32 length | INT32 correlation id | tagged fields, if flexible | message

Even in flexible versions (KIP-482), the length of the client id is an INT16. The header of an
ApiVersions response never has tagged fields (KIP-511), because a client reads it before it knows
which versions the broker supports. The header of ControlledShutdown version 0 has no client id.
When a frame is decoded here, the connection has already removed its length.
"""

from __future__ import annotations

import struct

from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.protocol.api import API_VERSIONS, APIS, CONTROLLED_SHUTDOWN, Api
from barnabas.protocol.codec import decode, encode_after
from barnabas.protocol.message import Message
from barnabas.protocol.wire import rest_of_uvarint, skip_tagged_fields
from barnabas.types import Part

_REQUEST = struct.Struct(">hhih")
_FRAMED_REQUEST = struct.Struct(">ihhih")
_RESPONSE = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """The header of a request.

    `body` is the message, which has not been decoded; it is a view of the frame.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: memoryview


def decode_request_header(frame: memoryview) -> RequestHeader:
    """Split a request frame into header and body. Raises CorruptData.

    If the API is not in the table, it is unknown whether the header ends with tagged fields, and
    `body` starts where they would be.
    """
    try:
        key, version, correlation_id, client_id_bytes = _REQUEST.unpack_from(frame)
        # Brokers older than 0.9 send this header. Kafka handles it as a special case, too.
        if version == 0 and key == CONTROLLED_SHUTDOWN.key:
            return RequestHeader(key, version, correlation_id, None, frame[8:])
        position = 10
        client_id = None
        if client_id_bytes >= 0:
            end = position + client_id_bytes
            if end > len(frame):
                raise CorruptData(f"client id of {client_id_bytes} bytes, frame of {len(frame)}")
            client_id = str(frame[position:end], "utf-8")
            position = end
        api = APIS.get(key)
        if api is not None and version >= api.flexible_from:
            position = _after_tagged_fields(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        # The connection also passes on frames whose length is 0.
        if not frame:
            raise CorruptData(
                "it sent an empty frame (length 0): it is not a Kafka client, or it mixed up the "
                "boundaries of two requests"
            ) from None
        if isinstance(error, UnicodeDecodeError):
            raise CorruptData(f"request header: {error}") from error
        raise CorruptData(f"request header: truncated at {len(frame)} bytes") from error
    return RequestHeader(key, version, correlation_id, client_id, frame[position:])


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Part]:
    """Encode a request frame, including its length.

    Raises ValueError if a value cannot be sent in the version."""
    name = b"" if client_id is None else client_id.encode()
    name_bytes = -1 if client_id is None else len(name)
    try:
        head = _FRAMED_REQUEST.pack(0, api.key, version, correlation_id, name_bytes)
    except struct.error as error:
        raise ValueError(f"request header: {error}") from error
    start = bytearray(head)
    # This header does not even contain the length of the client id.
    if version == 0 and api is CONTROLLED_SHUTDOWN:
        del start[-2:]
    else:
        start += name
    if version >= api.flexible_from:
        start.append(0)
    return _frame(encode_after(start, message, version))


def encode_response(api: Api, version: int, correlation_id: int, message: Message) -> list[Part]:
    """Encode a response frame, including its length.

    Raises ValueError in the same cases as `encode_request`.
    """
    start = bytearray(_RESPONSE.pack(0, correlation_id))
    if version >= api.flexible_from and api is not API_VERSIONS:
        start.append(0)
    return _frame(encode_after(start, message, version))


def frame_response(api: Api, version: int, correlation_id: int, body: bytes) -> list[Part]:
    """Build a response frame, including its length, from a message that is already encoded."""
    start = bytearray(_RESPONSE.pack(0, correlation_id))
    if version >= api.flexible_from and api is not API_VERSIONS:
        start.append(0)
    return _frame([start, body])


def decode_response(api: Api, version: int, frame: memoryview) -> tuple[int, Message]:
    """Decode a frame into a correlation id and a response. Raises CorruptData."""
    try:
        (correlation_id,) = _LENGTH.unpack_from(frame)
        position = 4
        if version >= api.flexible_from and api is not API_VERSIONS:
            position = _after_tagged_fields(frame, position)
    except (struct.error, IndexError) as error:
        raise CorruptData(f"response header: truncated at {len(frame)} bytes") from error
    return correlation_id, decode(api.response, frame[position:], version)


def _after_tagged_fields(frame: memoryview, position: int) -> int:
    count = frame[position]
    position += 1
    if count:
        if count > 0x7F:
            count, position = rest_of_uvarint(frame, position, count)
        position = skip_tagged_fields(frame, position, count)
    return position


def _frame(parts: list[Part]) -> list[Part]:
    first = parts[0]
    assert isinstance(first, bytearray)
    _LENGTH.pack_into(first, 0, sum(map(len, parts)) - 4)
    return parts
