"""Runs `barnabas track serve` as a process, and senders that repeat their batches."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

from barnabas.client import ConsumerRecord, SyncConsumer, TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.processes.web_console import PATIENCE_S, Answer
from tests.kit.waiting import wait_until

SHOP = "https://shop.example"


class Tracking:
    """A running server for events, which may be killed and started again."""

    def __init__(self, servers: str, origin: str = SHOP) -> None:
        self.port = free_port()
        # Senders in tests share a network, and send faster than it may by default.
        self.options = ["--rate", "none"]
        self._origin = origin
        self._servers = servers
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        line = ["track", "serve", "--port", str(self.port), "--allow-origin", self._origin]
        line += self.options
        self.process = subprocess.Popen(
            [COMMAND, *with_settings(line), "--bootstrap-server", self._servers],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        ready = self.process.stdout.readline() if readable else ""
        assert ready.startswith("barnabas track ready on http://"), self.process.stderr.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(
        self, path: str, body: bytes | None = None, method: str = "GET", **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            response = connection.getresponse()
            shown = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, shown, response.read())
        finally:
            connection.close()

    def send(self, *events: object, **headers: str) -> Answer:
        given = {"Content-Type": "application/json", "User-Agent": "Firefox/140.0", **headers}
        body = json.dumps({"events": events}).encode()
        return self.ask("/v1/events", body, "POST", **given)


@contextlib.contextmanager
def tracking(servers: str, origin: str = SHOP) -> Iterator[Tracking]:
    running = Tracking(servers, origin)
    running.start()
    try:
        yield running
    finally:
        running.kill()


def records(servers: str, topic: str) -> list[ConsumerRecord]:
    """Read a topic of one partition."""
    place = TopicPartition(topic, 0)
    found: list[ConsumerRecord] = []
    with SyncConsumer(servers) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        while consumer.position(place) < consumer.end_offsets([place])[place]:
            found += consumer.poll(1_000)
    return found


def event(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "time": time.time_ns() // 1_000_000, "name": "pageview", **more}


class Senders:
    """Trackers that send each batch until it is answered with 200."""

    def __init__(self, server: Tracking, count: int = 3) -> None:
        self.stored: set[str] = set()
        self._server = server
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(count)
        ]
        for each in self._threads:
            each.start()

    def end(self) -> None:
        """Return once the last batches are answered."""
        self._is_over.set()
        for each in self._threads:
            each.join(PATIENCE_S)
            assert not each.is_alive()

    def _run(self, number: int) -> None:
        batch = 0
        while not self._is_over.is_set():
            batch += 1
            names = [f"event-{number}-{batch}-{each}" for each in range(10)]
            wait_until(lambda names=names: self._is_stored(names))  # type: ignore[misc]
            self.stored.update(names)

    def _is_stored(self, names: list[str]) -> bool:
        try:
            answer = self._server.send(*map(event, names))
        except (OSError, http.client.HTTPException):
            return False  # the server is not there
        assert answer.status in (200, 503), answer
        return answer.status == 200


def await_more(senders: Senders, count: int = 300) -> None:
    before = len(senders.stored)
    wait_until(lambda: len(senders.stored) >= before + count)
