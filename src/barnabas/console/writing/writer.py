"""Handles requests below `/api/actions`, which preview and apply changes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from barnabas.cli.groups.instants import instant_text
from barnabas.client.admin.admin import Admin
from barnabas.client.errors import NoAnswer, Unreachable
from barnabas.clock import SystemClock
from barnabas.console.json_response import json_response
from barnabas.console.problem import FAILURES, WebProblem, problem_of, reason_of
from barnabas.console.shapes import ActionChange, ActionPreview, ActionResult, Actions
from barnabas.console.writing.catalogue import ACTIONS
from barnabas.console.writing.form import Form, parse_form
from barnabas.console.writing.gate import MOST_BODY_BYTES, Gate
from barnabas.console.writing.plan import MOST_CHANGES, Access, Action, Plan
from barnabas.console.writing.tickets import LASTING_S, Tickets
from barnabas.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
)
from barnabas.printable import printable_within

_PATIENCE: Final[Mapping[str, Any]] = {
    "client_id": "barnabas-console",
    "request_timeout_ms": 15_000,
    "default_api_timeout_ms": 20_000,
}
"""The user's own settings override these."""
_PLAN_S: Final = 30.0
_APPLY_S: Final = 30.0
_TURN_S: Final = 10.0
_BODY_S: Final = 10.0
"""The total of these timeouts is shorter than the page's own timeout."""
_MOST_AT_ONCE: Final = 8
_MOST_LOGGED: Final = 500  # characters
_DENIALS: Final = (ClusterAuthorizationFailed, GroupAuthorizationFailed, TopicAuthorizationFailed)
_UNCERTAIN: Final = (NoAnswer, Unreachable, TimeoutError)
NOTHING: Final = Actions(enabled=False, secret="", names=[])
"""The answer of a read-only console."""


class Writer:
    """Previews and applies changes, one at a time."""

    def __init__(
        self,
        servers: str,
        options: Mapping[str, Any],
        on_change: Callable[[], None],
        user: str = "",
    ) -> None:
        """`on_change` is called after each change, so that the pages show it. `user` is the
        signed-in user, if the console requires sign-in.
        """
        self._servers = servers
        self._settings = {**_PATIENCE, **options}
        self._on_change = on_change
        self._user = user
        self._gate = Gate()
        self._tickets = Tickets()
        self._turn = asyncio.Lock()
        self._count = 0

    async def state(self, _: Request) -> Response:
        """Answer `/api/actions`."""
        return json_response(Actions(enabled=True, secret=self._gate.secret, names=sorted(ACTIONS)))

    async def preview(self, request: Request) -> Response:
        """Answer `/api/actions/NAME/preview`."""
        return await self._answer(request, self._preview)

    async def apply(self, request: Request) -> Response:
        """Answer `/api/actions/NAME/apply`."""
        return await self._answer(request, self._apply)

    async def _answer(
        self, request: Request, work: Callable[[str, Form, Callable[[str], None]], Any]
    ) -> Response:
        """Process a request, and log the outcome."""
        client = request.client
        who = "unknown" if client is None else f"{client.host}:{client.port}"
        who = f"{who} {self._user}".strip()
        name: str = request.path_params["name"]
        said = [f"{work.__name__.strip('_')} {name[:40]}"]
        try:
            if name not in ACTIONS:
                raise WebProblem(404, f"there is no action {name[:40]!r}")
            self._gate.check(request.headers)
            form = parse_form(await read_body(request))
            async with self._place():
                value = await work(name, form, said.append)
        except (WebProblem, *FAILURES) as error:
            problem = problem_of(error)
            verb = "refused" if problem.status < 500 else "failed"
            log_action(who, ", ".join(said), f"{verb}, {problem.status} {problem}")
            if problem is error:
                raise
            raise problem from error
        log_action(who, ", ".join(said), "done")
        return json_response(value)

    async def _preview(self, name: str, form: Form, say: Callable[[str], None]) -> ActionPreview:
        action = ACTIONS[name](form)
        form.end()
        async with self._access() as access:
            plan = await _plan(action, access, self._user)
        say(plan.title)
        token = self._tickets.issue(action.as_planned(plan), plan) if plan.changes else ""
        return ActionPreview(
            title=plan.title,
            sentences=list(plan.sentences),
            warnings=list(plan.warnings),
            changes=_rows(plan),
            token=token,
            seconds=LASTING_S,
        )

    async def _apply(self, name: str, form: Form, say: Callable[[str], None]) -> ActionResult:
        token = form.text("token")
        form.end()
        ticket = self._tickets.redeem(token)
        say(ticket.plan.title)
        if ticket.action.name != name:
            raise WebProblem(403, f"the preview is of the action {ticket.action.name!r}")
        async with self._one_at_a_time(), self._access() as access:
            now = await _plan(ticket.action, access, self._user)
            if now.canonical() != ticket.plan.canonical():
                raise WebProblem(409, _difference(ticket.plan, now))
            began_s = time.monotonic()
            try:
                async with asyncio.timeout(_APPLY_S):
                    sentences = await ticket.action.apply(access, now)
            except FAILURES as error:
                raise _failure(ticket.action, error, self._user, began=True) from error
            finally:
                self._on_change()
        took = f"It took {max(1, round((time.monotonic() - began_s) * 1000))} ms."
        return ActionResult(title=now.title, sentences=[*sentences, took])

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Occupy one of the limited number of places for requests."""
        if self._count >= _MOST_AT_ONCE:
            raise WebProblem(503, f"{_MOST_AT_ONCE} actions are under way; try again in a moment")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    @asynccontextmanager
    async def _one_at_a_time(self) -> AsyncIterator[None]:
        """Wait until no other change is in progress."""
        try:
            async with asyncio.timeout(_TURN_S):
                await self._turn.acquire()
        except TimeoutError:
            raise WebProblem(
                503,
                "another change takes long, so nothing was done; preview the change again later",
            ) from None
        try:
            yield
        finally:
            self._turn.release()

    @asynccontextmanager
    async def _access(self) -> AsyncIterator[Access]:
        async with Admin(self._servers, **self._settings) as admin:
            yield Access(admin, self._servers, self._settings)


async def read_body(request: Request) -> bytes:
    """Read the body up to the size limit. Raises a `WebProblem`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BODY_BYTES:
                    raise WebProblem(413, f"at most {MOST_BODY_BYTES} bytes are read")
    except (ClientDisconnect, TimeoutError):
        raise WebProblem(400, "the body ended early, or did not arrive in time") from None
    return bytes(body)


async def _plan(action: Action, access: Access, user: str) -> Plan:
    """Return the plan of an action. Raises a `WebProblem` that names the missing permission."""
    try:
        async with asyncio.timeout(_PLAN_S):
            plan = await action.plan(access)
    except FAILURES as error:
        raise _failure(action, error, user, began=False) from error
    if len(plan.changes) > MOST_CHANGES:
        raise WebProblem(
            400,
            f"{len(plan.changes)} changes are too many to preview; choose at most {MOST_CHANGES}, "
            "or use the command line",
        )
    return plan


def _failure(action: Action, error: Exception, user: str, *, began: bool) -> WebProblem:
    """Return the problem that corresponds to a broker error during an action. `user` is the
    signed-in user, or "".
    """
    problem = problem_of(error)
    if isinstance(error, _DENIALS):
        who, advice = "user of --command-config", ""
        if user:
            who = f"user {user!r}"
            advice = (
                ". An administrator of the cluster can grant it with `barnabas acls add`; "
                "`barnabas acls explain` names the rule that decides"
            )
        return WebProblem(
            403, f"{problem}. The {who} needs the permission {action.permission}{advice}"
        )
    if began and (isinstance(error, _UNCERTAIN) or getattr(error, "retriable", False)):
        return WebProblem(
            504,
            f"{problem}. It is not known whether the change was made: look at the cluster before "
            "you try again",
        )
    if isinstance(error, KafkaError) and not error.retriable and problem.status == 502:
        return WebProblem(422, reason_of(error))
    return problem


def _rows(plan: Plan) -> list[ActionChange]:
    return [
        ActionChange(what=each.what, before=each.before, after=each.after, about=each.about)
        for each in plan.changes
    ]


def _difference(before: Plan, now: Plan) -> str:
    """Return a sentence that describes what has changed since the preview."""
    old = {change.what: change for change in before.changes}
    new = {change.what: change for change in now.changes}
    parts = []
    for what in dict.fromkeys([*old, *new]):
        was, is_now = old.get(what), new.get(what)
        if was is None or is_now is None:
            parts.append(f"{what} {'was not' if was is None else 'is no longer'} to be changed")
        elif was.effect == is_now.effect:
            continue
        elif was.before != is_now.before:
            parts.append(f"{what} was {_value(was.before)} and is now {_value(is_now.before)}")
        else:
            parts.append(f"{what} would now become {_value(is_now.after)}")
    differences = "; ".join(parts[:3]) or "what the preview relied on is no longer there"
    return (
        f"the cluster has changed since the preview, so nothing was done: {differences}. "
        "Preview again"
    )


def _value(value: str | None) -> str:
    return "missing" if value is None else value


def log_action(who: str, what: str, outcome: str) -> None:
    """Write one line to standard error with the time, the user, the action and its outcome."""
    now = instant_text(SystemClock().wall_ms())
    line = printable_within(f"{who} {what}: {outcome}", _MOST_LOGGED)
    sys.stderr.write(f"{now} barnabas console: {line}\n")
    sys.stderr.flush()
