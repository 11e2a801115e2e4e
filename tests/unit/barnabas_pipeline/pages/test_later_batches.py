"""The models after later batches, whose rows are added to those that were read already."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.generator import generate as generate_logs
from barnabas_pipeline.pages.filters import parse
from barnabas_pipeline.pages.merged_order import merged_order
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.source import Options, Source
from barnabas_pipeline.pages.table_rows import TableRows
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.generator import generate
from tests.kit.pipeline import log_records
from tests.kit.pipeline.event_records import records, take
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, tables_in, taken
from tests.kit.pipeline.web_records import record, table

Batches = Callable[[Path], Iterator[int]]
FILTERS = {
    "events": ("", "page=/basket", "visitor=new", "device=phone&event=pageview"),
    "access": ("", "who=robots", "page=/", "status=404&who=people&who=robots"),
    "logs": ("", "level=ERROR", "component=sshd"),
}


def of_events(out: Path) -> Iterator[int]:
    lines = [each.encode() for each in generate(3_000, seed=5)]
    # Those of the last batch are earlier than the others, and belong to the same visitors.
    parts = [lines[1_000:2_000], lines[2_000:], [], lines[:1_000]]
    for batch, part in enumerate(parts):
        take(out / "tables", batch, records(part, first=batch * 10_000))
        yield batch


def of_lines(out: Path) -> Iterator[int]:
    write_log(out / "access.log", 3_000, seed=4)
    lines = (out / "access.log").read_bytes().splitlines()
    tables, step = tables_in(out / "tables"), len(lines) // 3 + 1
    for batch, begin in enumerate(range(0, len(lines), step)):
        own = list(enumerate(lines))[begin : begin + step]
        rows = table(record(each, number, position=100 * number) for number, each in own)
        tasks = lambda one_pass, rows=rows: in_tasks(rows, one_pass)  # type: ignore[misc]  # noqa: E731
        taken(tables, batch, "q", tasks, send_nothing)
        yield batch


def of_logs(out: Path) -> Iterator[int]:
    files = sorted(generate_logs(4_000, seed=11).items(), reverse=True)
    tables = Tables(out / "tables", LOGS)
    for batch in range(3):
        part = files[batch::3]
        rows = [log_records.records(name, each, at) for at, (name, each) in enumerate(part)]
        log_records.write(tables, batch, pa.concat_tables(rows), log_records.send)
        yield batch


def model_of(source: Source, batch: int) -> Model:
    """Return the model as soon as it contains this batch."""
    deadline = time.monotonic() + 60
    while (model := source.model()).site["batch"] != batch:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return model


def shown(model: Model) -> list[Any]:
    """Return everything that pages show for some filters."""
    names = [each["name"] for each in model.site["dimensions"]]
    found: list[Any] = [model.site]
    for query in FILTERS[model.site["kind"]]:
        filters = parse(parse_qsl(query), names)
        answer = model.answer(filters)
        cards = {each["name"]: model.card(each["name"], filters, {}) for each in answer["cards"]}
        rows = model.rows(filters, {"limit": "200"})
        # The number of a row, and what was measured, may differ.
        found.append(({**answer, "took_ms": 0}, cards, {**rows, "next": "", "ids": []}))
    return found


@pytest.mark.parametrize("batches", [of_events, of_lines, of_logs])
def test_later_batches_give_the_same_figures_as_all_at_once(
    batches: Batches, tmp_path: Path
) -> None:
    later: Source | None = None
    for batch in batches(tmp_path):
        later = later or Source(tmp_path, Options())
        assert shown(model_of(later, batch)) == shown(Source(tmp_path, Options()).model())
    assert batch > 1


def test_no_row_is_read_again(tmp_path: Path) -> None:
    written = of_events(tmp_path)
    next(written)
    source = Source(tmp_path, Options())
    before = shown(source.model())
    files = [*(tmp_path / "tables" / "events").glob("**/*.parquet")]
    batch = next(written)
    for file in files:
        file.rename(file.with_suffix(".away"))
    model = model_of(source, batch)
    for file in files:
        file.with_suffix(".away").rename(file)
    assert shown(model) == shown(Source(tmp_path, Options()).model()) != before


def test_after_a_compaction_everything_is_read_again(tmp_path: Path) -> None:
    written = of_events(tmp_path)
    batch = [next(written), next(written)][-1]
    source = Source(tmp_path, Options())
    before = shown(source.model())
    tables = Tables(tmp_path / "tables", TRACKING)
    tables.tidy()
    batch = next(written)
    after = shown(model_of(source, batch))
    assert after[1:] == before[1:]  # the batch is empty
    assert shown(model_of(source, next(written)))[1:] != before[1:]


def test_the_previous_model_answers_while_a_batch_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = of_events(tmp_path)
    next(written)
    source = Source(tmp_path, Options())
    first = source.model()
    second = next(written)
    may_read = tmp_path / "may-read"
    batches = TableRows.batches

    def slow(self: TableRows, columns: list[str]) -> Iterator[Any]:
        while not may_read.exists():
            time.sleep(0.01)
        yield from batches(self, columns)

    monkeypatch.setattr(TableRows, "batches", slow)
    assert source.model() is first and source.is_reading
    assert source.model() is first
    may_read.touch()
    assert model_of(source, second) is not first and not source.is_reading


def test_a_batch_that_cannot_be_read_is_read_again(tmp_path: Path) -> None:
    written = of_events(tmp_path)
    next(written)
    source = Source(tmp_path, Options())
    source.model()
    files = {*(tmp_path / "tables" / "events").glob("**/*.parquet")}
    batch = next(written)
    new = {*(tmp_path / "tables" / "events").glob("**/*.parquet")} - files
    for file in new:
        file.rename(file.with_suffix(".away"))
    with pytest.raises(FileNotFoundError):
        model_of(source, batch)
    for file in new:
        file.with_suffix(".away").rename(file)
    assert model_of(source, batch).site["batch"] == batch


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30),
)
def test_the_order_is_that_of_all_keys(
    old: list[tuple[int, int]], new: list[tuple[int, int]]
) -> None:
    rows = [*sorted(old), *new]
    keys = [np.array([row[at] for row in rows], np.int64) for at in range(2)]
    for ordered in {0, len(old)}:
        order = merged_order(keys, ordered).tolist()
        assert order == sorted(range(len(rows)), key=rows.__getitem__)
