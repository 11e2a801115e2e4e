"""Who may break a broker over HTTP: nobody by a page in a browser."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.testing.faults.http_message import Refused, Request, read_request


def read(*fields: str) -> Request:
    async def feed() -> Request:
        reader = asyncio.StreamReader()
        reader.feed_data("\r\n".join(["DELETE /faults HTTP/1.1", *fields, "", ""]).encode())
        reader.feed_eof()
        return await read_request(reader)

    return asyncio.run(feed())


@pytest.mark.parametrize(
    "fields",
    [
        (),
        ("Host: 127.0.0.1:8000",),
        ("host: LOCALHOST",),
        ("Host: [::1]:8000",),
        ("Host: localhost:8000", "Origin: http://localhost:3000"),
    ],
)
def test_tk_4_this_machine_may(fields: tuple[str, ...]) -> None:
    assert read(*fields).path == ("faults",)


@pytest.mark.parametrize(
    "fields",
    [
        ("Host: rebound.example:8000",),
        ("Host: 127.0.0.1.example",),
        ("Host: localhost:8000", "Origin: https://example.org"),
        ("Host: localhost:8000", "Origin: null"),
        ("Host: ",),
    ],
)
def test_tk_4_another_server_s_page_may_not(fields: tuple[str, ...]) -> None:
    with pytest.raises(Refused) as refused:
        read(*fields)
    assert refused.value.answer.status == 403
