"""Reads OpenTelemetry logs in JSON, without third-party packages. Pure.

Besides the forms that OTLP defines, this module accepts the forms of protobuf's generic JSON
mapping: ids in base64, integers as numbers, and severities by name.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NoReturn

from barnabas_formats.levels import LEVELS
from barnabas_formats.otlp_request import (
    NotOtlp,
    Place,
    Raw,
    attributes_of,
    by_group,
    deeper,
    finite,
    reject,
)

_INTEGERS: Final = range(-(2**63), 2**63)
_SEVERITY: Final = re.compile(r"SEVERITY_NUMBER_(UNSPECIFIED|[A-Z]+?)([2-4]?)")
_WHOLE: Final = re.compile(r"-?[0-9]{1,20}")
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class JsonReader:
    def parse(self, value: bytes) -> Sequence[Any]:
        try:
            found = json.loads(value.decode(), parse_constant=_no_json)
        # Raised for numbers with thousands of digits, and for objects nested too deeply.
        except (ValueError, RecursionError):
            raise NotOtlp("the record is not JSON in UTF-8") from None
        if not isinstance(found, dict) or "resourceLogs" not in found:
            raise NotOtlp("the record is not an OTLP request in JSON: it has no resourceLogs")
        return _objects(found, "resourceLogs")

    def scopes(self, group: Any) -> Sequence[Any]:
        return _objects(group, "scopeLogs")

    def records(self, scope: Any) -> Sequence[Any]:
        return _objects(scope, "logRecords")

    def resource(self, group: Any) -> Mapping[str, object]:
        return self._pairs(_object(group, "resource"))

    def scope_name(self, scope: Any) -> str:
        return _string(_object(scope, "scope"), "name")

    def raw(self, record: Any) -> Raw:
        return Raw(
            _integer(record.get("timeUnixNano"), "timeUnixNano"),
            _integer(record.get("observedTimeUnixNano"), "observedTimeUnixNano"),
            _severity(record.get("severityNumber")),
            _string(record, "severityText"),
            _json_value(record.get("body"), 0),
            self._pairs(record),
            _bytes(_string(record, "traceId"), 16),
            _bytes(_string(record, "spanId"), 8),
            _string(record, "eventName"),
        )

    def _pairs(self, of: Mapping[str, Any]) -> dict[str, object]:
        sent = _rows(of, "attributes")
        return attributes_of((_json_pair(each, 0) for each in sent), len(sent))

    def request(self, places: Sequence[Place]) -> bytes:
        made = [
            {
                **group,
                "scopeLogs": [{**scope, "logRecords": records} for scope, records in scopes],
            }
            for group, scopes in by_group(places)
        ]
        try:
            return _as_bytes({"resourceLogs": made})
        # `json.dumps` allows a little less depth than `json.loads`.
        except RecursionError:
            raise NotOtlp("the objects of the record are nested too deeply") from None


def _as_bytes(value: object) -> bytes:
    # With ASCII escapes, a dead letter would be larger than its record.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which must be escaped
        return json.dumps(value, separators=(",", ":")).encode()


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _objects(of: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list of objects. If it is invalid, the rest of the request cannot be read."""
    found = of.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise NotOtlp(f"the record is not an OTLP request in JSON: {key} is not a list of objects")
    return found


def _object(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    if not isinstance(found, dict | None):
        reject(f"{key} is not an object")
    return found or _NOTHING


def _rows(of: Mapping[str, Any], key: str) -> list[Any]:
    found = of.get(key)
    if not isinstance(found, list | None):
        reject(f"{key} is not a list")
    return found or []


def _string(of: Mapping[str, Any], key: str) -> str:
    found = of.get(key)
    if not isinstance(found, str | None):
        reject(f"{key} is not a text")
    return _clean(found or "")


def _clean(text: str) -> str:
    # JSON can escape half a surrogate pair, which no column can hold.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _integer(value: object, what: str) -> int:
    """Return an integer, a string or a number in JSON."""
    if value is None:
        return 0
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        reject(f"{what} is not an integer")
    return value


def _severity(value: object) -> int:
    """Return the number of a severity. Some senders write the name instead."""
    match = _SEVERITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return _integer(value, "severityNumber")
    if match[1] not in LEVELS:
        return 0
    return 4 * LEVELS[::-1].index(match[1]) + int(match[2] or 1)


def _bytes(text: str, size: int) -> bytes:
    """Return an id, which is hexadecimal in OTLP and base64 in protobuf's generic JSON."""
    try:
        if len(text) == 2 * size:
            return bytes.fromhex(text)
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _json_pair(sent: object, depth: int) -> tuple[str, object]:
    if not isinstance(sent, dict):
        reject("an attribute is not an object with key and value")
    return _string(sent, "key"), _json_value(sent.get("value"), depth)


def _json_value(value: object, depth: int) -> object:
    if value is None:
        return None
    if not isinstance(value, dict):
        reject("a value is not an object such as stringValue")
    for kind, found in value.items():
        if kind in _KINDS and found is not None:
            return _KINDS[kind](found, depth)
    return None


def _json_text(value: Any, depth: int) -> object:
    return _string({"a value": value}, "a value")


def _json_boolean(value: Any, depth: int) -> object:
    if not isinstance(value, bool):
        reject("boolValue is neither true nor false")
    return value


def _json_integer(value: Any, depth: int) -> object:
    found = _integer(value, "intValue")
    if found not in _INTEGERS:
        reject("intValue does not fit into 64 bits")
    return found


def _json_number(value: Any, depth: int) -> object:
    if isinstance(value, str) and value in _NOT_FINITE:
        return value
    try:
        return finite(float("" if isinstance(value, bool) else value))
    except (TypeError, ValueError, OverflowError):
        reject("doubleValue is not a number")


def _json_array(value: Any, depth: int) -> object:
    depth = deeper(depth)
    return [
        _json_value(each, depth)
        for each in _rows(_object({"arrayValue": value}, "arrayValue"), "values")
    ]


def _json_map(value: Any, depth: int) -> object:
    depth = deeper(depth)
    return dict(
        _json_pair(each, depth)
        for each in _rows(_object({"kvlistValue": value}, "kvlistValue"), "values")
    )


_KINDS: Final[Mapping[str, Callable[[Any, int], object]]] = MappingProxyType(
    {
        "stringValue": _json_text,
        "boolValue": _json_boolean,
        "intValue": _json_integer,
        "doubleValue": _json_number,
        "arrayValue": _json_array,
        "kvlistValue": _json_map,
        "bytesValue": _json_text,
    }
)
