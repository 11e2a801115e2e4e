"""Applies Python functions to string columns with few distinct values."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


def of_each(
    texts: pl.Series, function: Callable[[str | None], object], dtype: type[pl.DataType]
) -> pl.Series:
    """Return the function's result for each string, with one call per distinct string."""
    distinct = texts.unique()
    made = pl.Series([function(text) for text in distinct], dtype=dtype)
    frame = texts.to_frame("text").join(
        pl.DataFrame({"text": distinct, "made": made}),
        on="text",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return frame["made"]
