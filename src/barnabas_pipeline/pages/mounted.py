"""Opens the pages of a folder for the console, which serves them below an address of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from barnabas_pipeline.pages.api import PagesApi
from barnabas_pipeline.pages.now_feed import TOPICS, Cluster, NowFeed
from barnabas_pipeline.pages.server import application
from barnabas_pipeline.pages.source import Options, Source


class Mounted(NamedTuple):
    """The pages of a folder."""

    app: ASGIApp
    close: Callable[[], Awaitable[None]]


def mount(out: Path, connection: tuple[str, Mapping[str, Any]], closing: asyncio.Event) -> Mounted:
    """Return the pages of a folder, with the live view of the topic from which its pipeline usually
    reads.

    `connection`: the bootstrap servers, and the client options. Raises ConfigError if there are no
    tables in the folder. May be called in a worker thread.
    """
    source = Source(out, Options())
    now = NowFeed(source.kind, Cluster(*connection, TOPICS[source.kind]))
    api = PagesApi(source, now, closing)

    async def close() -> None:
        api.close()
        await now.close()

    return Mounted(application(api), close)
