"""Places of lines: what was sent twice, and dead letters that are sent again (SP-2)."""

from __future__ import annotations

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_collector.dead_letter_headers import REPLAYED
from barnabas_pipeline.places import Positions, file_counts, locate, mark_sent_twice
from tests.kit.pipeline.web_records import SCHEMA, record


def table(*rows: tuple[int, int, str | None]) -> pa.Table:
    """Offset, position and where the dead letter is."""
    named = []
    for offset, position, letter in rows:
        row = dict(zip(SCHEMA.names, record(b"x", offset, position=position), strict=True))
        headers = [*row["headers"]]  # type: ignore[misc]
        if letter is not None:
            headers.append((REPLAYED, letter.encode()))
        row["headers"] = [{"key": key, "value": value} for key, value in headers]
        named.append(row)
    return pa.Table.from_pylist(named, schema=SCHEMA)


def twice(records: pa.Table, seen: Positions) -> list[bool]:
    return mark_sent_twice(locate(records), seen)["twice"].to_list()


def test_sp_2_a_dead_letter_that_is_sent_again_is_no_line_that_came_twice() -> None:
    """SP-2: its line was seen, and it counts all the same; once."""
    records = table((0, 0, None), (1, 100, None), (2, 0, "dead 0 5"), (3, 100, "dead 0 6"))
    lines = mark_sent_twice(locate(records), {}).with_columns(
        pl.lit(None, pl.String).alias("reason")
    )
    assert lines["twice"].to_list() == [False] * 4
    assert lines["file"].to_list() == ["/logs/access.log"] * 4
    seen = {(row[0], row[2]): row[3] for row in file_counts(lines).iter_rows()}
    assert seen == {("access.log", 0): 100, ("dead 0", 0): 6}
    again = table((4, 100, None), (5, 0, "dead 0 6"), (6, 0, "dead 0 7"), (7, 0, "dead 1 0"))
    assert twice(again, seen) == [True, True, False, False]


def test_a_header_that_is_no_place() -> None:
    assert twice(table((0, 0, "dead 0"), (1, 0, "x")), {("access.log", 0): 50}) == [True, True]
