"""Functions of Python over columns in which few texts stand many times."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


def of_each(
    texts: pl.Series, function: Callable[[str | None], object], dtype: type[pl.DataType]
) -> pl.Series:
    """What the function makes of each text, called once for those that are equal."""
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
