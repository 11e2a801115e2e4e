"""OTLP in JSON: what senders write in other ways, and what is no such value (LG-2)."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from barnabas_formats.otlp import Entry, decode
from barnabas_formats.otlp_request import OTLP_JSON, NotOtlp

DEEP = "the objects of the record are nested too deeply"


def decoded(record: dict[str, Any] | str, **group: Any) -> Entry | str:
    """The entry of a log record, or the reason why it was rejected."""
    text = record if isinstance(record, str) else json.dumps(record)
    others = "".join(f'"{name}":{json.dumps(value)},' for name, value in group.items())
    value = f'{{"resourceLogs":[{{{others}"scopeLogs":[{{"logRecords":[{text}]}}]}}]}}'
    found = decode(value.encode(), OTLP_JSON)
    assert len(found.entries) + len(found.letters) == 1
    return found.entries[0] if found.entries else found.letters[0].reason


@pytest.mark.parametrize("time", ["1773136800123456789", 1773136800123456789])
def test_a_time_is_a_text_or_a_number(time: object) -> None:
    entry = decoded({"timeUnixNano": time, "observedTimeUnixNano": "0"})
    assert isinstance(entry, Entry)
    assert (entry.time_us, entry.observed_us) == (1773136800123456, None)


@pytest.mark.parametrize(
    ("trace", "span", "expected"),
    [
        ("5B8EFFF798038103D269B633813FC60C", "EEE19B7EC3C1B174", True),
        ("W47/95gDgQPSabYzgT/GDA==", "7uGbfsPBsXQ=", True),
        ("", "", False),
        ("5b8efff7", "zz" * 8, False),
        ("0" * 32, "0" * 16, False),
        ("ä" * 32, "=", False),
    ],
)
def test_ids_are_in_hexadecimal_or_base64(trace: str, span: str, expected: bool) -> None:
    entry = decoded({"traceId": trace, "spanId": span})
    assert isinstance(entry, Entry)
    found = ("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174")
    assert (entry.trace_id, entry.span_id) == (found if expected else (None, None))


@pytest.mark.parametrize(
    ("number", "level"),
    [
        *((17, "ERROR"), ("17", "ERROR"), (17.0, "ERROR"), (0, None), (None, None)),
        *(("SEVERITY_NUMBER_WARN2", "WARN"), ("SEVERITY_NUMBER_FATAL", "FATAL")),
        ("SEVERITY_NUMBER_UNSPECIFIED", None),
    ],
)
def test_a_severity_is_a_number_or_its_name(number: object, level: str | None) -> None:
    entry = decoded({"severityNumber": number})
    assert isinstance(entry, Entry) and entry.level == level


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"intValue":"-7"}', "-7"),
        ('{"intValue":7}', "7"),
        ('{"doubleValue":"NaN"}', "NaN"),
        ('{"doubleValue":"1.5"}', "1.5"),
        ('{"doubleValue":1e999}', "Infinity"),
        ('{"stringValue":"\\ud83d half"}', "? half"),
        ('{"kvlistValue":{"values":[{"key":"\\udc00"}]}}', '{"?":null}'),
        ('{"arrayValue":{}}', "[]"),
        ('{"unknownValue":1}', ""),
        ("{}", ""),
        ("null", ""),
    ],
)
def test_a_value(body: str, message: str) -> None:
    entry = decoded(f'{{"body":{body}}}')
    assert isinstance(entry, Entry) and entry.message == message


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"timeUnixNano": "soon"}, "timeUnixNano is not an integer"),
        ({"timeUnixNano": True}, "timeUnixNano is not an integer"),
        ({"timeUnixNano": 1.5}, "timeUnixNano is not an integer"),
        ({"timeUnixNano": -1}, "the log record has an impossible time (otlp)"),
        ({"timeUnixNano": "9" * 20}, "the log record has an impossible time (otlp)"),
        ({"severityNumber": "loud"}, "severityNumber is not an integer"),
        ({"severityText": 7}, "severityText is not a text"),
        ({"body": "text"}, "a value is not an object such as stringValue"),
        ({"body": {"stringValue": 7}}, "a value is not a text"),
        ({"body": {"boolValue": "true"}}, "boolValue is neither true nor false"),
        ({"body": {"intValue": 2**63}}, "intValue does not fit into 64 bits"),
        ({"body": {"intValue": "x"}}, "intValue is not an integer"),
        ({"body": {"doubleValue": []}}, "doubleValue is not a number"),
        ({"body": {"doubleValue": "x"}}, "doubleValue is not a number"),
        ({"body": {"arrayValue": []}}, "arrayValue is not an object"),
        ({"body": {"arrayValue": {"values": 1}}}, "values is not a list"),
        ({"attributes": {}}, "attributes is not a list"),
        ({"attributes": [1]}, "an attribute is not an object with key and value"),
        ({"attributes": [{"key": 1}]}, "key is not a text"),
        ({"traceId": 1}, "traceId is not a text"),
    ],
)
def test_lg_2_a_log_record_with_a_wrong_value_is_rejected(
    record: dict[str, Any], reason: str
) -> None:
    assert decoded(record) == reason


def test_lg_2_what_can_just_be_read_but_not_be_written_is_rejected() -> None:
    """Python's decoder allows a little more depth than its encoder, which writes the letter."""
    reasons = set()
    for depth in range(sys.getrecursionlimit() // 2, sys.getrecursionlimit() + 20):
        try:
            reasons.add(decoded(f'{{"traceId":1,"unknown":{"[" * depth}{"]" * depth}}}'))
        except NotOtlp as error:
            reasons.add(str(error))
    assert "traceId is not a text" in reasons
    assert reasons <= {"traceId is not a text", "the record is not JSON in UTF-8", DEEP}


@pytest.mark.parametrize("text", ["ä" * 300_000, "\\ud83d"])
def test_a_letter_is_not_larger_than_its_record(text: str) -> None:
    value = (
        '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":1,"body":{"stringValue":"'
        + text
        + '"}}]}]}]}'
    ).encode()
    (letter,) = decode(value, OTLP_JSON).letters
    assert letter.value == value


def test_a_resource_with_a_wrong_value() -> None:
    assert decoded({}, resource=1) == "resource is not an object"
    assert decoded({}, resource={"attributes": "a"}) == "attributes is not a list"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff", "not JSON in UTF-8"),
        (b'{"resourceLogs":NaN}', "not JSON in UTF-8"),
        (b"[" * 100_000, "not JSON in UTF-8"),
        (b'{"resourceLogs":' + b"9" * 5_000 + b"}", "not JSON in UTF-8"),
        (b"[]", "it has no resourceLogs"),
        (b"{}", "it has no resourceLogs"),
        (b'{"resourceLogs":{}}', "resourceLogs is not a list of objects"),
        (b'{"resourceLogs":[1]}', "resourceLogs is not a list of objects"),
        (b'{"resourceLogs":[{"scopeLogs":[null]}]}', "scopeLogs is not a list of objects"),
        (b'{"resourceLogs":[]}', "no log records"),
    ],
)
def test_lg_2_what_is_no_request(value: bytes, reason: str) -> None:
    with pytest.raises(NotOtlp, match=reason):
        decode(value, OTLP_JSON)
