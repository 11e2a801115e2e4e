"""`barnabas console` as a process, and a browser for it that sends what a test says."""

from __future__ import annotations

import http.client
import json
import select
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.shapes import misfits

PATIENCE_S = 60.0


class Answer(NamedTuple):
    """A response, whose body was read."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WebConsole:
    """A running console."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request whose path is not changed in any way."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=given)
            response = connection.getresponse()
            shown = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, shown, response.read())
        finally:
            connection.close()

    def get(self, path: str, shape: Any) -> Any:
        """Return the JSON of an address, which must have the shape."""
        answer = self.ask(path)
        assert answer.status == 200, answer
        value = answer.json
        assert list(misfits(value, shape)) == []
        return value

    def post(self, path: str, value: Any, **headers: str | None) -> Answer:
        """Send JSON, or bytes as they are, with the headers of the page; None leaves one out."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        address = f"127.0.0.1:{self.port}"
        given = {
            "Host": address,
            "Origin": f"http://{address}",
            "Content-Type": "application/json",
            **({} if "X_Barnabas_Console" in headers else {"X-Barnabas-Console": self.secret}),
            **{name.replace("_", "-"): each for name, each in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            shown = {name: each for name, each in given.items() if each is not None}
            connection.request("POST", path, body, shown)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    @cached_property
    def secret(self) -> str:
        """What the page sends with each change."""
        found: str = self.ask("/api/actions").json["secret"]
        return found

    @contextmanager
    def follow(self, path: str) -> Iterator[Iterator[Any]]:
        """Yield the events of a stream, which has begun."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.getheader("content-type") == "text/event-stream; charset=utf-8"
            first = response.readline()
            assert first == b": \n", first
            yield _events(response)
        finally:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def _events(response: http.client.HTTPResponse) -> Iterator[Any]:
    while line := response.readline():
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


@contextmanager
def web_console(servers: str, *words: str) -> Iterator[WebConsole]:
    """Run a console on a free port until the end of the block."""
    line = with_settings(["console", "--port", "0", *words])
    with _served([*line, "--bootstrap-server", servers]) as running:
        yield running


@contextmanager
def pages_server(out: Path, *words: str) -> Iterator[WebConsole]:
    """Run `barnabas pages serve` on a free port until the end of the block."""
    with _served(["pages", "serve", str(out), "--port", "0", *words]) as running:
        yield running


@contextmanager
def _served(line: Sequence[str]) -> Iterator[WebConsole]:
    with subprocess.Popen(
        [COMMAND, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
            ready = process.stdout.readline().decode() if readable else ""
            begin = f"barnabas {line[0]} ready on http://"
            assert ready.startswith(begin), process.stderr.read()
            yield WebConsole(process, int(ready.rstrip().rstrip("/").rpartition(":")[2]))
        finally:
            process.kill()
