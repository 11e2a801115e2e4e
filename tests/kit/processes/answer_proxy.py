"""A wire in front of a broker that loses, delays and repeats the broker's answers.

Requests always arrive, whole and once; so what a client does about a lost answer is seen in the
broker's log. Runs in a thread of its own, as the embedded broker does.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum

import barnabas
from tests.kit.processes.broker_process import free_port

DELAY_S = 0.05
_LOOK_S = 0.005


class Fate(Enum):
    """What becomes of an answer."""

    PASS = "arrives"
    SWALLOW = "never arrives"
    DELAY = "arrives late"
    DOUBLE = "arrives twice"
    CUT = "is lost with the connection"
    HOLD = "waits until the test lets it go"


Rule = Callable[[int], Fate]
"""By the API key of the request."""


def let_pass(key: int) -> Fate:
    return Fate.PASS


class AnswerProxy:
    def __init__(self, broker_port: int, port: int) -> None:
        self.broker_port = broker_port
        self.port = port
        self.rule: Rule = let_pass
        self.before_request: Callable[[int], None] = lambda key: None
        """Called with the API key of each request before the broker gets it."""
        self.request_counts: dict[int, int] = {}  # by API key
        self.cut_count = 0  # connections that ended with an answer
        self._loop = asyncio.new_event_loop()
        self.may_go = threading.Event()  # what is held
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._serve_all, daemon=True)
        self._thread.start()
        assert self._listening.wait(60)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lose(self, *keys: int) -> None:
        """Answers to requests of these kinds never arrive, from now on."""
        self.rule = lambda key: Fate.SWALLOW if key in keys else Fate.PASS

    def count(self, key: int) -> int:
        """How many requests of this kind the broker has been sent."""
        return self.request_counts.get(key, 0)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve_all(self) -> None:
        async def listen() -> None:
            await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self._listening.set()

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(listen())
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.broker_port)
        asked: deque[int] = deque()  # the API keys of requests without an answer
        back = asyncio.create_task(self._answers(asked, upstream_reader, writer))
        with contextlib.suppress(EOFError, OSError):
            while True:
                frame = await _frame(reader)
                key = int.from_bytes(frame[4:6])
                self.request_counts[key] = self.request_counts.get(key, 0) + 1
                asked.append(key)
                self.before_request(key)
                upstream.write(frame)
        back.cancel()
        upstream.close()
        writer.close()

    async def _answers(
        self, asked: deque[int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                frame = await _frame(reader)
                fate = self.rule(asked.popleft())
                if fate is Fate.CUT:
                    self.cut_count += 1
                    break
                if fate is Fate.DELAY:
                    await asyncio.sleep(DELAY_S)
                while fate is Fate.HOLD and not self.may_go.is_set():
                    await asyncio.sleep(_LOOK_S)
                if fate is not Fate.SWALLOW:
                    writer.write(frame)
                if fate is Fate.DOUBLE:
                    writer.write(frame)
        writer.close()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size))


@contextlib.contextmanager
def behind_a_proxy(**config: str) -> Iterator[AnswerProxy]:
    """A broker whose clients find it through the proxy alone."""
    port = free_port()
    settings = {name.replace("_", "."): value for name, value in config.items()}
    settings |= {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "group.initial.rebalance.delay.ms": "0",
    }
    with barnabas.Broker(config=settings) as broker:
        proxy = AnswerProxy(broker.port, port)
        try:
            yield proxy
        finally:
            proxy.close()
