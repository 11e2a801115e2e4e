"""Answers the requests of the pages. Figures are computed in one worker thread, in turn."""

from __future__ import annotations

import asyncio
import csv
import io
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import chain, islice
from typing import Final, TypeVar

from pyarrow import ArrowException  # type: ignore[import-untyped]
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from barnabas.console.event_stream import EventStream, Sent
from barnabas.console.json_response import json_response
from barnabas.console.problem import WebProblem
from barnabas_pipeline.page.sheets import safe_cell
from barnabas_pipeline.pages.filters import Filters, parse
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.now_feed import NowFeed
from barnabas_pipeline.pages.shapes import Cell, Site
from barnabas_pipeline.pages.source import Source

T = TypeVar("T")

_MOST_WAITING: Final = 300
"""The maximum number of requests that wait for the worker thread. A browser sends about ten."""


class PagesApi:
    """Answers requests from the newest batch of one pipeline."""

    def __init__(self, source: Source, now: NowFeed | None, closing: asyncio.Event) -> None:
        self._source = source
        self._now = now
        self._closing = closing
        self._worker = ThreadPoolExecutor(1, "pages")
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._is_computing = False

    @property
    def is_busy(self) -> bool:
        """True while a thread reads or computes something."""
        return self._is_computing or self._source.is_reading

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def site(self, request: Request) -> Response:
        """Answer `/api/site`."""

        def of(model: Model) -> Site:
            return {**model.site, "has_now": self._now is not None}

        return json_response(await self._of_model(request, of))

    async def cards(self, request: Request) -> Response:
        """Answer `/api/cards`."""
        began_s = time.monotonic()
        answer = await self._of_model(request, lambda model: model.answer(_filters(request, model)))
        took_ms = round((time.monotonic() - began_s) * 1_000, 1)
        return json_response({**answer, "took_ms": took_ms})

    async def card(self, request: Request) -> Response:
        """Answer `/api/cards/NAME`, which includes all rows of the card."""
        name, options = request.path_params["name"], _options(request)
        found = await self._of_model(
            request, lambda model: model.card(name, _filters(request, model), options)
        )
        return json_response(found)

    async def card_file(self, request: Request) -> Response:
        """Answer `/api/cards/NAME.csv`."""
        name, options = request.path_params["name"], _options(request)
        card = await self._of_model(
            request, lambda model: model.card(name, _filters(request, model), options)
        )
        titles: list[Cell] = [column["label"] for column in card["columns"]]
        lines = [titles, *(row["cells"] for row in card["rows"])]
        return _csv_response(iter(map(_csv_line, lines)), card["name"])

    async def rows(self, request: Request) -> Response:
        """Answer `/api/rows`."""
        options = _options(request)
        found = await self._of_model(
            request, lambda model: model.rows(_filters(request, model), options)
        )
        return json_response(found)

    async def rows_file(self, request: Request) -> Response:
        """Answer `/api/rows.csv`."""
        options = _options(request)

        def begun(model: Model) -> Iterator[list[Cell]]:
            rows = model.all_rows(_filters(request, model), options)
            # An error of the tables has to be raised before the response begins.
            return chain([*islice(rows, 2)], rows)

        return _csv_response(map(_csv_line, await self._of_model(request, begun)), "rows")

    async def now(self, request: Request) -> ASGIApp:
        """Answer `/api/now/stream`."""
        if self._now is None:
            raise WebProblem(
                404, "there is no live view: start `barnabas pages serve` with --bootstrap-server"
            )
        return EventStream(_sent(self._now), self._closing)

    async def _of_model(self, request: Request, compute: Callable[[Model], T]) -> T:
        if self._waiting >= _MOST_WAITING:
            raise WebProblem(503, "too many requests are waiting: try again later")
        self._waiting += 1
        try:
            await request.body()  # after it, a request can be seen to be given up
            async with self._turn:
                if self._closing.is_set():
                    raise WebProblem(503, "the server is stopping")
                # A browser gives up a request when another filter is chosen.
                if await request.is_disconnected():
                    raise WebProblem(503, "the client no longer waits for this")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._worker, self._computed, compute)
        except (ArrowException, OSError) as error:
            raise WebProblem(
                502,
                f"the tables cannot be read: {error}. If they were deleted or replaced, start the "
                "server again",
            ) from error
        finally:
            self._waiting -= 1

    def _computed(self, compute: Callable[[Model], T]) -> T:
        self._is_computing = True
        try:
            return compute(self._source.model())
        finally:
            self._is_computing = False


async def _sent(now: NowFeed) -> AsyncGenerator[Sent | None, None]:
    async with aclosing(now.watch()) as found:
        async for each in found:
            yield None if each is None else Sent(each)


def _filters(request: Request, model: Model) -> Filters:
    names = [each["name"] for each in model.site["dimensions"]]
    return parse(request.query_params.multi_items(), names)


def _options(request: Request) -> dict[str, str]:
    """Return the URL parameters. The values of a parameter given several times are separated by
    line feeds.
    """
    options: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        options[name] = f"{options[name]}\n{value}" if name in options else value
    return options


def _csv_line(cells: Sequence[Cell]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(map(safe_cell, cells))
    return written.getvalue()


def _csv_response(lines: Iterator[str], name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(lines, media_type="text/csv", headers=headers)
