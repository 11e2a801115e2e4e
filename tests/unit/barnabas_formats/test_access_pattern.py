"""The notation of a user's own formats of access logs (LG-1, UX-4)."""

from __future__ import annotations

import re

import pytest

from barnabas.errors import ConfigError
from barnabas_formats.access_pattern import compile_access_pattern

TIME = "{time:%d/%b/%Y:%H:%M:%S %z}"
NEEDED = f"{{client}} {TIME} {{status}}"


def test_lg_1_the_columns_of_a_pattern() -> None:
    found = compile_access_pattern(f'{{_}} {NEEDED} "{{request}}" {{_}} "{{agent}}"')
    assert found.columns == ("client", "time", "status", "request", "agent")
    assert len(found.groups) == len(set(found.groups)) == 7
    assert found.quoted == {"request", "agent"}
    assert found.time_form == "%d/%b/%Y:%H:%M:%S %z"


def test_lg_1_an_ignored_column_between_quotes() -> None:
    found = compile_access_pattern(f'{NEEDED} "{{request}}" "{{_}}"')
    assert found.quoted == {"request"}, "an ignored column has no name"


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (f"{NEEDED} {{request}} {{refferer}}", "refferer: no such field of an access log"),
        (f"{NEEDED} {{request}} {{refferer}}", "{_} for a column to be ignored"),
        (f"{{client}} {TIME} {{request}}", "an access log needs status"),
        ("{request} {status}", "an access log needs client, time"),
        (f"{NEEDED} {{method}}", "needs path; request, a whole request line, replaces method"),
        (f"{NEEDED} {{request}} {{method}}", "request already contains method"),
        (
            f"{NEEDED} {{request}} {{response_time_ms}} {{response_time_s}}",
            "response_time_ms, response_time_s: a line can have only one response time",
        ),
        (f"{NEEDED} {{request}} {{client}}", "{client} occurs twice"),
        (f"{NEEDED} {{request:%d}}", "only {time:...} may have a format"),
        (
            "{client} {time} {status} {request}",
            "{time} has no format; add one, such as {time:%d/%b/%Y",
        ),
        ("{client} {time:%H:%M:%S} {status} {request}", "needs a year, a month and a day"),
        ("{client} {time:%b %d %H:%M:%S} {status} {request}", "needs a year, a month and a day"),
        ("{client} {time:%Y-%m-%d %H:%M:%S %Z} {status} {request}", "but no %Z"),
        ("{client} {time:%z %Y-%m-%d %H:%M:%S} {status} {request}", "may have %z at its end"),
        (f"{NEEDED} {{request}} {{", "'{' belongs to no field; write {{ for a brace"),
        (
            f"{NEEDED} {{request}} {{Bytes}}",
            "{Bytes} is not a field: a name consists of lower-case",
        ),
        (f"{NEEDED} {{request}} {{Bytes}}", "write {bytes}, or {{Bytes}} for these characters"),
        (f"{NEEDED} {{request}} {{cs-host}}", "write {cs_host}, or {{cs-host}} for"),
        (f"{NEEDED} {{request}} {{refferer}}", "; refferer: did you mean referrer?"),
        (f"{NEEDED} {{request}} {{http_user_agent}}", "; http_user_agent: write agent"),
        (f"{NEEDED} {{request}} $body_bytes_sent", "write either only variables or only fields"),
    ],
)
def test_ux_4_what_is_wrong_with_a_pattern(pattern: str, what: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(what)):
        compile_access_pattern(pattern)
