"""Defines the result of an append, which tells where the batch was placed in the leader's log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class AppendResult(NamedTuple):
    """Represents the offsets, the time and the size of an appended batch."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """The time of the append, or -1 if the batch keeps the timestamps set by its producer."""
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool
    """Whether the batch was a retry that the log already contained. In that case, nothing was
    written.
    """


# A result is created for each batch, and passing arguments by position takes half as long as
# passing them by keyword.
new_result: Callable[[tuple[int, int, int, int, int, bool]], AppendResult] = partial(
    tuple.__new__, AppendResult
)
