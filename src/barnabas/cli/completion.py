"""Completes the names of topics, groups and profiles in a shell.

A shell that hangs is worse than one that completes nothing, so brokers have one second to respond,
and no error is shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_PATIENCE_S = 1.0
_ANSWER_MS = 900


def topic_names(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the topics whose names start with this text."""

    async def ask(admin: Admin) -> list[str]:
        return await admin.list_topics()

    return _names(context, begun, ask)


def group_ids(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the groups whose names start with this text."""

    async def ask(admin: Admin) -> list[str]:
        return [listing.group_id for listing in await admin.list_groups()]

    return _names(context, begun, ask)


def profile_names(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the profiles whose names start with this text."""
    from barnabas.cli.profile.store import BadProfile, read_profiles

    with suppress(BadProfile, OSError):
        return [name for name in read_profiles().by_name if name.startswith(begun)]
    return []


_LIMITS: dict[str, Any] = {
    "request_timeout_ms": _ANSWER_MS,
    "default_api_timeout_ms": _ANSWER_MS,
    "socket_connection_setup_timeout_ms": _ANSWER_MS,
}


def _names(
    context: click.Context, begun: str, ask: Callable[[Admin], Awaitable[list[str]]]
) -> list[str]:
    # Import late, because every command imports this module.
    import asyncio

    from barnabas.cli.connection import DEFAULT_SERVERS, client_options
    from barnabas.client.admin.admin import Admin
    from barnabas.errors import BarnabasError

    servers = context.params.get("servers") or DEFAULT_SERVERS
    options = {**client_options(context), **_LIMITS}

    async def within_limits() -> list[str]:
        # The client's own timeouts apply to each attempt, whereas this one covers all attempts.
        async with asyncio.timeout(_PATIENCE_S):
            async with Admin(servers, **options) as admin:
                return await ask(admin)

    with suppress(BarnabasError, OSError, TimeoutError):
        return [name for name in asyncio.run(within_limits()) if name.startswith(begun)]
    return []
