"""Decides which POST requests come from the console's own page. Pure but for its secret.

A page of another site can make a browser send a request to the console. It cannot read the secret
of this process, cannot send JSON or a header of its own without the permission that the console
never gives, and the browser adds its true origin. Each of the three is checked.
"""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from barnabas.console.problem import WebProblem

SECRET_HEADER: Final = "x-barnabas-console"
MOST_BODY_BYTES: Final = 256 * 1024


class Gate:
    """Refuses what does not come from the page that this process serves."""

    def __init__(self) -> None:
        self.secret = secrets.token_urlsafe(32)

    def check(self, headers: Headers) -> None:
        """Raise a `WebProblem` unless these headers come from our page."""
        check_sender(headers)
        given = headers.get(SECRET_HEADER, "").encode("utf-8", "replace")
        if not secrets.compare_digest(given, self.secret.encode()):
            raise WebProblem(
                403, "the page is from before the console was restarted: load it again"
            )


def check_sender(headers: Headers) -> None:
    """Raise a `WebProblem` unless a page of this console has sent these headers."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type != "application/json":
        raise WebProblem(415, "send the action as application/json")
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise WebProblem(403, "a page of another site may not change anything here")
    if not _is_same(headers.get("origin", ""), headers.get("host", "")):
        raise WebProblem(
            403, "the Origin is not this console: only its own page may change anything"
        )
    size = headers.get("content-length", "")
    if not (size.isascii() and size.isdigit() and len(size) < 10):
        raise WebProblem(411, "the length of the body is missing")
    if int(size) > MOST_BODY_BYTES:
        raise WebProblem(413, f"the action has {size} bytes; at most {MOST_BODY_BYTES} are read")


def _is_same(origin: str, host: str) -> bool:
    """Return whether an origin is the requested host. The scheme may be a proxy's."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.casefold() == host.casefold() != ""
