"""Serves the page's files, which are part of the package."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.problem import WebProblem

DIRECTORY: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


class StaticFiles:
    """Serves only files that existed at startup. No other name is looked up on disk."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        found = directory.rglob("*")
        self._paths = {
            path.relative_to(directory).as_posix(): path for path in found if path.is_file()
        }

    def respond(self, request: Request, name: str) -> Response:
        """Return a file, or 304 if the browser's copy is current. Raises a `WebProblem`."""
        path = self._paths.get(name)
        if path is None:
            raise WebProblem(404, f"there is no file {name[:100]!r}")
        data = path.read_bytes()
        tag = f'"{sha256(data).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        media_type = _TYPES.get(path.suffix, "application/octet-stream")
        return Response(data, media_type=media_type, headers=headers)
