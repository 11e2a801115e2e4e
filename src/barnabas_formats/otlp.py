"""Decodes OpenTelemetry logs (OTLP), as written by the Collector's Kafka exporter. Pure.

A record contains an `ExportLogsServiceRequest` (the same bytes as `LogsData`) in protobuf or JSON:
https://opentelemetry.io/docs/specs/otlp/

Senders are not trusted, so everything has a limit (see `otlp_request`). If nothing in a record can
be decoded, `decode` raises `NotOtlp`. If only some of its log records cannot be decoded, they
become a `Letter`: a request with only these log records, which can be sent again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from barnabas_formats.levels import BY_NAME, LEVELS
from barnabas_formats.otlp_json import JsonReader
from barnabas_formats.otlp_protobuf import ProtobufReader
from barnabas_formats.otlp_request import (
    MOST_BYTES,
    MOST_LOG_RECORDS,
    MOST_NAME_LENGTH,
    MOST_RESOURCE_BYTES,
    MOST_TEXT_BYTES,
    OTLP_JSON,
    OTLP_PROTO,
    NotOtlp,
    Place,
    Reader,
    Rejected,
    reject,
)

FORMAT: Final = "otlp"
_LATEST_NS: Final = 2**63 - 1  # the year 2262; later times are negative numbers of senders
_STACK: Final = "exception.stacktrace"
_KEPT: Final = (
    *("service.name", "service.namespace", "service.version", "service.instance.id"),
    *("deployment.environment.name", "deployment.environment", "host.name", "process.pid"),
    *("k8s.cluster.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name", "k8s.pod.uid"),
    *("k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.job.name"),
    *("k8s.cronjob.name", "k8s.container.name", "container.name", "container.id"),
)
_BEGINNING: Final = re.compile(rb'\{\s*"resourceLogs"\s*:')


class Entry(NamedTuple):
    """Holds a log record and the information from its scope and resource. Absent values are None.

    `time_us` and `observed_us` are microseconds since the epoch. `message` is the body: text, or
    JSON for any other value. `more` is a stack trace. `attributes` and `resource` are JSON objects.
    """

    item: int
    """The log record's number in the record, starting at 0."""
    time_us: int | None
    observed_us: int | None
    level: str | None
    message: str
    more: str | None
    host: str | None
    service: str | None
    component: str | None
    pid: str | None
    thread: str | None
    trace_id: str | None
    span_id: str | None
    attributes: str | None
    resource: str | None
    is_text: bool
    """Whether the body is text."""


class Letter(NamedTuple):
    """Holds a record's log records that were rejected for the same reason, as a request."""

    reason: str
    value: bytes
    log_records: int


class Decoded(NamedTuple):
    entries: list[Entry]
    letters: list[Letter]


def decode(value: bytes, encoding: str) -> Decoded:
    """Return the log records of a record in one of `ENCODINGS`.

    Raises `NotOtlp`, or `ConfigError` if the packages that decode protobuf are not installed.
    """
    if len(value) > MOST_BYTES:
        raise NotOtlp(f"the OTLP record is longer than {MOST_BYTES:,} bytes")
    reader = _READERS[encoding]()
    groups = reader.parse(value)
    rejected: dict[str, list[Place]] = {}
    entries = []
    item = 0
    for group in groups:
        resource = _resource(reader, group)
        for scope in reader.scopes(group):
            component = _component(reader, scope, resource)
            for record in reader.records(scope):
                if item == MOST_LOG_RECORDS:
                    raise NotOtlp(f"the OTLP record has more than {item:,} log records")
                found = _entry(reader, record, item, resource, component)
                if isinstance(found, Entry):
                    entries.append(found)
                else:
                    rejected.setdefault(found, []).append(Place(group, scope, record))
                item += 1
    if not item:
        raise NotOtlp("the OTLP record has no log records")
    letters = [
        Letter(reason, reader.request(places), len(places)) for reason, places in rejected.items()
    ]
    return Decoded(entries, letters)


def recognise(value: bytes) -> str | None:
    """Guess the encoding of a record without a header. Return None if the record is a log line."""
    if _BEGINNING.match(value) is not None:
        return OTLP_JSON
    # A line never begins with a line feed, but this byte is also the tag of protobuf's first field.
    # The field's length follows.
    if value[:1] != b"\n":
        return None
    size = shift = 0
    for at, byte in enumerate(value[1:6], 2):
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return OTLP_PROTO if size <= len(value) - at else None
    return None


def check_protobuf() -> None:
    """Raise `ConfigError` if the packages that decode protobuf are not installed."""
    ProtobufReader()


def level_of(number: int, text: str) -> str | None:
    """Return our level for a severity, based on its number or, if there is no number, on
    its text.
    """
    if 1 <= number <= 24:
        return LEVELS[::-1][(number - 1) // 4]
    return BY_NAME.get(text.strip().upper())


class _Resource(NamedTuple):
    """Holds the properties shared by all log records of a resource. `why` is the reason for
    rejecting all of them, if any.
    """

    host: str | None = None
    service: str | None = None
    pid: str | None = None
    text: str | None = None
    why: str | None = None


class _Component(NamedTuple):
    name: str | None = None
    why: str | None = None


def _resource(reader: Reader, group: Any) -> _Resource:
    try:
        sent = reader.resource(group)
        kept = {name: sent[name] for name in _KEPT if sent.get(name) is not None}
        text = _as_json(kept) if kept else None
        if text is not None and _is_longer(text, MOST_RESOURCE_BYTES):
            reject(f"the names in the resource are longer than {MOST_RESOURCE_BYTES:,} bytes")
        return _Resource(
            host=_name(sent, "host.name", "k8s.pod.name"),
            service=_name(sent, "service.name"),
            pid=_name(sent, "process.pid"),
            text=text,
        )
    except Rejected as error:
        return _Resource(why=str(error))


def _component(reader: Reader, scope: Any, resource: _Resource) -> _Component:
    try:
        return _Component(_name({"": reader.scope_name(scope)}, "") or resource.service)
    except Rejected as error:
        return _Component(why=str(error))


def _entry(
    reader: Reader, record: Any, item: int, resource: _Resource, component: _Component
) -> Entry | str:
    """Return the entry, or the reason why the log record is rejected."""
    if (why := resource.why or component.why) is not None:
        return why
    try:
        raw = reader.raw(record)
        attributes = dict(raw.attributes)
        stack = attributes.get(_STACK)
        if isinstance(stack, str):
            del attributes[_STACK]
        body = raw.event if raw.body is None else raw.body
        text = body if isinstance(body, str) else _as_json(body)
        head, _, rest = _bounded(text, "body").partition("\n")
        more = "\n".join(each for each in (rest, stack) if isinstance(each, str) and each)
        return Entry(
            item=item,
            time_us=_time_us(raw.time_ns),
            observed_us=_time_us(raw.observed_ns),
            level=level_of(raw.number, raw.text),
            message=head.rstrip("\r"),
            more=_bounded(more, "stack trace") or None,
            host=_name(attributes, "host.name") or resource.host,
            service=resource.service,
            component=component.name,
            pid=_name(attributes, "process.pid") or resource.pid,
            thread=_name(attributes, "thread.name", "thread.id"),
            trace_id=_identifier(raw.trace_id, 16),
            span_id=_identifier(raw.span_id, 8),
            attributes=_bounded(_as_json(attributes), "attributes") if attributes else None,
            resource=resource.text,
            is_text=isinstance(raw.body, str),
        )
    except Rejected as error:
        return str(error)


def _time_us(time_ns: int) -> int | None:
    """Return microseconds. Zero means that the time is unknown."""
    if not 0 <= time_ns <= _LATEST_NS:
        reject("the log record has an impossible time (otlp)")
    return time_ns // 1_000 or None


def _name(of: Mapping[str, object], *keys: str) -> str | None:
    """Return the first of these values that is suitable as a name."""
    for key in keys:
        value = of.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            text = str(value)
            if len(text) > MOST_NAME_LENGTH:
                reject(f"{key or 'the scope'} is longer than {MOST_NAME_LENGTH:,} characters")
            return text
    return None


def _identifier(value: bytes, size: int) -> str | None:
    """Return an id in hexadecimal. An invalid id is treated as missing (logs.proto)."""
    return value.hex() if len(value) == size and any(value) else None


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _bounded(text: str, what: str) -> str:
    if _is_longer(text, MOST_TEXT_BYTES):
        reject(f"the {what} of the log record is longer than {MOST_TEXT_BYTES:,} bytes")
    return text


def _is_longer(text: str, most_bytes: int) -> bool:
    # Each character has at most four bytes.
    return 4 * len(text) > most_bytes and len(text.encode()) > most_bytes


_READERS: Final[Mapping[str, Callable[[], Reader]]] = MappingProxyType(
    {OTLP_PROTO: ProtobufReader, OTLP_JSON: JsonReader}
)
