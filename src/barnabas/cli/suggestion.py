"""Suggests names that a mistyped one may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.errors import BarnabasError

_PATIENCE_MS = 2_000
_QUOTED = re.compile(r"'([^']+)'|topic ([\w.-]+)")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `did you mean a, or b?`; empty if no name is similar."""
    near = get_close_matches(name, list(names), n=2, cutoff=0.7)
    return f"did you mean {', or '.join(near)}?" if near else ""


async def topics_like(servers: str, problem: str, client_options: Mapping[str, Any]) -> str:
    """Suggest topics in place of one that does not exist; the problem names it."""
    named = _QUOTED.search(problem)
    if named is None:
        return ""
    try:
        # The error has already happened, and a suggestion is not worth a long wait.
        options = {**client_options, "default_api_timeout_ms": _PATIENCE_MS}
        async with Admin(servers, **options) as admin:
            return did_you_mean(named[1] or named[2], await admin.list_topics())
    except BarnabasError:
        return ""  # the problem itself is still reported
