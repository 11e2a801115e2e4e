"""A web service that writes to a topic, and has a consumer in the background.

pip install .
python examples/web_service.py                             on a broker of its own
python examples/web_service.py --servers localhost:9092 --port 8000

POST /orders with {"item": "tea", "count": 2} stores an order; GET /totals says how many of each
item were ordered, by all instances together: each reads the whole topic when it starts, and goes
on. SIGTERM and Ctrl-C end it cleanly. `testing_web_service.py` has its tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType, TracebackType
from typing import Any

import barnabas
from barnabas.client import (
    BarnabasError,
    NewTopic,
    SyncAdmin,
    SyncConsumer,
    SyncProducer,
    TopicAlreadyExists,
    TopicPartition,
)

TOPIC = "orders"
PATIENCE_S = 10  # of a request, for its order to be stored


class Orders:
    """What the service knows: a producer for all requests, and a thread that reads the topic."""

    def __init__(self, servers: str) -> None:
        with SyncAdmin(servers) as admin, contextlib.suppress(TopicAlreadyExists):
            admin.create_topics([NewTopic(TOPIC, num_partitions=3)])
        self._totals: Counter[str] = Counter()
        self._changed = threading.Lock()
        self._producer = SyncProducer(servers, value_serializer="json")
        # Without a group: each instance needs all records, from the first one on.
        self._consumer = SyncConsumer(
            servers, auto_offset_reset="earliest", value_deserializer="json"
        )
        partitions = self._consumer.partitions_for(TOPIC)
        self._consumer.assign([TopicPartition(TOPIC, number) for number in partitions])
        self._reader = threading.Thread(target=self._read, name="orders")
        self._reader.start()

    def place(self, item: str, count: int) -> None:
        """Return once the order is stored. Raises BarnabasError, TimeoutError."""
        self._producer.send(TOPIC, {"item": item, "count": count}).result(PATIENCE_S)

    def totals(self) -> dict[str, int]:
        with self._changed:
            return dict(self._totals)

    @property
    def is_reading(self) -> bool:
        return self._reader.is_alive()

    def close(self) -> None:
        """Store what was accepted, and end the thread."""
        self._producer.close()
        self._consumer.close()  # ends the iteration below
        self._reader.join()

    def _read(self) -> None:
        for record in self._consumer:
            with self._changed:
                self._totals[record.value["item"]] += record.value["count"]


class Service:
    """The HTTP server on a free port, or the given one, while in its `with` block."""

    def __init__(self, servers: str, port: int = 0) -> None:
        self._orders = Orders(servers)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self._orders))
        self._thread = threading.Thread(target=self._server.serve_forever, name="http")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Service:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()  # no more requests ...
        self._thread.join()
        self._server.server_close()  # ... and those under way are answered
        self._orders.close()


def _handler(orders: Orders) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path != "/orders":
                return self._answer(HTTPStatus.NOT_FOUND, {"error": "POST /orders"})
            try:
                order = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
                item, count = str(order["item"]), int(order["count"])
            except (ValueError, KeyError, TypeError) as error:
                return self._answer(HTTPStatus.BAD_REQUEST, {"error": repr(error)})
            try:
                orders.place(item, count)
            except (BarnabasError, TimeoutError) as error:  # the caller may try again
                return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
            return self._answer(HTTPStatus.CREATED, order)

        def do_GET(self) -> None:
            if self.path == "/totals":
                self._answer(HTTPStatus.OK, orders.totals())
            elif self.path == "/health":
                is_well = orders.is_reading
                status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, {"reading": is_well})
            else:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "GET /totals or /health"})

        def _answer(self, status: HTTPStatus, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            """Not a line for each request."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes orders, and counts them.")
    parser.add_argument("--servers", help="HOST:PORT,... of a running cluster")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with contextlib.ExitStack() as stack:
        servers = given.servers
        if servers is None:
            servers = stack.enter_context(barnabas.Broker()).bootstrap_servers
        service = stack.enter_context(Service(servers, given.port))
        print(f"listening at {service.address}", flush=True)
        stop.wait()
    print("stopped")


if __name__ == "__main__":
    main()
