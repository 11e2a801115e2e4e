"""What lines become is what the jobs make of them, sample by sample (LG-1)."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from barnabas_collector.line_cutter import Line
from barnabas_formats.catalogue import KINDS, catalogue
from barnabas_pipeline.trial import Trial


@pytest.mark.parametrize("kind", KINDS)
def test_lg_1_each_sample_has_its_values(kind: str) -> None:
    samples = [(of.name, each) for of in catalogue(kind) for each in of.samples]
    lines = [
        Line(0, number, each.line.encode(), len(each.line.encode()))
        for number, (_, each) in enumerate(samples)
    ]
    found = Trial(kind, (), catalogue()).try_lines(lines)
    for (name, sample), tried in zip(samples, found, strict=True):
        expected = {"format": name, **sample.values}
        # Times without a year are of this year, or of the last one; those without a date are
        # of the day.
        for shown in (expected, tried.values):
            if "time" in shown:
                shown["time"] = str(shown["time"])[5:]
        if name not in ("syslog", "klog", "logback", "dotnet"):
            assert tried.values == expected


@pytest.mark.thorough
def test_ux_4_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    line = "2026-03-10 10:00:00,000 INFO [main] a.B: " + "x" * 1_500
    path.write_text(f"{line}\n" * 12_000)
    trial = Trial("system", (), catalogue())
    tracemalloc.start()
    assert sum(1 for _ in trial.try_file(str(path))) == 12_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size
