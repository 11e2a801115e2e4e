"""BT-5: `barnabas pages serve` answers many requests at once, and stops while some are waiting."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.kit.pipeline.event_records import records, take
from tests.kit.pipeline.shop_visits import events_of, shop_visits
from tests.kit.processes.web_console import WebConsole, pages_server

_AT_ONCE = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebConsole]:
    take(tmp_path / "tables", 0, records(events_of(shop_visits())))
    with pages_server(tmp_path) as running:
        yield running


def test_bt_5_two_hundred_requests_at_once_are_answered(server: WebConsole) -> None:
    # Each has its own filter, so that each answer is computed.
    paths = [f"/api/cards?page=/{number}" for number in range(_AT_ONCE)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = [*pool.map(server.ask, paths)]
    assert {each.status for each in answers} == {200}


def test_bt_5_the_server_stops_while_requests_wait(server: WebConsole) -> None:
    server.ask("/api/cards")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [
            pool.submit(server.ask, f"/api/cards?page=/{number}") for number in range(_AT_ONCE)
        ]
        next(each for each in asked if _status(each))
        assert server.stop(signal.SIGINT) == 0
        # The others were refused or closed.
        assert {_status(each) for each in asked} <= {200, 503, None}


def _status(asked: Future) -> int | None:
    try:
        return asked.result().status
    except (OSError, HTTPException):
        return None


def test_bt_5_the_page_is_named_in_errors(server: WebConsole) -> None:
    answer = server.post("/api/cards", {}, X_Barnabas_Console=None)
    assert answer.status == 405
    assert answer.json["error"] == "POST: the page only reads; use GET"
    answer = server.ask("/api/cards", Host="evil.example")
    assert answer.status == 403
    assert answer.json["error"].startswith("this page is not 'evil.example'")
