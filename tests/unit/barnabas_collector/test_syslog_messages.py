"""Syslog messages: which are sent together, and their facility and severity."""

from __future__ import annotations

import pytest

from barnabas_collector.syslog_framing import Frame
from barnabas_collector.syslog_messages import SyslogMessages, priority


def whole(text: bytes) -> Frame:
    return Frame(text, len(text))


def test_neighbours_of_one_priority_are_a_bundle_and_what_was_cut_is_its_own() -> None:
    texts = [b"<14>a", b"<14>b", b"<15>c", b"<14>d", b"e", b"f", b"<14>g"]
    frames = [*map(whole, texts), Frame(b"<14>cut", 99), whole(b"<14>h")]
    bundles = [*SyslogMessages("10.0.0.7", "here").of(frames)]
    found = [
        ([*bundle.texts], [value for _, value in bundle.origin.headers[2:]]) for bundle in bundles
    ]
    assert found == [
        ([b"<14>a", b"<14>b"], [b"user", b"info"]),
        ([b"<15>c"], [b"user", b"debug"]),
        ([b"<14>d"], [b"user", b"info"]),
        ([b"e", b"f"], []),
        ([b"<14>g"], [b"user", b"info"]),
        ([b"<14>cut"], [b"user", b"info", b"99"]),
        ([b"<14>h"], [b"user", b"info"]),
    ]
    assert {bundle.origin.key for bundle in bundles} == {b"10.0.0.7"}
    assert [bundle.came_bytes for bundle in bundles if bundle.is_cut] == [99]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"<0>", ("kern", "emerg")),
        (b"<34>1 2026-11-24T00:00:00Z - - - - -", ("auth", "crit")),
        (b"<165>Nov 24 22:14:15 host app: text", ("local4", "notice")),
        (b"<191>", ("local7", "debug")),
        (b"<192>", None),
        (b"<999>", None),
        (b"<034>", None),
        (b"<>", None),
        (b"<1", None),
        (b"< 1>", None),
        (b"text <34>", None),
        (b"", None),
        (b"<\xb2>", None),
    ],
)
def test_the_number_in_brackets(text: bytes, expected: tuple[str, str] | None) -> None:
    assert priority(text) == expected
