"""The model of system logs: its figures, its rows, and its search, beside plain Python."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import read_figures
from barnabas_pipeline.logs.generator import generate
from barnabas_pipeline.logs.headlines import headlines
from barnabas_pipeline.pages.filters import Filters, parse
from barnabas_pipeline.pages.log_model import LogModel, read_log_model
from barnabas_pipeline.pages.shapes import Rows
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline.log_records import records, send, write


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the generated logs, in two batches."""
    directory = tmp_path_factory.mktemp("of-logs") / "tables"
    files = sorted(generate(6_000, seed=11).items())
    written = Tables(directory, LOGS)
    for number, part in enumerate((files[::2], files[1::2])):
        batch = [records(name, each, at) for at, (name, each) in enumerate(part)]
        write(written, number, pa.concat_tables(batch), send)
    return directory


@pytest.fixture(scope="module")
def model(tables: Path) -> LogModel:
    return read_log_model(Snapshot(tables, LOGS), 1, show_addresses=True)


def rows_of(model: LogModel, query: str) -> Rows:
    pairs = parse_qsl(query, keep_blank_values=True)
    names = [each["name"] for each in model.site["dimensions"]]
    return model.rows(parse(pairs, names), dict(pairs))


def test_without_filters_the_headlines_are_those_of_the_static_page(
    tables: Path, model: LogModel
) -> None:
    expected = headlines(read_figures(Snapshot(tables, LOGS), show_addresses=True))
    found = model.answer(Filters())["headlines"]
    assert [(each["name"], each["value"]) for each in found] == [
        (each.name, each.total) for each in expected
    ]


def test_pages_of_rows_follow_each_other_until_the_oldest(model: LogModel) -> None:
    seen: list[str] = []
    before = ""
    while True:
        page = rows_of(model, f"limit=999&level=ERROR&level=WARN&before={before}")
        seen += page["ids"]
        before = page["next"]
        if not before:
            break
    assert len(seen) == len({*seen}) == page["matching"] > 100
