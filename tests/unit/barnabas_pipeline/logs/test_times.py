"""Times in log lines: zones, fractions, and years that a line does not name (SP-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from barnabas_pipeline.logs.times import instants

SYSLOG = "%b %d %H:%M:%S"


def instant(text: str, form: str, zone: str = "UTC", received: str = "2026-11-24T00:00:00") -> str:
    received_us = int(datetime.fromisoformat(received).replace(tzinfo=UTC).timestamp() * 1e6)
    found = instants(pl.Series([text]), pl.Series([received_us]), form, zone)[0]
    return "" if found is None else datetime.fromtimestamp(found / 1e6, UTC).isoformat()[:-6]


@pytest.mark.parametrize(
    ("text", "received", "expected"),
    [
        ("Dec 31 23:59:59", "2026-01-01T00:00:05", "2025-12-31T23:59:59"),
        ("Jan  1 00:00:01", "2026-01-01T00:00:05", "2026-01-01T00:00:01"),
        ("Jan  1 00:00:01", "2025-12-31T23:59:58", "2026-01-01T00:00:01"),  # clocks differ
        ("Jan  3 00:00:01", "2025-12-31T23:59:58", "2025-01-03T00:00:01"),
        ("Jun 14 15:16:01", "2026-05-01T00:00:05", "2025-06-14T15:16:01"),
        ("Feb 29 10:00:00", "2026-05-01T00:00:05", "2024-02-29T10:00:00"),
        ("Feb 31 10:00:00", "2026-05-01T00:00:05", ""),
    ],
)
def test_sp_2_a_year_that_the_line_does_not_name(text: str, received: str, expected: str) -> None:
    assert instant(text, SYSLOG, received=received) == expected


def test_a_year_across_new_year_in_a_zone() -> None:
    """In Vienna it is the new year an hour before it is in UTC."""
    found = instant("Jan  1 00:10:00", SYSLOG, "Europe/Vienna", received="2025-12-31T23:10:05")
    assert found == "2025-12-31T23:10:00"


@pytest.mark.parametrize(
    ("text", "form", "zone", "expected"),
    [
        ("2015-07-29 17:41:44,747", "%Y-%m-%d %H:%M:%S,%f", "UTC", "2015-07-29T17:41:44.747000"),
        ("2017-05-16 00:00:00.008", "%Y-%m-%d %H:%M:%S.%f", "UTC", "2017-05-16T00:00:00.008000"),
        ("2017-05-16 00:00:00", "%Y-%m-%d %H:%M:%S", "Europe/Vienna", "2017-05-15T22:00:00"),
        (
            "2026-05-01T00:00:05.5+02:00",
            "%Y-%m-%dT%H:%M:%S%f%z",
            "UTC",
            "2026-04-30T22:00:05.500000",
        ),
        ("2026-05-01T00:00:05Z", "%Y-%m-%dT%H:%M:%S%f%z", "Asia/Tokyo", "2026-05-01T00:00:05"),
        ("20171224-0:7:20:444", "%Y%m%d-%H:%M:%S:%f", "UTC", "2017-12-24T00:07:20.444000"),
        ("081109 203518", "%y%m%d %H%M%S", "UTC", "2008-11-09T20:35:18"),
        ("Sun Dec 04 04:47:44 2005", "%a %b %d %H:%M:%S %Y", "UTC", "2005-12-04T04:47:44"),
        ("17/06/09 20:10:40", "%y/%m/%d %H:%M:%S", "UTC", "2017-06-09T20:10:40"),
        ("2026-02-31 10:00:00", "%Y-%m-%d %H:%M:%S", "UTC", ""),
        ("2026-03-29 02:30:00", "%Y-%m-%d %H:%M:%S", "Europe/Vienna", ""),  # left out
        ("2026-10-25 02:30:00", "%Y-%m-%d %H:%M:%S", "Europe/Vienna", "2026-10-25T00:30:00"),
    ],
)
def test_forms_and_zones(text: str, form: str, zone: str, expected: str) -> None:
    assert instant(text, form, zone) == expected


def test_a_time_without_a_date_is_the_last_one_before_the_receipt() -> None:
    received = datetime(2026, 11, 27, 0, 30, tzinfo=UTC)
    texts = ["23:59:59.5", "00:10:00", "01:20:00", "01:40:00", "25:00:00"]
    found = instants(
        pl.Series(texts),
        pl.Series([int(received.timestamp() * 1e6)] * len(texts)),
        "%H:%M:%S%f",
        "UTC",
    )
    assert [None if us is None else datetime.fromtimestamp(us / 1e6, UTC) for us in found] == [
        datetime(2026, 11, 26, 23, 59, 59, 500_000, UTC),
        datetime(2026, 11, 27, 0, 10, tzinfo=UTC),
        datetime(2026, 11, 27, 1, 20, tzinfo=UTC),
        datetime(2026, 11, 26, 1, 40, tzinfo=UTC),
        None,
    ]


def test_names_of_zones_and_offsets_without_minutes() -> None:
    """A name that means several offsets leaves the zone of the format."""
    texts = ["10:00:00 UTC", "10:00:00 CET", "10:00:00 IST", "10:00:00 +05", "10:00:00 -03:30"]
    found = instants(
        pl.Series([f"2026-03-10 {each}" for each in texts]),
        pl.Series([0] * len(texts)),
        "%Y-%m-%d %H:%M:%S%f %Z",
        "Asia/Kolkata",
    )
    at = [datetime.fromtimestamp(us / 1e6, UTC).strftime("%H:%M") for us in found]
    assert at == ["10:00", "09:00", "04:30", "05:00", "13:30"]
