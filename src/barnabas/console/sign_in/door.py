"""Lets browsers sign in, and passes each request to the application of the signed-in user.

A session exists only in this process. The session token is in a cookie that scripts cannot read and
that pages of other sites cannot send. Without a session, only the page's own files are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from barnabas.console.application import file_answers, web_application
from barnabas.console.guard import SIGN_IN_PATHS
from barnabas.console.json_response import json_response, problem_response
from barnabas.console.problem import WebProblem
from barnabas.console.shapes import Session
from barnabas.console.sign_in.admission import MOST_SESSIONS, Attempts, Lifetime, SessionBook
from barnabas.console.sign_in.user_session import UserSession, check_sign_in, options_of_user
from barnabas.console.writing.form import parse_form
from barnabas.console.writing.gate import check_sender
from barnabas.console.writing.writer import log_action, read_body

SESSION_PATH: Final = "/api/session"
_SWEEP_S: Final = 5.0
_KEPT_COOKIE_S: Final = 24 * 3600
"""How long browsers keep a cookie after its session has ended, so that the page can say why it
ended.
"""
_MOST_AT_ONCE: Final = 4


class Door:
    """The application of a console whose users sign in. Run `run` in a task, and call `close` at
    the end.
    """

    def __init__(
        self,
        servers: str,
        options: Mapping[str, Any],
        cookie: str,
        lifetime: Lifetime,
        *,
        may_write: bool,
    ) -> None:
        """Raises ConfigError if user names and passwords cannot be used with these options."""
        check_sign_in(options)
        self._servers = servers
        self._options = options
        self._cookie = cookie
        self._may_write = may_write
        self._lifetime = lifetime
        self._book: SessionBook[UserSession] = SessionBook(lifetime)
        self._attempts = Attempts()
        self._count = 0
        answers = {
            SESSION_PATH: self._state,
            SIGN_IN_PATHS[0]: self._sign_in,
            SIGN_IN_PATHS[1]: self._sign_out,
        }
        self._public = web_application({**answers, **file_answers()}, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not path.startswith("/api/") or path in _OWN:
            await self._public(scope, receive, send)
            return
        session = self._session(Request(scope))
        if session is None:
            refusal = problem_response(WebProblem(401, "sign in first"))
            await refusal(scope, receive, send)
            return
        await session.app(scope, receive, send)

    async def run(self) -> None:
        """End expired sessions until cancelled, and then end all streams."""
        try:
            while True:
                await asyncio.sleep(_SWEEP_S)
                over = self._book.remove_if(lambda session: session.is_over)
                for session in [*over, *self._book.remove_expired()]:
                    await session.close()
        finally:
            for session in self._book.values():
                session.end_streams()

    async def close(self) -> None:
        """Sign everybody out."""
        for session in self._book.remove_if(lambda _: True):
            await session.close()

    def _session(self, request: Request) -> UserSession | None:
        session = self._book.find(self._token(request))
        return None if session is None or session.is_over else session

    def _token(self, request: Request) -> str:
        return request.cookies.get(self._cookie, "")

    async def _state(self, request: Request) -> Response:
        session, token = self._session(request), self._token(request)
        if session is not None:
            return json_response(Session(required=True, user=session.user, ended=""))
        ended = f"Your session has ended {self._book.why_ended(token)}." if token else ""
        return json_response(Session(required=True, user="", ended=ended))

    async def _sign_in(self, request: Request) -> Response:
        check_sender(request.headers)
        form = parse_form(await read_body(request))
        user, password = form.text("user"), form.text("password")
        form.end()
        if not user or not password:
            raise WebProblem(400, "give a user and a password")
        where = _address(request)
        self._attempts.begin(where, user)
        try:
            session = await self._opened(user, password)
        except WebProblem as problem:
            # Users sometimes type their password as the name, so do not log the name.
            log_action(where, "sign in", f"refused, {problem.status}")
            raise
        except BaseException:
            self._attempts.forgive(where, user)  # the brokers did not answer
            raise
        self._attempts.forgive(where, user)
        await self._close(self._token(request))
        token, replaced = self._book.add(user, session)
        for each in replaced:
            await each.close()
        log_action(where, f"sign in as {user}", "done")
        response = json_response(Session(required=True, user=user, ended=""))
        self._set_cookie(response, request, token, round(self._lifetime.longest_s) + _KEPT_COOKIE_S)
        return response

    async def _opened(self, user: str, password: str) -> UserSession:
        """Return a connected session. Raises a `WebProblem` or a client error."""
        if len(self._book.values()) + self._count >= MOST_SESSIONS:
            raise WebProblem(503, "too many people are signed in; try again later")
        if self._count >= _MOST_AT_ONCE:
            raise WebProblem(503, "others are signing in at this moment; try again")
        options = options_of_user(self._options, user, password)
        session = UserSession(self._servers, options, user, may_write=self._may_write)
        self._count += 1
        try:
            await session.start()
        finally:
            self._count -= 1
        return session

    async def _sign_out(self, request: Request) -> Response:
        check_sender(request.headers)
        await read_body(request)
        await self._close(self._token(request))
        response = json_response(Session(required=True, user="", ended=""))
        self._set_cookie(response, request, "", 0)
        return response

    async def _close(self, token: str) -> None:
        session = self._book.remove(token)
        if session is not None:
            await session.close()

    def _set_cookie(self, response: Response, request: Request, token: str, age_s: int) -> None:
        # A proxy may add TLS, so only the Origin header shows what the browser uses.
        is_secure = urlsplit(request.headers.get("origin", "")).scheme == "https"
        response.set_cookie(
            self._cookie, token, age_s, httponly=True, samesite="strict", secure=is_secure
        )


_OWN: Final = (SESSION_PATH, *SIGN_IN_PATHS)


def _address(request: Request) -> str:
    return "unknown" if request.client is None else request.client.host
