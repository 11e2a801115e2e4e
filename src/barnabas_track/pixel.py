"""Turns the query of an image request into a batch with one event. Pure.

Mails cannot run scripts, but they can contain an image:

    GET /v1/pixel.gif?name=mail-opened&campaign=spring&visitor=...
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

GIF: Final = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
"""A transparent image of one pixel."""
GIF_HEADERS: Final = {"Cache-Control": "no-store"}
MOST_QUERY_BYTES: Final = 16 << 10


def batch_of_query(query: Iterable[tuple[str, str]], now_ms: int, new_id: str) -> bytes:
    """Return the body of a batch. Its event has the fields of the query.

    A mail has neither a clock nor random numbers, so a missing `time` is replaced by `now_ms`, and
    a missing `id` by `new_id`.
    """
    event: dict[str, object] = {"id": new_id, "time": now_ms, **dict(query)}
    time = event["time"]
    # Any other text is left as it is, and the field's check rejects it.
    if isinstance(time, str) and time.isascii() and time.isdigit() and len(time) < 16:
        event["time"] = int(time)
    return json.dumps({"events": [event]}).encode()
