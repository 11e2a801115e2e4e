"""Logs an authorizer's decisions, up to a limit.

A single request can name a hundred thousand resources, and each line is written before the next
decision is made. For this reason, only the first few decisions of a kind (client, operation,
resource type, API) are logged each second. The rest are counted, and their number is logged at the
end of the second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.printable import printable
from barnabas.security.acl_binding import pascal_name
from barnabas.security.acl_host import java_host

if TYPE_CHECKING:
    from barnabas.broker.security.authorization import Asking, Needs
    from barnabas.clock import Clock

LINES: Final = 1_000
"""The largest number of lines that are logged per kind and second.

The limit is high enough for separate requests, because an auditor wants to see each of them. It is
far below the number of resources that a single request can name.
"""

_SECOND_MS = 1000
_MOST_KINDS = 1000


class AuditTrail:
    """Logs the decisions of one authorizer, up to a limit for each kind."""

    __slots__ = ("_clock", "_kinds", "_log")

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._kinds: dict[object, _Kind] = {}

    def log(
        self, level: int, context: Asking, needs: Needs, resource: str, references: int
    ) -> None:
        """Log or count a decision. Denials are logged at INFO, and allowed operations at DEBUG."""
        client = context.client
        # The resource is not part of the kind, because clients can make up any number of names.
        key = (level, client.principal, client.address, needs, context.api.key)
        now_ms = self._clock.monotonic_ms()
        kind = self._kinds.get(key)
        if kind is None or (not kind.rest and now_ms - kind.began_at_ms >= _SECOND_MS):
            # Keep the kinds whose count has not been logged yet.
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds = {one: each for one, each in self._kinds.items() if each.rest}
            kind = self._kinds[key] = _Kind(now_ms)
        if kind.lines < LINES:
            kind.lines += 1
            line = _decision(level, context, needs, printable(resource), references)
            self._log.log(level, "%s", line)
            return
        if not kind.rest:  # the first one not logged
            line = _decision(level, context, needs, "{} more", 0)
            delay_s = max(0, kind.began_at_ms + _SECOND_MS - now_ms) / 1000
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._log_rest, level, key, line)
        kind.rest += 1

    def _log_rest(self, level: int, key: object, line: str) -> None:
        kind = self._kinds.pop(key, None)
        if kind is not None:
            self._log.log(level, "%s", line.replace("{}", str(kind.rest), 1))


class _Kind:
    """The number of decisions of one kind since `began_at_ms`."""

    __slots__ = ("began_at_ms", "lines", "rest")

    def __init__(self, began_at_ms: int) -> None:
        self.began_at_ms = began_at_ms
        self.lines = 0
        self.rest = 0
        """The number of decisions that have not been logged."""


def _decision(level: int, context: Asking, needs: Needs, resource: str, references: int) -> str:
    client = context.client
    return (
        f"Principal = {printable(str(client.principal))} is "
        f"{'Denied' if level == logging.INFO else 'Allowed'} "
        f"Operation = {pascal_name(needs.operation)} from host = {java_host(client.address)} "
        f"on resource = {pascal_name(needs.resource_type)}:{resource} "
        f"for request = {context.api.name} with resourceRefCount = {references}"
    )
