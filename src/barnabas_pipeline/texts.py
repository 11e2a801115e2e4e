"""Decodes the bytes of records as text."""

from __future__ import annotations

import polars as pl


def texts(values: pl.Series) -> pl.Series:
    """Return the values as strings; null stays null.

    Logs contain stray bytes from other encodings and from attacks. A byte that is not UTF-8 is
    written as an escape such as `\\xe9`.
    """
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:  # the error does not name the rows
        found = [None if each is None else text_of(each) for each in values]
        return pl.Series(values.name, found, dtype=pl.String)


def text_of(value: bytes) -> str:
    """Return one value as a string, decoded as in `texts`."""
    return value.decode("utf-8", "backslashreplace")
