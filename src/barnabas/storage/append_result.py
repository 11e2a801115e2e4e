"""The result of an append: where the leader's log put the batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class AppendResult(NamedTuple):
    """An appended batch's offsets, time and size."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 if the batch keeps its producer's times."""
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool
    """True for a retry of a batch that the log already holds: nothing was written."""


# An instance is created for each batch: this takes half the time of naming its fields.
new_result: Callable[[tuple[int, int, int, int, int, bool]], AppendResult] = partial(
    tuple.__new__, AppendResult
)
