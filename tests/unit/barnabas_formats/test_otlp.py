"""OpenTelemetry's log records as entries, and what of them is rejected (LG-2)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from barnabas_formats.otlp import Entry, decode, level_of, recognise
from barnabas_formats.otlp_request import (
    MOST_ATTRIBUTES,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_LOG_RECORDS,
    MOST_NAME_LENGTH,
    MOST_RESOURCE_BYTES,
    MOST_TEXT_BYTES,
    OTLP_JSON,
    OTLP_PROTO,
    NotOtlp,
)
from tests.kit.pipeline.otlp_requests import AT_NS, AT_US, as_json, in_both, request

# What the Collector's own marshalers (pdata 1.71.0) wrote of the same two log records.
COLLECTOR_JSON = (
    r'{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringVa'
    r'lue":"shop"}},{"key":"host.name","value":{"stringValue":"gate"}}]},"scopeLogs":[{"sc'
    r'ope":{"name":"shop.Checkout","version":"1.2"},"logRecords":[{"timeUnixNano":"1773136'
    r'800123456789","observedTimeUnixNano":"1773136801000000000","severityNumber":17,"seve'
    r'rityText":"ERROR","body":{"stringValue":"order 7 failed"},"attributes":[{"key":"orde'
    r'r.id","value":{"intValue":"7"}},{"key":"share","value":{"doubleValue":"NaN"}},{"key"'
    r':"low","value":{"doubleValue":"-Infinity"}},{"key":"paid","value":{"boolValue":false'
    r'}},{"key":"raw","value":{"bytesValue":"AP8="}},{"key":"empty","value":{}}],"flags":1'
    r',"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"},{"body":{'
    r'"kvlistValue":{"values":[{"key":"big","value":{"intValue":"9223372036854775807"}},{"'
    r'key":"list","value":{"arrayValue":{"values":[{"stringValue":"ä"},{"doubleValue":1.5}'
    r',{}]}}}]}},"eventName":"cart.closed"}]}],"schemaUrl":"https://opentelemetry.io/schem'
    r'as/1.26.0"}]}'
)
COLLECTOR_PROTO = bytes.fromhex(
    "0ae5021a2768747470733a2f2f6f70656e74656c656d657472792e696f2f736368656d61732f312e3236"
    "2e30128a0212a8015208eee19b7ec3c1b1744a105b8efff798038103d269b633813fc60c450100000032"
    "0e120218070a086f726465722e69643212120921010000000000f87f0a05736861726532101209210000"
    "00000000f0ff0a036c6f77320a120210000a0470616964320b12043a0200ff0a03726177320912000a05"
    "656d7074792a100a0e6f726465722037206661696c65641a054552524f52101159000ac7a986729b1809"
    "150d887586729b181247620b636172742e636c6f73656452004a002a3432320a11120a18ffffffffffff"
    "ffff7f0a036269670a1d12152a130a040a02c3a40a0921000000000000f83f0a000a046c6973740a1412"
    "03312e320a0d73686f702e436865636b6f75740a2d0a1612060a0473686f700a0c736572766963652e6e"
    "616d650a1312060a04676174650a09686f73742e6e616d65"
)
TRACE, SPAN = bytes(range(16)), bytes(range(1, 9))


def test_lg_2_a_log_record_with_what_its_resource_and_scope_say() -> None:
    decoded = in_both(
        request(
            {
                "time_unix_nano": AT_NS,
                "observed_time_unix_nano": AT_NS + 5_000_000,
                "severity_number": 18,
                "severity_text": "whatever",
                "body": "order 7 failed\n\tat shop.Run",
                "attributes": {
                    "order.id": 7,
                    "exception.stacktrace": "shop.Failure: 7\n\tat shop.Checkout",
                    "thread.name": "main",
                },
                "trace_id": TRACE,
                "span_id": SPAN,
            },
            resource={
                "service.name": "shop",
                "host.name": "gate",
                "k8s.pod.name": "shop-7",
                "process.pid": 42,
                "telemetry.sdk.name": "opentelemetry",
            },
            scope="shop.Checkout",
        )
    )
    assert decoded.letters == []
    assert decoded.entries == [
        Entry(
            item=0,
            time_us=AT_US,
            observed_us=AT_US + 5_000,
            level="ERROR",
            message="order 7 failed",
            more="\tat shop.Run\nshop.Failure: 7\n\tat shop.Checkout",
            host="gate",
            service="shop",
            component="shop.Checkout",
            pid="42",
            thread="main",
            trace_id=TRACE.hex(),
            span_id=SPAN.hex(),
            attributes='{"order.id":7,"thread.name":"main"}',
            resource='{"host.name":"gate","k8s.pod.name":"shop-7","process.pid":42,"service.name":"shop"}',
            is_text=True,
        )
    ]


def test_what_is_absent() -> None:
    (entry,) = in_both(request({})).entries
    assert entry == Entry(0, None, None, None, "", *[None] * 10, is_text=False)
    (entry,) = in_both(
        request(
            {"event_name": "cart.emptied", "trace_id": bytes(16), "span_id": b"short"},
            resource={"service.name": "shop", "k8s.pod.name": "shop-7"},
        )
    ).entries
    assert (entry.message, entry.component, entry.host) == ("cart.emptied", "shop", "shop-7")
    assert (entry.trace_id, entry.span_id) == (None, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("text", "text"),
        (True, "true"),
        (-(2**63), str(-(2**63))),
        (2**63 - 1, str(2**63 - 1)),
        (0.5, "0.5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (b"\x00\xff", "AP8="),
        ([1, "a", None, [False]], '[1,"a",null,[false]]'),
        ({"b": 1, "a": {"c": float("inf")}}, '{"a":{"c":"Infinity"},"b":1}'),
        ("ä\u2028", "ä\u2028"),
    ],
)
def test_a_body_of_any_kind(body: Any, message: str) -> None:
    (entry,) = in_both(request({"body": body, "attributes": {"is": body}})).entries
    assert entry.message == message
    assert entry.attributes is not None
    value = json.loads(entry.attributes)["is"]
    assert (value if isinstance(value, str) else entry.attributes[len('{"is":') : -1]) == message


def test_lg_2_what_the_collector_itself_writes() -> None:
    first = Entry(
        item=0,
        time_us=AT_US,
        observed_us=1_773_136_801_000_000,
        level="ERROR",
        message="order 7 failed",
        more=None,
        host="gate",
        service="shop",
        component="shop.Checkout",
        pid=None,
        thread=None,
        trace_id="5b8efff798038103d269b633813fc60c",
        span_id="eee19b7ec3c1b174",
        attributes='{"empty":null,"low":"-Infinity","order.id":7,"paid":false,"raw":"AP8=","share":"NaN"}',
        resource='{"host.name":"gate","service.name":"shop"}',
        is_text=True,
    )
    message = '{"big":9223372036854775807,"list":["ä",1.5,null]}'
    second = first._replace(item=1, message=message, is_text=False)
    second = second._replace(
        **dict.fromkeys(("time_us", "observed_us", "level", "trace_id", "span_id", "attributes"))
    )
    for value, encoding in ((COLLECTOR_JSON.encode(), OTLP_JSON), (COLLECTOR_PROTO, OTLP_PROTO)):
        assert decode(value, encoding) == ([first, second], [])
        assert recognise(value) == encoding


@pytest.mark.parametrize(
    ("number", "text", "level"),
    [
        (1, "", "TRACE"),
        (4, "x", "TRACE"),
        (5, "ERROR", "DEBUG"),
        (12, "", "INFO"),
        (13, "", "WARN"),
        (20, "", "ERROR"),
        (24, "", "FATAL"),
        (0, "Warning", "WARN"),
        (25, "crit", "FATAL"),
        (-1, "", None),
        (0, "loud", None),
    ],
)
def test_levels(number: int, text: str, level: str | None) -> None:
    assert level_of(number, text) == level


def deep(levels: int, inner: Any = "x") -> Any:
    for number in range(levels):
        inner = [inner] if number % 2 else {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("fields", "resource", "scope", "reason"),
    [
        ({"time_unix_nano": 2**63}, {}, "", "has an impossible time"),
        ({"observed_time_unix_nano": 2**64 - 1}, {}, "", "has an impossible time"),
        ({"body": deep(MOST_DEPTH + 1)}, {}, "", "nested more than 20 deep"),
        ({"attributes": {"a": deep(MOST_DEPTH + 1)}}, {}, "", "nested more than 20 deep"),
        (
            {"attributes": {str(n): n for n in range(MOST_ATTRIBUTES + 1)}},
            *({}, "", "more than 1,000 attributes"),
        ),
        (
            {"body": "ä" * (MOST_TEXT_BYTES // 2 + 1)},
            {},
            "",
            "the body of the log record is longer",
        ),
        ({"attributes": {"a": "a" * MOST_TEXT_BYTES}}, {}, "", "the attributes of the log record"),
        ({}, {"host.name": "h" * (MOST_NAME_LENGTH + 1)}, "", "host.name is longer than 1,024"),
        ({}, {}, "s" * (MOST_NAME_LENGTH + 1), "the scope is longer than 1,024 characters"),
        (
            *({}, {"k8s.pod.uid": "u" * MOST_RESOURCE_BYTES}, ""),
            "the names in the resource are longer than 4,096 bytes",
        ),
        ({}, {str(n): n for n in range(MOST_ATTRIBUTES + 1)}, "", "more than 1,000 attributes"),
    ],
)
def test_lg_2_only_the_log_record_beyond_a_limit_is_rejected(
    fields: dict[str, Any], resource: dict[str, Any], scope: str, reason: str
) -> None:
    sent = request({"body": "before"}, resource={"service.name": "shop"})
    request(fields, resource=resource, scope=scope, into=sent)
    request({"body": "after"}, into=sent)
    decoded = in_both(sent)
    assert [(each.item, each.message) for each in decoded.entries] == [(0, "before"), (2, "after")]
    (letter,) = decoded.letters
    assert reason in letter.reason and letter.log_records == 1
    # The letter is a request with just that log record, and is rejected for the same reason.
    only = LogsData.FromString(letter.value)
    assert list(only.resource_logs) == [sent.resource_logs[1]]
    again = decode(letter.value, OTLP_PROTO)
    assert again.entries == [] and again.letters == [letter]
    (in_json,) = decode(as_json(sent), OTLP_JSON).letters
    assert decode(in_json.value, OTLP_JSON).letters == [in_json]


def test_what_is_exactly_at_a_limit_is_an_entry() -> None:
    decoded = in_both(
        request(
            {"time_unix_nano": 2**63 - 1, "body": "b" * MOST_TEXT_BYTES},
            {"body": deep(MOST_DEPTH), "attributes": {str(n): n for n in range(MOST_ATTRIBUTES)}},
            resource={"host.name": "h" * MOST_NAME_LENGTH},
            scope="s" * MOST_NAME_LENGTH,
        )
    )
    assert len(decoded.entries) == 2


def test_lg_2_log_records_rejected_for_one_reason_are_one_letter() -> None:
    sent = LogsData()
    for number in range(6):
        late = {"time_unix_nano": 2**63, "body": str(number)}
        request({"body": "good"}, late, {"body": deep(21)}, into=sent, scope=str(number % 2))
    decoded = in_both(sent)
    assert len(decoded.entries) == 6
    assert [each.log_records for each in decoded.letters] == [6, 6]


@pytest.mark.parametrize("encoding", [OTLP_PROTO, OTLP_JSON])
def test_lg_2_a_whole_record_is_rejected(encoding: str) -> None:
    whole = {OTLP_PROTO: LogsData.SerializeToString, OTLP_JSON: as_json}[encoding]

    def reason(value: bytes) -> str:
        with pytest.raises(NotOtlp) as caught:
            decode(value, encoding)
        return str(caught.value)

    assert (
        reason(b"a line")
        == {
            OTLP_PROTO: "the record is not an OTLP request in protobuf",
            OTLP_JSON: "the record is not JSON in UTF-8",
        }[encoding]
    )
    assert "no log records" in reason(whole(request()))
    assert "longer than 1,048,576 bytes" in reason(bytes(MOST_BYTES + 1))
    many = request(*[{} for _ in range(MOST_LOG_RECORDS)])
    assert len(decode(whole(many), encoding).entries) == MOST_LOG_RECORDS
    many.resource_logs[0].scope_logs[0].log_records.add()
    assert "more than 50,000 log records" in reason(whole(many))


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_rejected(value: bytes) -> None:
    for encoding, sent in ((OTLP_PROTO, value), (OTLP_JSON, b'{"resourceLogs":' + value)):
        try:
            decode(sent, encoding)
        except NotOtlp as error:
            assert "the" in str(error)


@given(st.data())
def test_any_damage_to_a_request_is_decoded_or_rejected(data: st.DataObject) -> None:
    sent = request(
        {"time_unix_nano": AT_NS, "severity_number": 9, "body": {"a": [1, "ä", b"x"]}},
        resource={"service.name": "shop"},
        scope="a.B",
    )
    for encoding, value in ((OTLP_PROTO, sent.SerializeToString()), (OTLP_JSON, as_json(sent))):
        at = data.draw(st.integers(0, len(value) - 1))
        damaged = value[:at] + data.draw(st.binary(max_size=3)) + value[at + 1 :]
        try:
            for entry in decode(damaged, encoding).entries:
                entry.message.encode()
        except NotOtlp as error:
            assert "record" in str(error)


def test_a_record_without_a_header_is_recognised() -> None:
    sent = request({"body": "x" * 300}, scope="s")
    assert recognise(sent.SerializeToString()) == OTLP_PROTO
    assert recognise(as_json(sent)) == OTLP_JSON
    assert recognise(b'{\n "resourceLogs" :[]}') == OTLP_JSON
    lines = (b"", b"\n", b"\n\x05ab", b"\n\xff\xff\xff\xff\xff\xff", b'{"a":"resourceLogs"}', b"a")
    assert [recognise(each) for each in lines] == [None] * len(lines)


def test_without_the_package_json_is_decoded_and_protobuf_says_what_to_install() -> None:
    script = """
import sys
sys.modules["google.protobuf.message"] = None
from barnabas.errors import ConfigError
from barnabas_formats.otlp import check_protobuf, decode
assert decode(b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}', "otlp_json").entries
try:
    check_protobuf()
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "to decode otlp_proto: pip install" in done.stdout
    assert "opentelemetry-proto" in done.stdout
