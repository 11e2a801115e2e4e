"""Suggests topics for a mistyped name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.errors import BarnabasError
from barnabas.similar_names import did_you_mean

_PATIENCE_MS = 2_000
_QUOTED = re.compile(r"'([^']+)'|topic ([\w.-]+)")


async def topics_like(servers: str, problem: str, client_options: Mapping[str, Any]) -> str:
    """Suggest topics for the nonexistent one named in `problem`."""
    named = _QUOTED.search(problem)
    if named is None:
        return ""
    try:
        # A suggestion is not worth a long wait on top of the error.
        options = {**client_options, "default_api_timeout_ms": _PATIENCE_MS}
        async with Admin(servers, **options) as admin:
            return did_you_mean(named[1] or named[2], await admin.list_topics())
    except BarnabasError:
        return ""  # the problem itself is reported anyway
