"""Defines an OTLP log request and its limits, independently of its encoding. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Protocol

OTLP_PROTO: Final = "otlp_proto"
OTLP_JSON: Final = "otlp_json"
ENCODINGS: Final = (OTLP_PROTO, OTLP_JSON)
"""The encodings, named as by the Collector's Kafka exporter."""
ENCODING: Final = "otlp.encoding"
"""The header that contains the name of a record's encoding."""

MOST_BYTES: Final = 1_048_576
"""The maximum size of a record, uncompressed."""
MOST_LOG_RECORDS: Final = 50_000
"""The maximum number of log records in a record."""
MOST_ATTRIBUTES: Final = 1_000
"""The maximum number of attributes of a log record, and of a resource."""
MOST_DEPTH: Final = 20
"""The maximum nesting depth of arrays and maps."""
MOST_TEXT_BYTES: Final = 262_144
"""The maximum size of a body, and of a log record's attributes as JSON. Lines have the same
limit."""
MOST_NAME_LENGTH: Final = 1_024
"""The maximum length, in characters, of the name of a component, host, service, process or
thread."""
MOST_RESOURCE_BYTES: Final = 4_096
"""The maximum size of `Entry.resource`, which every log record of a resource repeats."""


class NotOtlp(ValueError):
    """Raised if nothing in a record can be decoded. The text gives the reason."""


class Rejected(Exception):
    """The reason for rejecting a log record, scope or resource."""


class Place(NamedTuple):
    group: Any
    scope: Any
    record: Any


class Raw(NamedTuple):
    """Holds a log record as sent. The body and the attributes' values are JSON values."""

    time_ns: int
    observed_ns: int
    number: int
    text: str
    body: object
    attributes: dict[str, object]
    trace_id: bytes
    span_id: bytes
    event: str


class Reader(Protocol):
    """Reads requests in one encoding. A group is a `ResourceLogs`."""

    def parse(self, value: bytes) -> Sequence[Any]: ...

    def scopes(self, group: Any) -> Sequence[Any]: ...

    def records(self, scope: Any) -> Sequence[Any]: ...

    def resource(self, group: Any) -> Mapping[str, object]: ...

    def scope_name(self, scope: Any) -> str: ...

    def raw(self, record: Any) -> Raw: ...

    def request(self, places: Sequence[Place]) -> bytes:
        """Return a request with these log records, each within its scope and resource."""
        ...


def reject(why: str) -> NoReturn:
    raise Rejected(why)


def deeper(depth: int) -> int:
    if depth == MOST_DEPTH:
        reject(f"a value of the log record is nested more than {MOST_DEPTH} deep")
    return depth + 1


def attributes_of(pairs: Iterable[tuple[str, object]], count: int) -> dict[str, object]:
    if count > MOST_ATTRIBUTES:
        reject(f"there are more than {MOST_ATTRIBUTES:,} attributes")
    return dict(pairs)


def finite(value: float) -> object:
    """Return a number as a JSON value. As in protobuf's JSON, infinity and NaN become strings."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def by_group(places: Sequence[Place]) -> Iterator[tuple[Any, list[tuple[Any, list[Any]]]]]:
    """Yield each resource of these log records, with its scopes and their log records."""
    group: Any = None
    scopes: list[tuple[Any, list[Any]]] = []
    for each in places:
        if each.group is not group:
            if scopes:
                yield group, scopes
            group, scopes = each.group, []
        if not scopes or scopes[-1][0] is not each.scope:
            scopes.append((each.scope, []))
        scopes[-1][1].append(each.record)
    if scopes:
        yield group, scopes
