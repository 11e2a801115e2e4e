"""Handles the HTTP requests for faults: see `control`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.testing.faults.broker_faults import Faults
from barnabas.testing.faults.http_message import Answer, Refused, Request
from barnabas.testing.faults.rule import Rule
from barnabas.testing.faults.temporary_fault import Temporary

_LOOK_EVERY_S = 0.01
_MOST_WAIT_MS = 600_000


class ControlRequests:
    """Applies requests to the faults of one broker."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._machine: dict[tuple[str, str], Temporary] = {}  # by kind and broker ("" for all)

    async def answer(self, request: Request) -> Answer:
        """Carry out a request. Raises Refused, or ConfigError for wrong arguments."""
        match request.path:
            case ("faults",):
                return self._all(request)
            case ("faults", rule_id):
                return await self._one(request, self._rule(rule_id))
            case ("disk",):
                return self._spoil(request, "disk", self._faults.disk)
            case ("clock",):
                return self._spoil(request, "clock", self._faults.clock)
        raise Refused(404, "the paths are /faults, /faults/ID, /disk and /clock")

    def _all(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                return Answer(200, {"faults": [_shown(rule) for rule in self._faults.rules]})
            case "POST":
                return Answer(201, _shown(self._faults.add(**_arguments(request))))
            case "DELETE":
                self._faults.clear()
                self._machine.clear()
                return Answer(200, {"faults": []})
        raise _not_allowed(request, "GET, POST, DELETE")

    async def _one(self, request: Request, rule: Rule) -> Answer:
        match request.method:
            case "GET":
                return await _wait_for_hits(rule, request)
            case "DELETE":
                rule.remove()
                return Answer(200, _shown(rule))
        raise _not_allowed(request, "GET, DELETE")

    def _spoil(self, request: Request, what: str, spoil: Callable[..., Temporary]) -> Answer:
        match request.method:
            case "POST":
                try:
                    key = what, _text(request.body.get("broker"))
                    self._machine[key] = spoil(**request.body)
                # The method has no such argument.
                except TypeError:
                    raise Refused(400, _no_such_argument(what)) from None
                return Answer(201, request.body)
            case "DELETE":
                broker = request.query.get("broker")
                for key in [key for key in self._machine if key[0] == what]:
                    # Without ?broker=, restore all brokers.
                    if broker in (None, key[1]):
                        self._machine.pop(key).remove()
                return Answer(200, {})
        raise _not_allowed(request, "POST, DELETE")

    def _rule(self, rule_id: str) -> Rule:
        for rule in self._faults.rules:
            if str(rule.rule_id) == rule_id:
                return rule
        raise Refused(404, f"there is no fault {rule_id[:40]!r}: GET /faults lists them all")


async def _wait_for_hits(rule: Rule, request: Request) -> Answer:
    """Return the rule once it has been hit as often as the query requires, or status 408."""
    wanted = _number(request, "hits", 0, 2**31)
    timeout_ms = _number(request, "timeout_ms", 10_000, _MOST_WAIT_MS)
    now_s = asyncio.get_running_loop().time
    ends_at_s = now_s() + timeout_ms / 1000
    # Poll the hits, which are counted on the brokers' loops, perhaps in other threads.
    while rule.hits < wanted:
        if now_s() >= ends_at_s:
            reason = f"hit {counted(rule.hits, 'time')} in {timeout_ms} ms, not {wanted}"
            return Answer(408, {"error": reason, **_shown(rule)})
        await asyncio.sleep(_LOOK_EVERY_S)
    return Answer(200, _shown(rule))


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise Refused(400, f"{name}={text[:40]!r}: it must be a number from 0 to {most}")
    return int(text)


def _arguments(request: Request) -> Any:
    if any(not isinstance(value, str | int | None) for value in request.body.values()):
        raise ConfigError("a rule's arguments must be strings, numbers, true or false")
    return request.body


def _text(broker: object) -> str:
    return "" if broker is None else str(broker)


def _no_such_argument(what: str) -> str:
    known = {
        "disk": "full, error, delay_ms and broker",
        "clock": "offset_ms, frozen and broker",
    }
    return f"/{what} takes {known[what]}"


def _shown(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.rule_id,
        "rule": rule.arguments(),
        "hits": rule.hits,
        "passed": rule.tally.passed,
        "spent": rule.is_spent,
    }


def _not_allowed(request: Request, allow: str) -> Refused:
    return Refused(405, f"{request.method} is not one of {allow}", allow)
