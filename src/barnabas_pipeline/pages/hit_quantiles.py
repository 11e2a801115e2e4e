"""Computes quantiles of numbers by page, for any selection."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from barnabas_pipeline.pages.hits import Array


class Quantiles:
    """Numbers, ordered by group and size, so that a quantile is found at a known place."""

    def __init__(self, groups: Array, values: Array) -> None:
        """`groups`: the group of each value. NaN stands for no value."""
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.lexsort((values[known], groups[known]))].astype(np.uint32)
        self._order, self._groups, self._values = order, groups[order], values[order]

    def of_group(self, group: int, is_in: Array | None, share: float) -> float | None:
        """Return the value not exceeded by this share of the values in a group, or None."""
        begin, end = np.searchsorted(self._groups, (group, group + 1)).tolist()
        values = self._values[begin:end]
        if is_in is not None:
            values = values[is_in[self._order[begin:end]]]
        return float(values[ceil(len(values) * share) - 1]) if len(values) else None

    def of(self, is_in: Array | None, groups: int, shares: Sequence[float]) -> list[Array]:
        """Return the number of values in each group, and the values not exceeded by these shares
        of them, or NaN for a group without values.

        `is_in`: which values count, or None for all.
        """
        at, values = self._groups, self._values
        if is_in is not None:
            chosen = is_in[self._order]
            at, values = at[chosen], values[chosen]
        counts = np.bincount(at, minlength=groups)
        begins = np.cumsum(counts) - counts
        found = [counts]
        for share in shares:
            quantile = np.full(groups, np.nan)
            places = begins + np.ceil(counts * share).astype(np.int64) - 1
            some = counts > 0
            quantile[some] = values[places[some]]
            found.append(quantile)
        return found
