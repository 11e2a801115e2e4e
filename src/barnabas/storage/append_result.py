"""Defines the result of an append: the batch's place in the leader's log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class AppendResult(NamedTuple):
    """An appended batch's offsets, time and size."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """The append time; -1 if the batch retains its producer's timestamps."""
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool
    """Whether the batch was already in the log (a retry), in which case nothing was written."""


# One is created for each batch; positional arguments take half the time of keyword arguments.
new_result: Callable[[tuple[int, int, int, int, int, bool]], AppendResult] = partial(
    tuple.__new__, AppendResult
)
