"""Computes quantiles of numbers by page, for any selection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from barnabas_pipeline.pages.hits import Array


class Quantiles:
    """Numbers, ordered by group and size, so that a quantile is found at a known place."""

    def __init__(self, at: Array, groups: Array, values: Array) -> None:
        """`at`: the numbers of the hits to which the values belong. NaN stands for no value."""
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.lexsort((values[known], groups[known]))]
        self._at, self._groups, self._values = at[order], groups[order], values[order]

    def of(self, mask: Array | None, groups: int, shares: Sequence[float]) -> list[Array]:
        """Return the number of values in each group, and the values not exceeded by these shares
        of them, or NaN for a group without values.

        `mask`: which hits count, or None for all.
        """
        at, values = self._groups, self._values
        if mask is not None:
            is_in = mask[self._at]
            at, values = at[is_in], values[is_in]
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

    def whole(self, mask: Array | None, share: float) -> float | None:
        """Return the value that is not exceeded by this share of all values."""
        values = self._values if mask is None else self._values[mask[self._at]]
        if not len(values):
            return None
        place = int(np.ceil(len(values) * share)) - 1
        return float(np.partition(values, place)[place])
