"""Serves the interactive pages of the pipelines below `/explore/NUMBER/`.

The pages are those of `barnabas pages serve`. They are loaded by name with the first request,
because they belong to a package that builds on this one, and whose libraries are an extra. Unlike
the pages that a pipeline writes, they consist of files of the installed package and of JSON, so
they need no sandbox: they are under the same policy as the console's own page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.console.guard import EXPLORE_PATH
from barnabas.console.problem import WebProblem
from barnabas.console.watch import ClusterWatch
from barnabas.errors import ConfigError
from barnabas.extras import install_line

_MODULE: Final = "barnabas_pipeline.pages.mounted"
_NEEDED: Final = ("barnabas_pipeline", "deltalake", "polars", "pyarrow")


class Mounted(Protocol):
    """The pages of one folder."""

    @property
    def app(self) -> ASGIApp: ...

    @property
    def close(self) -> Callable[[], Awaitable[None]]: ...


class PipelineExplorer:
    """The interactive pages of the folders. Those of a folder are opened by their first request."""

    def __init__(
        self, folders: Sequence[Path], watch: ClusterWatch, closing: asyncio.Event
    ) -> None:
        self._folders = folders
        self._watch = watch
        self._closing = closing
        self._open: dict[int, Mounted] = {}
        self._turn = asyncio.Lock()
        self._end: asyncio.Task[None] | None = None

    async def index(self, request: Request) -> ASGIApp:
        """Answer `/explore/NUMBER`, whose page has relative addresses."""
        number = self._number(request)
        return RedirectResponse(f"{number}/")

    async def page(self, request: Request) -> ASGIApp:
        """Answer `/explore/NUMBER/...`."""
        number = self._number(request)
        async with self._turn:
            if number not in self._open:
                self._open[number] = await asyncio.to_thread(self._mount, self._folders[number])
            if self._end is None:
                self._end = asyncio.create_task(self._close())
        return _Below(f"{EXPLORE_PATH}{number}", self._open[number].app)

    def _number(self, request: Request) -> int:
        return folder_number(request.path_params["number"], len(self._folders))

    def _mount(self, folder: Path) -> Mounted:
        """Return the pages of a folder. Raises a `WebProblem`."""
        if (link := _link_in(folder / "tables")) is not None:
            raise WebProblem(404, f"{link} is a symbolic link; links are not followed")
        try:
            mount = import_module(_MODULE).mount
        except ImportError as error:
            raise WebProblem(
                404, f"the pages need {error.name}, which is not installed: {install_line('pages')}"
            ) from error
        watch = self._watch
        try:
            mounted: Mounted = mount(folder, (watch.servers, watch.settings), self._closing)
        except (ConfigError, OSError) as error:
            raise WebProblem(404, str(error)) from error
        return mounted

    async def _close(self) -> None:
        await self._closing.wait()
        for mounted in self._open.values():
            await mounted.close()


class _Below:
    """Calls an application whose addresses begin with a path."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        self._path = path
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Everything else that a router has added to the scope is of the console.
        own = {name: value for name, value in scope.items() if name not in _OF_ROUTER}
        await self._app({**own, "root_path": self._path}, receive, send)


_OF_ROUTER: Final = ("app", "endpoint", "path_params", "router")


def folder_number(text: str, folders: int) -> int:
    """Return the index of a folder in an address. Raises a `WebProblem`."""
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise WebProblem(404, f"there is no folder {text[:20]!r}")
    if int(text) >= folders:
        raise WebProblem(404, f"there is no folder {text}: {folders} were given")
    return int(text)


def _link_in(tables: Path) -> Path | None:
    """Return a symbolic link in the tables, or None if there is none.

    Anyone who can write to the folder could place a link to another file in it.
    """
    return next((path for path in (tables, *tables.rglob("*")) if path.is_symlink()), None)


def can_explore() -> bool:
    """Return whether the packages of the pages seem to be installed, without loading them."""
    return all(find_spec(name) is not None for name in _NEEDED)
