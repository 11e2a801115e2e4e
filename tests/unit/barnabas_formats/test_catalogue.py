"""The catalogue's samples have their values, and one format each (SP-2, LG-1)."""

from __future__ import annotations

import pytest

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format, Sample
from tests.kit.effort import rounds
from tests.kit.foreign import CHECKOUT
from tests.kit.pipeline.log_records import parsed

SYSTEM = catalogue("system")


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
    assert of.source.startswith("https://") or (CHECKOUT / of.source).is_file()
    assert len(of.samples) >= 3


def test_no_name_is_there_twice() -> None:
    names = [each.name for each in catalogue()]
    assert len(set(names)) == len(names)


@pytest.mark.thorough
def test_sp_2_no_sample_depends_on_the_order_of_the_formats() -> None:
    """The other way round, each pair of formats is tried in the other order."""
    samples = [(of, sample) for of in SYSTEM for sample in of.samples]
    rows = parsed(*(sample.line for _, sample in samples), formats=SYSTEM[::-1])
    for (of, sample), row in zip(samples, rows, strict=True):
        assert row == {"format": of.name, **sample.values}


@pytest.mark.thorough
@pytest.mark.repeated
def test_sp_2_a_batch_of_one_format_changes_nothing_for_its_other_lines() -> None:
    """Formats that many lines have are tried first."""
    samples = [(of, sample) for of in SYSTEM for sample in of.samples]
    for busy, _ in samples[:: rounds(28, in_soak=7)]:
        lines = [sample.line for sample in busy.samples for _ in range(400)]
        rows = parsed(*(sample.line for _, sample in samples), *lines)
        for (of, sample), row in zip(samples, rows, strict=False):
            assert row == {"format": of.name, **sample.values}


def test_the_page_lists_the_catalogue() -> None:
    text = (CHECKOUT / "docs" / "formats.md").read_text("utf-8")
    rows = [
        f"| `{each.name}` | {each.kind} | [{each.title}]({each.source.removeprefix('docs/')}) |"
        for each in sorted(catalogue(), key=lambda each: (each.kind, each.name))
    ]
    assert "\n".join(["|---|---|---|", *rows, ""]) in text
