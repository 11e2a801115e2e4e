"""BT-1, BT-6: each field of an event is checked; what fails is a dead letter with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_track.event_batch import (
    MOST_BODY_BYTES,
    MOST_EVENT_BYTES,
    MOST_EVENTS,
    MOST_LETTER_BYTES,
    NEWEST_MS,
    OLDEST_MS,
    UnreadableBatch,
    check_batch,
    encode,
)

NOW_MS = 1_764_300_000_000
PLAIN = {"id": "event-00000001", "time": NOW_MS, "name": "pageview"}
FULL = {
    **PLAIN,
    "url": "https://shop.example/basket?item=7#top",
    "visitor": "visitor-1234",
    "session": "session_5678",
    "referrer": "",
    "campaign": "spring – sale",
    "screen": "1920x1080",
    "language": "pt-BR",
    "properties": {"price": 9.5, "count": 3, "tags": ["a", {"b": None}], "gift": True},
}
HTML = "<script>alert(1)</script>"

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=30,
)
names = st.sampled_from([*FULL, "other"])


def body(*events: object) -> bytes:
    return json.dumps({"events": events}).encode()


def reason(**fields: Any) -> str | None:
    """Why an event is rejected that is right but for these fields."""
    events, rejected = check_batch(body({**FULL, **fields}), NOW_MS)
    assert len(events) + len(rejected) == 1
    return rejected[0].reason if rejected else None


def test_a_valid_event_stays_as_it_was_sent() -> None:
    events, rejected = check_batch(body(PLAIN, FULL), NOW_MS)
    assert (events, rejected) == ([PLAIN, FULL], [])
    assert json.loads(encode(events[1])) == FULL
    assert check_batch(body(), NOW_MS) == ([], [])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("id", "short", "id: not 8 to 64"),
        ("id", "a" * 65, "id: not 8 to 64"),
        ("id", "event-1\n", "id: not 8 to 64"),
        ("id", 12345678, "id: not 8 to 64"),
        ("visitor", HTML, "visitor: not 8 to 64"),
        ("session", ["session-1"], "session: not 8 to 64"),
        ("time", "now", "time: not a whole number"),
        ("time", True, "time: not a whole number"),
        ("time", 1.5, "time: not a whole number"),
        ("time", -1, "time: more than 30 days ago"),
        ("time", NOW_MS - OLDEST_MS - 1, "time: more than 30 days ago"),
        ("time", NOW_MS + NEWEST_MS + 1, "time: more than 10 minutes ahead"),
        ("time", 10**400, "time: more than 10 minutes ahead"),
        ("name", "", "name: not a printable text"),
        ("name", "a\x1b[31m", "name: not a printable text"),
        ("url", "javascript:alert(1)", "url: not an address"),
        ("url", "https://a b", "url: not an address"),
        ("url", "https://a/\ud800", "url: not an address"),
        ("url", "https://" + "a" * 2_048, "url: not a text of at most"),
        ("referrer", "data:text/html," + HTML, "referrer: not an address"),
        ("campaign", "\x00", "campaign: text with control characters"),
        ("campaign", "\udfff", "campaign: text with control characters"),
        ("campaign", "a" * 1_025, "campaign: not a text of at most"),
        ("screen", "1x2x3", "screen: not WIDTHxHEIGHT"),
        ("language", "<b>", "language: not a language"),
        ("properties", [], "properties: not an object"),
        ("properties", {"a": {"b": {"c": {"d": {}}}}}, "properties: nested more than 4 deep"),
        ("properties", {"a": [0] * 200}, "properties: more than 200 values"),
        ("properties", {"": 1}, "properties: a key is not a printable text"),
        ("properties", {"a": "\x00"}, "properties: a value is text with control characters"),
        ("properties", {"a": 2**53 + 1}, "properties: a number is too large"),
        ("colour", "red", "unknown field; an event may have id, time"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule(field: str, value: object, words: str) -> None:
    found = reason(**{field: value})
    assert found is not None and found.startswith(words)


@pytest.mark.parametrize("field", ["id", "time", "name"])
def test_three_fields_are_required(field: str) -> None:
    event = {name: value for name, value in PLAIN.items() if name != field}
    assert check_batch(body(event), NOW_MS).rejected[0].reason == f"{field}: missing"


def test_times_within_the_bounds_are_accepted() -> None:
    assert reason(time=NOW_MS - OLDEST_MS) is None
    assert reason(time=NOW_MS + NEWEST_MS) is None


def test_html_in_texts_is_only_text() -> None:
    assert reason(campaign=HTML, name=HTML, properties={HTML: HTML}) is None


def test_the_others_of_a_batch_are_unaffected() -> None:
    events, rejected = check_batch(body(PLAIN, 7, None, FULL), NOW_MS)
    assert events == [PLAIN, FULL]
    assert [(each.place, each.reason, each.text) for each in rejected] == [
        (1, "an event is not an object", b"7"),
        (2, "an event is not an object", b"null"),
    ]


def test_a_large_event_is_rejected_and_its_letter_cut() -> None:
    large = {**FULL, "properties": {f"key {number}": "é" * 1_000 for number in range(9)}}
    events, rejected = check_batch(body(large, PLAIN), NOW_MS)
    assert events == [PLAIN]
    assert rejected[0].reason == f"an event may have at most {MOST_EVENT_BYTES:,} bytes"
    assert len(rejected[0].text) == MOST_LETTER_BYTES


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", 'not {"events"'),
        (b'{"events": {}}', 'not {"events"'),
        (b'{"events": [NaN]}', "not JSON"),
        (b'{"events": [' + b"7" * 10_000 + b"]}", "not JSON"),
        (b'{"events": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 20_000, "nested too deeply"),
        (body(*[0] * (MOST_EVENTS + 1)), f"at most {MOST_EVENTS} events"),
        (b" " * (MOST_BODY_BYTES + 1), f"at most {MOST_BODY_BYTES:,} bytes"),
    ],
)
def test_a_body_that_is_no_batch_says_why(sent: bytes, words: str) -> None:
    with pytest.raises(UnreadableBatch, match=words):
        check_batch(sent, NOW_MS)


def test_deep_events_that_json_can_read_are_rejected() -> None:
    for depth in (5, 100, 400):
        nested: object = 0
        for _ in range(depth):
            nested = {"a": nested}
        found = check_batch(body({**PLAIN, "properties": nested}), NOW_MS)
        assert found.rejected[0].reason == "properties: nested more than 4 deep"


@pytest.mark.thorough
@given(st.lists(values | st.fixed_dictionaries(dict.fromkeys(PLAIN, values)), max_size=6))
def test_any_json_is_an_event_or_a_dead_letter(sent: list[object]) -> None:
    try:
        events, rejected = check_batch(body(*sent), NOW_MS)
    except UnreadableBatch:
        return
    assert len(events) + len(rejected) == len(sent)
    assert all(len(each.text) <= MOST_LETTER_BYTES for each in rejected)


@pytest.mark.thorough
@given(names, values)
def test_an_accepted_event_can_be_written_and_read(field: str, value: object) -> None:
    try:
        events, _ = check_batch(body({**FULL, field: value}), NOW_MS)
    except UnreadableBatch:
        return
    for event in events:
        assert json.loads(encode(event)) == event
        assert len(encode(event)) <= MOST_EVENT_BYTES
        assert set(event) <= set(FULL)


@pytest.mark.thorough
@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_read_or_refused(sent: bytes) -> None:
    try:
        found = check_batch(sent, NOW_MS)
    except UnreadableBatch as error:
        assert str(error)
    else:
        assert len(found.events) + len(found.rejected) <= len(sent)
