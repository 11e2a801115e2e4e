"""Sends server-sent events until the viewer disconnects or the console stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from barnabas.console.json_response import json_bytes
from barnabas.console.problem import problem_of
from barnabas.console.race import race
from barnabas.errors import BarnabasError


class Sent(NamedTuple):
    """Encode an event. When the browser reconnects, it sends the last `number` that it received."""

    value: Mapping[str, Any]
    number: int | None = None


class EventStream:
    """A response that does not end by itself.

    The source yields events, and yields None from time to time so that a disconnected viewer is
    noticed. An error raised by the source is sent as an event named `problem` and ends the stream.
    """

    def __init__(self, source: AsyncGenerator[Sent | None, None], closing: asyncio.Event) -> None:
        self._source = source
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] != "HEAD":
            # The source closes its consumer before this request ends.
            with contextlib.suppress(OSError):
                await race(self._pump(send), _gone(receive), self._closing.wait())
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._source) as source:
            try:
                async for each in source:
                    await send(
                        {"type": "http.response.body", "body": _text(each), "more_body": True}
                    )
            except (BarnabasError, TimeoutError) as error:
                problem = json_bytes({"error": str(problem_of(error))})
                body = b"event: problem\ndata: " + problem + b"\n\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})


def _text(each: Sent | None) -> bytes:
    if each is None:
        return b": \n\n"
    number = b"" if each.number is None else b"id: %d\n" % each.number
    return number + b"data: " + json_bytes(each.value) + b"\n\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
