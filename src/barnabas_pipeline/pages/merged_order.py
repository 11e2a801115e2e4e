"""Puts rows in order if most of them are in order already. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


def merged_order(keys: Sequence[Numbers], ordered: int) -> Numbers:
    """Return the numbers of all rows in the order of their keys, of which the first decides first.

    `ordered`: the number of rows at the begin that are already in order. Of these, only those are
    sorted whose first key is also the first key of a further row.
    """
    first = keys[0]
    new = np.arange(ordered, len(first))
    if not ordered or not len(new):
        return (np.lexsort(keys[::-1]) if len(new) else np.arange(ordered)).astype(np.uint32)
    old = first[:ordered]
    firsts = np.unique(first[ordered:])
    begins, ends = np.searchsorted(old, firsts), np.searchsorted(old, firsts, side="right")
    lengths = ends - begins
    passed = np.cumsum(lengths) - lengths
    own = np.arange(int(lengths.sum())) + np.repeat(begins - passed, lengths)
    is_kept = np.ones(ordered, bool)
    is_kept[own] = False
    touched = np.concatenate((own, new))
    touched = touched[np.lexsort([each[touched] for each in keys[::-1]])]
    # Before them are all rows that are kept and have a smaller first key.
    places = (begins - passed)[np.searchsorted(firsts, first[touched])]
    return np.insert(np.flatnonzero(is_kept), places, touched).astype(np.uint32)
