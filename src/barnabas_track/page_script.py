"""Serves the script that pages include, which is part of the package."""

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
    # Old scripts keep working, so pages may use theirs for an hour, and then ask in the background.
    "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
    "Vary": "Accept-Encoding",
    # Pages of other origins include the script, with `crossorigin` or `integrity` if they like.
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
# Blank lines and comments on their own lines, and indentation.
_UNSENT: Final = re.compile(rb"^\s*(?://.*\n)?", re.MULTILINE)
# After these, a line end means nothing.
_JOINED: Final = re.compile(rb"(?<=[{(,;])\n")


def compact(source: bytes) -> bytes:
    """Return a script without its comments, its indentation and most line ends, which visitors
    would have to load.

    Comments must be on their own lines, and no text of the script may contain a line end.
    """
    return _JOINED.sub(b"", _UNSENT.sub(b"", source))


class PageScript:
    """Serves the script as it was when the server started."""

    def __init__(self, source: Path = SOURCE) -> None:
        self._plain = compact(source.read_bytes())
        # Without a time, each server sends the same bytes.
        self._compressed = gzip.compress(self._plain, 9, mtime=0)
        # Weak, because the bytes depend on the encoding.
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
