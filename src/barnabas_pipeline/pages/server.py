"""Serves the pages of one pipeline until a signal arrives.

/                       the page; `static/` next to this file, and the console's for what both share
/api/site               what the tables contain
/api/cards?FILTERS      all cards; `/api/cards/NAME.csv` is the file of one card
/api/rows?FILTERS       the rows behind the figures; `/api/rows.csv` is their file
/api/now/stream         the last half hour, as server-sent events
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from barnabas.console.application import Answer, web_application
from barnabas.console.guard import Guard
from barnabas.console.server import Address, listen, names_of, serve_until, url_of
from barnabas.console.static_files import StaticFiles
from barnabas_pipeline.pages.api import PagesApi
from barnabas_pipeline.pages.now_feed import Cluster, NowFeed
from barnabas_pipeline.pages.source import Source

_STATIC: Final = Path(__file__).parent / "static"


async def serve(
    source: Source, cluster: Cluster | None, address: Address, on_ready: Callable[[str], None]
) -> bool:
    """Serve until SIGINT or SIGTERM. `on_ready` is called with the URL.

    Return True if a thread is still busy with a request for which nobody waits any longer. Without
    a cluster, there is no live view. Raises ConfigError if the server cannot listen on the address.
    """
    stopping = asyncio.Event()
    now = None if cluster is None else NowFeed(source.kind, cluster)
    api = PagesApi(source, now, stopping)
    host = address.host
    with contextlib.closing(listen(address)) as sock, contextlib.closing(api):
        app = Guard(application(api), names_of(host), subject="page")
        try:
            # Nothing has to be done beside serving.
            work = stopping.wait()
            await serve_until(stopping, work, app, sock, lambda: on_ready(url_of(sock, host)))
        finally:
            if now is not None:
                await now.close()
    return api.is_busy


def application(api: PagesApi) -> ASGIApp:
    """Return the application, whose addresses are relative, without a guard."""
    own, shared = StaticFiles(_STATIC), StaticFiles()

    async def index(request: Request) -> Response:
        return own.respond(request, "index.html")

    async def own_file(request: Request) -> Response:
        return own.respond(request, request.path_params["name"])

    async def shared_file(request: Request) -> Response:
        return shared.respond(request, request.path_params["name"])

    answers: dict[str, Answer] = {
        "/": index,
        "/static/{name:path}": own_file,
        "/console/{name:path}": shared_file,
        "/api/site": api.site,
        "/api/cards": api.cards,
        "/api/cards/{name}.csv": api.card_file,
        "/api/cards/{name}": api.card,
        "/api/rows": api.rows,
        "/api/rows.csv": api.rows_file,
        "/api/now/stream": api.now,
    }
    return web_application(answers, watch=None)
