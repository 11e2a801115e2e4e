"""Requests of OpenTelemetry's logs, made with its own package, in both encodings."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from barnabas_formats.otlp import Decoded, decode
from barnabas_formats.otlp_request import OTLP_JSON, OTLP_PROTO

AT_NS = 1_773_136_800_123_456_789  # 2026-03-10T10:00:00.123456789Z
AT_US = AT_NS // 1_000


def any_value(value: Any) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=map(any_value, value)))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    raise TypeError(type(value))


def pairs(values: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in values.items()]


def request(
    *log_records: dict[str, Any],
    resource: dict[str, Any] | None = None,
    scope: str = "",
    into: LogsData | None = None,
) -> LogsData:
    """A request with one resource and scope, or another one of those `into` it.

    Each log record is given by the fields of `LogRecord`; body and attributes are plain values.
    """
    made = into if into is not None else LogsData()
    group = made.resource_logs.add()
    group.resource.attributes.extend(pairs(resource or {}))
    scopes = group.scope_logs.add()
    scopes.scope.name = scope
    for each in log_records:
        fields = {**each}
        body, attributes = fields.pop("body", None), fields.pop("attributes", {})
        record = scopes.log_records.add(**fields)
        if body is not None:
            record.body.CopyFrom(any_value(body))
        record.attributes.extend(pairs(attributes))
    return made


def as_json(of: LogsData) -> bytes:
    """The request as OTLP has it in JSON: as protobuf's own, but with ids in hexadecimal."""
    made = json_format.MessageToDict(of, use_integers_for_enums=True)
    for group in made.get("resourceLogs", []):
        for scope in group.get("scopeLogs", []):
            for record in scope.get("logRecords", []):
                for name in {"traceId", "spanId"} & record.keys():
                    record[name] = base64.b64decode(record[name]).hex()
    return json.dumps(made).encode()


def in_both(of: LogsData) -> Decoded:
    """What a request becomes, which is the same in both encodings except for rejected values."""
    proto = decode(of.SerializeToString(), OTLP_PROTO)
    text = decode(as_json(of), OTLP_JSON)
    assert proto.entries == text.entries
    assert [each[::2] for each in proto.letters] == [each[::2] for each in text.letters]
    return proto
