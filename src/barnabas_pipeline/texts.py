"""Decodes the bytes of records as text."""

from __future__ import annotations

import polars as pl


def texts(values: pl.Series) -> pl.Series:
    """Return the values as texts, with null for a value that is not UTF-8."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:  # does not say which rows
        return pl.Series([_text(value) for value in values], dtype=pl.String)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
