"""The catalogue's samples have their values, and one format each (SP-2, LG-1)."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format, Sample
from barnabas_pipeline.logs.log_lines import parse_lines, values

RECEIVED_US = int(datetime(2026, 11, 24, tzinfo=UTC).timestamp() * 1e6) + 1
SYSTEM = catalogue("system")


def parsed(*lines: str, formats: tuple[Format, ...] = SYSTEM) -> list[dict[str, object]]:
    count = len(lines)
    rows = parse_lines(
        pl.Series([line.encode() for line in lines]),
        pl.Series([False] * count),
        pl.Series([RECEIVED_US] * count),
        formats,
    )
    return [values(row, RECEIVED_US) for row in rows.to_dicts()]


@pytest.mark.parametrize(
    ("of", "sample"),
    [
        pytest.param(of, sample, id=f"{of.name}-{number}")
        for of in SYSTEM
        for number, sample in enumerate(of.samples)
    ],
)
def test_lg_1_a_sample_has_its_values(of: Format, sample: Sample) -> None:
    assert parsed(sample.line) == [{"format": of.name, **sample.values}]


@pytest.mark.parametrize("of", catalogue(), ids=lambda of: of.name)
def test_lg_1_a_format_has_a_source_and_three_samples(of: Format) -> None:
    assert of.title
    assert of.source.startswith("https://")
    assert len(of.samples) >= 3


def test_no_name_is_there_twice() -> None:
    names = [each.name for each in catalogue()]
    assert len(set(names)) == len(names)


def test_sp_2_no_other_format_takes_a_sample_with_other_columns() -> None:
    """However the formats are ordered, except that loose patterns come last."""
    for other in SYSTEM:
        strict = tuple(each for each in other.patterns if not each.is_loose)
        samples = [sample for of in SYSTEM if of is not other for sample in of.samples]
        found = parsed(*(each.line for each in samples), formats=(other._replace(patterns=strict),))
        for sample, row in zip(samples, found, strict=True):
            assert row["format"] == "raw" or row == {"format": other.name, **sample.values}
