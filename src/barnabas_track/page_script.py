"""Serves the tracking script, which is part of the package, to the pages that include it."""

from __future__ import annotations

import gzip
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

SOURCE: Final = Path(__file__).with_name("tracker.js")
_HEADERS: Final = {
    # Old versions of the script keep working, so browsers may use a stored copy for an hour, and
    # after that may revalidate it in the background.
    "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
    "Vary": "Accept-Encoding",
    # Pages from other origins may include the script, with or without `crossorigin` and
    # `integrity`.
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
# Matches blank lines, comments on lines of their own, and indentation.
_UNSENT: Final = re.compile(rb"^\s*(?://.*\n)?", re.MULTILINE)
# Matches line ends that are unnecessary because of the character before them.
_JOINED: Final = re.compile(rb"(?<=[{(,;])\n")
# Matches operators with a space beside them.
_SPACED: Final = re.compile(rb" ?(=>|\|\||&&|==|[=?:,{]) ?")


def compact(source: bytes) -> bytes:
    """Return a script without comments, indentation and most line ends, so that visitors load fewer
    bytes.

    Comments must be on lines of their own, and no string in the script may contain a line end, or a
    space beside an operator.
    """
    return _SPACED.sub(rb"\1", _JOINED.sub(b"", _UNSENT.sub(b"", source)))


class PageScript:
    """Serves the script as it was when the server started."""

    def __init__(self, source: Path = SOURCE) -> None:
        self._plain = compact(source.read_bytes())
        # Without a timestamp, all servers send the same bytes.
        self._compressed = gzip.compress(self._plain, 9, mtime=0)
        # The tag is weak because the bytes depend on the encoding.
        self._tag = f'W/"{sha256(self._plain).hexdigest()[:32]}"'

    async def respond(self, request: Request) -> Response:
        """Return the script, or 304 if the browser's copy is current."""
        headers = {**_HEADERS, "ETag": self._tag}
        if self._tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        content = self._plain
        if "gzip" in request.headers.get("accept-encoding", ""):
            content = self._compressed
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type="text/javascript", headers=headers)
