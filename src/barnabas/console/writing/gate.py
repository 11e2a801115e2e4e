"""Decides whether a POST request comes from the console's own page. Pure except for its random
secret.

A page of another site can make a browser send a request to the console. However, the page cannot
read the secret of this process, and it cannot send JSON or custom headers without a permission that
the console never gives. The browser also adds the page's true origin. All three are checked.
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
    """Rejects requests that do not come from the page served by this process."""

    def __init__(self) -> None:
        self.secret = secrets.token_urlsafe(32)

    def check(self, headers: Headers) -> None:
        """Raise a `WebProblem` unless these headers come from this console's page."""
        check_sender(headers)
        given = headers.get(SECRET_HEADER, "").encode("utf-8", "replace")
        if not secrets.compare_digest(given, self.secret.encode()):
            raise WebProblem(
                403, "the page is from before the console was restarted: load it again"
            )


def check_sender(headers: Headers) -> None:
    """Raise a `WebProblem` unless the request was sent by a page of this console, according to its
    headers.
    """
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
    """Return whether an origin matches the requested host. The scheme may differ because of a
    proxy.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.casefold() == host.casefold() != ""
