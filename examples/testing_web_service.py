"""The tests of `web_service.py`: a service of its own for each, on a broker that they share.

pip install '.[test]'
pytest examples/testing_web_service.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from web_service import TOPIC, Service

from barnabas.testing import Broker

PATIENCE_S = 30


@pytest.fixture
def service(barnabas_broker: Broker) -> Iterator[Service]:
    with Service(barnabas_broker.bootstrap_servers) as running:
        yield running


def ask(service: Service, path: str, content: object = None) -> tuple[int, Any]:
    """A GET, or the POST of a content: the status, and what was answered."""
    data = None if content is None else json.dumps(content).encode()
    try:
        with urlopen(Request(service.address + path, data), timeout=PATIENCE_S) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def wait_for_totals(service: Service, wanted: dict[str, int]) -> None:
    """The consumer is a moment behind: wait for what is to come, not for a time."""
    ends_at_s = time.monotonic() + PATIENCE_S
    while (seen := ask(service, "/totals")[1]) != wanted:
        assert time.monotonic() < ends_at_s, f"{seen} instead of {wanted}"
        time.sleep(0.01)


def test_an_order_is_stored_and_counted(service: Service, barnabas_broker: Broker) -> None:
    assert ask(service, "/orders", {"item": "tea", "count": 2}) == (
        201,
        {"item": "tea", "count": 2},
    )
    assert ask(service, "/orders", {"item": "tea", "count": 1})[0] == 201
    wait_for_totals(service, {"tea": 3})
    assert len(barnabas_broker.topic(TOPIC).records()) == 2


def test_all_instances_count_all_orders(service: Service, barnabas_broker: Broker) -> None:
    ask(service, "/orders", {"item": "tea", "count": 1})
    with Service(barnabas_broker.bootstrap_servers) as later:
        ask(later, "/orders", {"item": "bread", "count": 1})
        for each in (service, later):
            wait_for_totals(each, {"tea": 1, "bread": 1})


def test_a_wrong_order_is_refused(service: Service, barnabas_broker: Broker) -> None:
    assert ask(service, "/orders", {"item": "tea"}) == (400, {"error": "KeyError('count')"})
    assert ask(service, "/orders", ["tea"])[0] == 400
    assert ask(service, "/elsewhere", {})[0] == 404
    assert barnabas_broker.topic(TOPIC).records() == []


def test_what_a_broker_refuses_is_an_error_of_the_service(
    service: Service, barnabas_broker: Broker
) -> None:
    with barnabas_broker.faults.add(api="Produce", error="INVALID_RECORD"):
        status, answer = ask(service, "/orders", {"item": "tea", "count": 1})
    assert status == 503 and "orders" in answer["error"]
    assert ask(service, "/health") == (200, {"reading": True})
