"""Converts OTLP log requests to records for a topic. Pure.

Each record is itself a request (`ExportLogsServiceRequest`, the same bytes as `LogsData`) with the
log records of one resource. OpenTelemetry's Collector reads such records with the encoding
otlp_proto. JSON requests are converted to protobuf, so that readers need only one encoding.
https://opentelemetry.io/docs/specs/otlp/
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from importlib import import_module
from textwrap import shorten
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas_collector.redaction import Redact

EXTRA: Final = "otlp"
MOST_BYTES: Final = 8 << 20
"""The maximum size of a request, uncompressed."""
MOST_RESOURCES: Final = 10_000
"""The maximum number of resources in a request."""
MOST_RECORD_BYTES: Final = 900_000
MOST_LOG_RECORDS: Final = 10_000  # the maximum in a record of the topic
_MOST_SHARED_BYTES: Final = 131_072
"""The maximum size of a resource or scope. If a request is divided, each part repeats both."""
_KEY_BYTES: Final = 16
_FIELD_BYTES: Final = 6  # a tag, and a length of at most 8 MiB

_MOST_WHY: Final = 300  # characters of a library's error text
# These reasons appear in metrics and determine the listeners' status codes.
MALFORMED: Final = "malformed"
TOO_LARGE: Final = "too large"


class Refusal(Exception):
    """The reason for refusing a request, as one of the words above and as a sentence."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Message(NamedTuple):
    """Holds a record for the topic. `key` identifies the resource, so that its log records stay in
    order."""

    key: bytes
    value: bytes
    log_records: int


def require(*modules: str) -> None:
    """Raise `ConfigError` if a module required by a listener is not installed."""
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise ConfigError(
                f"OTLP needs {name}, which cannot be loaded ({error}): {install_line(EXTRA)}"
            ) from None


def parse(body: bytes, *, is_json: bool) -> Any:
    """Return the `ExportLogsServiceRequest`. Raises `Refusal`."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    if is_json:
        _parse_json(body, request)
    else:
        from google.protobuf.message import DecodeError

        try:
            request.ParseFromString(body)
        except DecodeError:
            raise Refusal(MALFORMED, "the body is not a valid ExportLogsServiceRequest") from None
    if len(request.resource_logs) > MOST_RESOURCES:
        raise Refusal(
            TOO_LARGE, f"{len(request.resource_logs):,} resources are more than {MOST_RESOURCES:,}"
        )
    return request


def _parse_json(body: bytes, request: Any) -> None:
    from google.protobuf.json_format import ParseDict, ParseError

    try:
        content = json.loads(body)
        if not isinstance(content, dict):
            raise ValueError("it is not an object")
        for record in _log_records(content):
            for name in ("traceId", "spanId", "trace_id", "span_id"):
                if name in record:
                    # These are hexadecimal in OTLP's JSON, but base64 in protobuf's JSON.
                    record[name] = base64.b64encode(binascii.unhexlify(record[name])).decode()
        ParseDict(content, request, ignore_unknown_fields=True, max_recursion_depth=60)
    except (ValueError, TypeError, AttributeError, ParseError, RecursionError) as error:
        why = shorten(str(error), _MOST_WHY, placeholder=" ...") or type(error).__name__
        raise Refusal(MALFORMED, f"the body is not a valid OTLP request in JSON: {why}") from None


def _log_records(content: Any) -> Iterator[dict[str, Any]]:
    for group in _items(content, "resourceLogs", "resource_logs"):
        for scope in _items(group, "scopeLogs", "scope_logs"):
            for record in _items(scope, "logRecords", "log_records"):
                if isinstance(record, dict):
                    yield record


def _items(parent: Any, *names: str) -> Iterator[Any]:
    for name in names:
        found = parent.get(name) if isinstance(parent, dict) else None
        if isinstance(found, list):
            yield from found


def replace_secrets(request: Any, redact: Redact) -> None:
    """Redact the texts and bytes in bodies and attributes, at any depth."""
    for group in request.resource_logs:
        _redact_attributes(group.resource.attributes, redact)
        for scope in group.scope_logs:
            _redact_attributes(scope.scope.attributes, redact)
            for record in scope.log_records:
                _redact_value(record.body, redact)
                _redact_attributes(record.attributes, redact)


def _redact_attributes(attributes: Iterable[Any], redact: Redact) -> None:
    for attribute in attributes:
        _redact_value(attribute.value, redact)


def _redact_value(value: Any, redact: Redact) -> None:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        text = value.string_value.encode()
        if (redacted := redact(text)) != text:
            value.string_value = redacted.decode("utf-8", "replace")
    elif kind == "bytes_value":
        value.bytes_value = redact(value.bytes_value)
    elif kind == "array_value":
        for each in value.array_value.values:
            _redact_value(each, redact)
    elif kind == "kvlist_value":
        _redact_attributes(value.kvlist_value.values, redact)


def messages(request: Any, most_bytes: int = MOST_RECORD_BYTES) -> Iterator[Message]:
    """Yield one record for each resource of a request, or several records if a resource is too
    large.

    Resources without log records are omitted. Raises `Refusal`.
    """
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    for group in request.resource_logs:
        count = sum(len(scope.log_records) for scope in group.scope_logs)
        if not count:
            continue
        resource = group.resource.SerializeToString(deterministic=True)
        key = blake2b(resource, digest_size=_KEY_BYTES).hexdigest().encode()
        if group.ByteSize() + _FIELD_BYTES <= most_bytes and count <= MOST_LOG_RECORDS:
            value = ExportLogsServiceRequest(resource_logs=[group]).SerializeToString()
            yield Message(key, value, count)
            continue
        for part, part_count in _parts(group, most_bytes):
            value = ExportLogsServiceRequest(resource_logs=[part]).SerializeToString()
            yield Message(key, value, part_count)


def _parts(group: Any, most_bytes: int) -> Iterator[tuple[Any, int]]:
    """Divide the log records of a resource, in order.

    Each part repeats the resource and the scope.
    """
    empty = _without(group, "scope_logs")
    _check_shared("resource", empty)
    part, count, size_bytes = _copy(empty), 0, empty.ByteSize() + _FIELD_BYTES
    for scope in group.scope_logs:
        bare = _without(scope, "log_records")
        _check_shared("scope", bare)
        target = None
        for record in scope.log_records:
            more_bytes = record.ByteSize() + _FIELD_BYTES
            if target is None:
                more_bytes += bare.ByteSize() + _FIELD_BYTES
            if count and (size_bytes + more_bytes > most_bytes or count == MOST_LOG_RECORDS):
                yield part, count
                part, count, size_bytes = _copy(empty), 0, empty.ByteSize() + _FIELD_BYTES
                more_bytes = record.ByteSize() + bare.ByteSize() + 2 * _FIELD_BYTES
                target = None
            if target is None:
                target = part.scope_logs.add()
                target.CopyFrom(bare)
            target.log_records.append(record)
            count += 1
            size_bytes += more_bytes
    yield part, count


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _without(message: Any, field: str) -> Any:
    """Return a copy without one field.

    The field itself is never copied, because it may be large.
    """
    bare = type(message)()
    for descriptor, value in message.ListFields():
        if descriptor.name == field:
            continue
        if descriptor.message_type is None:
            setattr(bare, descriptor.name, value)
        else:
            getattr(bare, descriptor.name).CopyFrom(value)
    return bare


def _check_shared(what: str, message: Any) -> None:
    if message.ByteSize() > _MOST_SHARED_BYTES:
        raise Refusal(
            TOO_LARGE,
            f"a {what} has {message.ByteSize():,} bytes of attributes, but may have at most "
            f"{_MOST_SHARED_BYTES:,}, because they are repeated in each record",
        )
