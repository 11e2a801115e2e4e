"""Times as they are typed."""

from __future__ import annotations

import pytest

from barnabas.cli.groups.instants import BadInstant, moment_ms

NOW_MS = 1_760_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("now", NOW_MS),
        ("-500ms", NOW_MS - 500),
        ("-45s", NOW_MS - 45_000),
        ("-90m", NOW_MS - 5_400_000),
        ("-1h", NOW_MS - 3_600_000),
        ("-2d", NOW_MS - 172_800_000),
        ("-1w", NOW_MS - 604_800_000),
        ("-PT1H30M", NOW_MS - 5_400_000),
        ("-999999999w", 0),
        ("2026-01-01T00:00", 1_767_225_600_000),
        ("2026-01-01T01:00+01:00", 1_767_225_600_000),
        ("2026-01-01", 1_767_225_600_000),
        ("1767225600000", 1_767_225_600_000),
    ],
)
def test_a_moment(text: str, expected_ms: int) -> None:
    assert moment_ms(text, NOW_MS) == expected_ms


@pytest.mark.parametrize("text", ["", "yesterday", "1h", "-1", "-1y", "-P1Y", "2026-13-01", "5"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(BadInstant, match="such as"):
        moment_ms(text, NOW_MS)
