"""What a broker's own probes say: while it starts, while it runs, without a session, at its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.broker.server import Server
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.store import Znode
from barnabas.config import BrokerConfig
from tests.kit.broker.following import run
from tests.kit.processes.broker_process import free_port
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

READY = (200, "ready\n")


class _HeldSession(EmbeddedSession):
    """A session in which nothing is read before the test allows it."""

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store)
        self.may_read = asyncio.Event()

    async def read(self, path: str) -> Znode | None:
        await self.may_read.wait()
        return await super().read(path)


async def asked(port: int, path: str) -> tuple[int, str]:
    """The status and the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answer = (await asyncio.wait_for(reader.read(), PATIENCE_S)).decode()
    finally:
        writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ", 2)[1]), body


def test_a_broker_is_ready_while_it_serves_and_is_registered(tmp_path: Path) -> None:
    """UX-8: else 503 says why not; it is alive all the time."""

    async def test() -> None:
        session = _HeldSession(EmbeddedStore())
        port = free_port()
        config = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path),
            "barnabas.metrics.port": str(port),
        }
        server = Server(BrokerConfig(config), store=session)
        starting = asyncio.ensure_future(server.start())
        while not server.listeners or server.unready() != "registering the broker":
            await asyncio.sleep(0)
        assert await asked(port, "/readyz") == (503, "not ready: registering the broker\n")
        assert await asked(port, "/healthz") == (200, "ok\n")
        session.may_read.set()
        await starting
        assert await asked(port, "/readyz") == READY

        session.expire()
        code, reason = await asked(port, "/readyz")
        assert code == 503 and "the session with the metadata store has expired" in reason
        assert await asked(port, "/healthz") == (200, "ok\n")
        session.may_read.clear()
        session.reconnect()
        assert (await asked(port, "/readyz"))[0] == 503, "another session, and no registration"
        session.may_read.set()
        await until(lambda: not server.unready())
        assert await asked(port, "/readyz") == READY

        assert server.failure is not None
        server.failure.set_result("the disk hangs")
        assert await asked(port, "/readyz") == (503, "not ready: the disk hangs\n")
        await server.stop()
        assert server.unready() == "the disk hangs"

    run(test)


def test_a_broker_that_stops_is_not_ready(tmp_path: Path) -> None:
    """UX-8: from the first step of the stop on."""

    async def test() -> None:
        config = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
        server = Server(BrokerConfig(config))
        assert server.unready() == "loading logs"
        await server.start()
        assert server.unready() == ""
        stopping = asyncio.ensure_future(server.stop())
        await asyncio.sleep(0)
        assert server.unready() == "the broker is shutting down"
        await stopping
        assert server.unready() == "the broker is shutting down"

    run(test)
