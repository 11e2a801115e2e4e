"""How much is tried: `make check` has a minute, `make test` has not."""

from __future__ import annotations

import os

IS_QUICK = bool(os.environ.get("BARNABAS_QUICK"))
_SHARE = 5


def examples(count: int) -> int:
    """So many examples of a property, or a fifth of them in a quick run."""
    return max(10, count // _SHARE) if IS_QUICK else count
