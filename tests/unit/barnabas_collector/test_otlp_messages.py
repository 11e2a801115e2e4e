"""LG-2: requests of OTLP become records that are requests again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas_collector.otlp_messages import (
    MALFORMED,
    MOST_RESOURCES,
    TOO_LARGE,
    Refusal,
    messages,
    parse,
    replace_secrets,
)

pytest.importorskip("opentelemetry.proto", reason="needs opentelemetry-proto")

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)


def request(counts: dict[str, list[int]], body: str = "text") -> ExportLogsServiceRequest:
    """By resource: the number of log records in each scope."""
    made = ExportLogsServiceRequest()
    number = 0
    for name, scopes in counts.items():
        group = made.resource_logs.add(schema_url="of the resource")
        group.resource.attributes.add(key="service.name").value.string_value = name
        for scope_number, count in enumerate(scopes):
            scope = group.scope_logs.add(schema_url="of the scope")
            scope.scope.name = f"scope {scope_number}"
            for _ in range(count):
                scope.log_records.add(time_unix_nano=number).body.string_value = body
                number += 1
    return made


def flat(groups: Any) -> list[tuple[str, str, str, str, int]]:
    return [
        (
            group.resource.attributes[0].value.string_value,
            group.schema_url,
            scope.scope.name,
            scope.schema_url,
            record.time_unix_nano,
        )
        for group in groups
        for scope in group.scope_logs
        for record in scope.log_records
    ]


@pytest.mark.parametrize("most_bytes", [300, 1_000, 5_000, 1_000_000])
def test_a_resource_is_divided_if_it_is_too_large_and_nothing_else_changes(
    most_bytes: int,
) -> None:
    given = request({"one": [3, 0, 40], "none": [0], "two": [1, 1, 30]})
    made = list(messages(given, most_bytes))
    found = [ExportLogsServiceRequest.FromString(each.value) for each in made]
    assert flat(given.resource_logs) == [row for each in found for row in flat(each.resource_logs)]
    assert all(len(each.value) <= most_bytes for each in made)
    assert [each.log_records for each in made] == [len(flat(each.resource_logs)) for each in found]
    assert all(len(each.resource_logs) == 1 for each in found)
    assert len({each.key for each in made}) == 2
    assert (len(made) == 2) == (most_bytes >= 1_000)


def test_a_log_record_that_is_too_large_alone_is_alone() -> None:
    (first, second) = messages(request({"one": [2]}, "x" * 1_000), 500)
    assert first.log_records == second.log_records == 1 and len(first.value) > 1_000


def test_a_resource_that_each_part_would_repeat_has_a_limit() -> None:
    given = request({"one": [2]}, "x" * 100_000)
    given.resource_logs[0].resource.attributes[0].value.string_value = "x" * 200_000
    assert len(list(messages(given))) == 1
    with pytest.raises(Refusal, match="a resource has 200,") as caught:
        list(messages(given, 300_000))
    assert caught.value.reason == TOO_LARGE


def test_json_is_the_same_request() -> None:
    record = {
        "timeUnixNano": "17",
        "observedTimeUnixNano": 18,
        "severityNumber": 13,
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "eee19b7ec3c1b174",
        "body": {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "5"}}]}},
        "attributes": [{"key": "raw", "value": {"bytesValue": "AAE="}}],
        "ofTheFuture": [1],
    }
    content = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    made = parse(json.dumps(content).encode(), is_json=True)
    (found,) = made.resource_logs[0].scope_logs[0].log_records
    assert (found.time_unix_nano, found.observed_time_unix_nano) == (17, 18)
    assert found.trace_id.hex() == "5b8efff798038103d269b633813fc60c"
    assert found.span_id.hex() == "eee19b7ec3c1b174"
    assert found.body.kvlist_value.values[0].value.int_value == 5
    assert found.attributes[0].value.bytes_value == b"\0\1"
    assert parse(made.SerializeToString(), is_json=False) == made


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"\xff{}",
        b'{"resourceLogs": 1}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "xyz"}]}]}]}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"spanId": 7}]}]}]}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [7]}]}]}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "now"}]}]}]}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": 1e99}]}]}]}',
        b'{"a":' * 100_000,
    ],
)
def test_malformed_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal, match="not a valid OTLP request in JSON") as caught:
        parse(body, is_json=True)
    assert caught.value.reason == MALFORMED


def test_ux_4_a_long_reason_ends_with_a_whole_word() -> None:
    name = " ".join(["word"] * 200)
    body = b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "%s"}]}]}]}'
    with pytest.raises(Refusal) as caught:
        parse(body % name.encode(), is_json=True)
    assert str(caught.value).endswith(" word ...")
    assert len(str(caught.value)) < 400


def test_malformed_protobuf_is_refused() -> None:
    for body in (b"\x0a\x05", b"\x07", b"\x0a\x01\xff", b"{}"):
        with pytest.raises(Refusal) as caught:
            parse(body, is_json=False)
        assert caught.value.reason == MALFORMED


def test_resources_have_a_limit() -> None:
    with pytest.raises(Refusal) as caught:
        parse(b"\x0a\x00" * (MOST_RESOURCES + 1), is_json=False)
    assert caught.value.reason == TOO_LARGE


def test_secrets_are_replaced_at_any_depth() -> None:
    made = request({"secret": [1]}, "a secret body")
    scope = made.resource_logs[0].scope_logs[0]
    scope.scope.attributes.add(key="secret").value.string_value = "secret"
    (record,) = scope.log_records
    value = record.attributes.add(key="a").value
    value.kvlist_value.values.add(key="b").value.array_value.values.add().string_value = "secret"
    record.attributes.add(key="c").value.bytes_value = b"\xffsecret"
    record.attributes.add(key="d").value.int_value = 5
    replace_secrets(made, lambda text: text.replace(b"secret", b"***"))
    text = made.SerializeToString()
    assert text.count(b"***") == 5
    assert text.count(b"secret") == 1, "a name"
