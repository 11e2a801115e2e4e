"""Facility and severity of a message of syslog."""

from __future__ import annotations

import pytest

from barnabas_collector.syslog_priority import priority


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
