"""`barnabas track serve` as a process, and a sender whose events a test chooses."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import subprocess
from collections.abc import Iterator

from barnabas.client import ConsumerRecord, SyncConsumer, TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.processes.web_console import PATIENCE_S, Answer

SHOP = "https://shop.example"


class Tracking:
    """A running server for events, which may be killed and started again."""

    def __init__(self, servers: str, origin: str = SHOP) -> None:
        self.port = free_port()
        self._origin = origin
        self._servers = servers
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        line = ["track", "serve", "--port", str(self.port), "--allow-origin", self._origin]
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
