"""Guards the console: refuses requests, and adds headers to every response.

Unless its users sign in, the console has no authentication and shows everything that its own user
may see. A page from another origin must not be able to read this. Because the name of that origin
may resolve to this machine (DNS rebinding), the console answers only requests for known host names.
Requests for IP addresses are always answered, because nobody can register an IP address as a name.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.json_response import problem_response
from barnabas.console.problem import WebProblem

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
MOST_ADDRESS_BYTES: Final = 16_384
"""The maximum number of bytes in a path with its parameters, which may include the offsets of 1,000
partitions."""
EXPLORE_PATH: Final = "/explore/"
"""The interactive pages of pipelines are below this prefix, each with its own `api/`."""
ACTION_PATH: Final = "/api/actions/"
"""Requests to paths below this prefix change the cluster, so these paths accept only POST."""
SIGN_IN_PATHS: Final = ("/api/session/sign-in", "/api/session/sign-out")
_READING: Final = ("GET", "HEAD")
_WRITING: Final = ("POST",)
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses requests before the application sees them, and adds headers to all responses."""

    def __init__(
        self,
        app: ASGIApp,
        names: Collection[str],
        *,
        may_write: bool = False,
        signs_in: bool = False,
        subject: str = "console",
    ) -> None:
        """`names` are the host names, without ports, by which the console may be addressed.
        `subject`: what answers, as errors name it.
        """
        self._app = app
        self._subject = subject
        self._may_write = may_write
        self._signs_in = signs_in
        self._names = frozenset(name.casefold() for name in (*LOCAL_NAMES, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # WebSockets and lifespan events are not supported
        is_api = _is_api(scope["path"])

        async def send_with_headers(sent: Message) -> None:
            if sent["type"] == "http.response.start":
                headers = MutableHeaders(scope=sent)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)  # a pipeline's page sets its own policy
                if is_api:
                    headers["cache-control"] = "no-store"
            await send(sent)

        problem = self._problem(scope)
        if problem is None:
            await self._app(scope, receive, send_with_headers)
            return
        response = problem_response(problem)
        if problem.status == 405:
            response.headers["allow"] = ", ".join(self._methods(scope["path"]))
        await response(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> WebProblem | None:
        headers = Headers(scope=scope)
        if not self._is_known(headers.get("host", "")):
            return WebProblem(
                403,
                f"this {self._subject} is not {headers.get('host', '')[:100]!r}: use the address "
                "that the server printed, or start it with --host and this name",
            )
        if headers.get("sec-fetch-site") == "cross-site" and _is_api(scope["path"]):
            return WebProblem(403, f"a page of another site may not read this {self._subject}")
        methods = self._methods(scope["path"])
        if scope["method"] not in methods:
            method, only = (
                scope["method"][:20],
                "" if self._may_write else f"the {self._subject} only reads; ",
            )
            return WebProblem(405, f"{method}: {only}use {methods[0]}")
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size > MOST_ADDRESS_BYTES:
            return WebProblem(
                400, f"the address has {size} bytes; at most {MOST_ADDRESS_BYTES} are read"
            )
        return None

    def _methods(self, path: str) -> tuple[str, ...]:
        changes = self._may_write and path.startswith(ACTION_PATH)
        return _WRITING if changes or (self._signs_in and path in SIGN_IN_PATHS) else _READING

    def _is_known(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or _is_ip(name)


def host_name(host: str) -> str:
    """Return the name in a Host header in lower case, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].casefold()
    return host.partition(":")[0].casefold().rstrip(".")


def _is_api(path: str) -> bool:
    """Return whether an address may answer with figures, and not with a page or its files."""
    return path.startswith("/api/") or (path.startswith(EXPLORE_PATH) and "/api/" in path)


def _is_ip(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
