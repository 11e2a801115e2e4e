"""Reads OpenTelemetry logs in protobuf, with the package `opentelemetry-proto`. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas_formats.otlp_request import (
    OTLP_PROTO,
    NotOtlp,
    Place,
    Raw,
    attributes_of,
    by_group,
    deeper,
    finite,
)


class ProtobufReader:
    def __init__(self) -> None:
        try:
            from google.protobuf.message import DecodeError
            from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        except ImportError as error:
            raise ConfigError(f"{error}, to decode {OTLP_PROTO}: {install_line('otlp')}") from None
        self._message: Any = LogsData
        self._error: type[Exception] = DecodeError

    def parse(self, value: bytes) -> Sequence[Any]:
        try:
            return self._message.FromString(value).resource_logs  # type: ignore[no-any-return]
        # The pure Python implementation raises other exceptions for invalid texts and deep nesting.
        except (self._error, ValueError, RecursionError):
            raise NotOtlp("the record is not an OTLP request in protobuf") from None

    def scopes(self, group: Any) -> Sequence[Any]:
        return group.scope_logs  # type: ignore[no-any-return]

    def records(self, scope: Any) -> Sequence[Any]:
        return scope.log_records  # type: ignore[no-any-return]

    def resource(self, group: Any) -> Mapping[str, object]:
        return self._pairs(group.resource.attributes)

    def scope_name(self, scope: Any) -> str:
        return str(scope.scope.name)

    def raw(self, record: Any) -> Raw:
        return Raw(
            record.time_unix_nano,
            record.observed_time_unix_nano,
            record.severity_number,
            record.severity_text,
            _proto_value(record.body, 0),
            self._pairs(record.attributes),
            record.trace_id,
            record.span_id,
            record.event_name,
        )

    def _pairs(self, sent: Any) -> dict[str, object]:
        return attributes_of(((each.key, _proto_value(each.value, 0)) for each in sent), len(sent))

    def request(self, places: Sequence[Place]) -> bytes:
        made = self._message()
        for group, scopes in by_group(places):
            to = made.resource_logs.add()
            to.resource.CopyFrom(group.resource)
            to.schema_url = group.schema_url
            for scope, records in scopes:
                inner = to.scope_logs.add()
                inner.scope.CopyFrom(scope.scope)
                inner.schema_url = scope.schema_url
                inner.log_records.extend(records)
        return bytes(made.SerializeToString())


def _proto_value(value: Any, depth: int) -> object:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    found = getattr(value, kind)
    if kind == "array_value":
        depth = deeper(depth)
        return [_proto_value(each, depth) for each in found.values]
    if kind == "kvlist_value":
        depth = deeper(depth)
        return {each.key: _proto_value(each.value, depth) for each in found.values}
    if kind == "bytes_value":
        return base64.b64encode(found).decode()
    return finite(found) if kind == "double_value" else found
