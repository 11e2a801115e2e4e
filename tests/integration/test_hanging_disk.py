"""A broker whose disk hangs gives up its session, even while its event loop waits for that disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from barnabas.broker.seams import system_seams
from barnabas.broker.server import Server
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.config import BrokerConfig
from barnabas.storage.files import OsFiles
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.raw_client import PATIENCE_S

pytestmark = pytest.mark.slow

SESSION_MS = 60_000
"""Far longer than the test: it does not end by itself."""
IDS = "/brokers/ids"


class HangingFiles(OsFiles):
    """A disk that may hang."""

    __slots__ = ("goes_on", "hangs")

    def __init__(self) -> None:
        self.hangs = False
        self.goes_on = threading.Event()

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        if self.hangs:
            self.goes_on.wait()
        super().write(path, data, sync=sync)


class InAThread:
    """A broker of a cluster, on a loop that may be held up."""

    def __init__(self, directory: Path, connect: str) -> None:
        self.files = HangingFiles()
        properties = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(directory / "logs"),
            "log.dir.failure.timeout.ms": "1000",
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": str(SESSION_MS),
        }
        self.server = Server(BrokerConfig(properties), system_seams()._replace(files=self.files))
        self.loop = asyncio.new_event_loop()
        self.serves = threading.Event()
        self.reason = ""
        run = self.loop.run_until_complete
        self.thread = threading.Thread(target=run, args=(self._run(),), daemon=True)

    async def _run(self) -> None:
        await self.server.start()
        self.serves.set()
        assert self.server.failure is not None
        self.reason = await self.server.failure
        await self.server.abandon()

    def hang(self) -> None:
        """The disk hangs, and the loop waits for it."""
        self.files.hangs = True
        path = self.server.log_dirs[0] / "written on the loop"
        self.loop.call_soon_threadsafe(self.files.write, path, b"")

    def go_on(self) -> None:
        self.files.hangs = False
        self.files.goes_on.set()


async def _until_registered(connect: str, names: tuple[str, ...]) -> None:
    store = await ZooKeeperStore.open(Settings(connect))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                (node,) = await store.read_many([IDS])
                if node is not None and node.children == names:
                    return
                await asyncio.sleep(0.05)
    finally:
        await store.close()


def test_st_10_a_disk_that_hangs_keeps_no_leader_alive(tmp_path: Path) -> None:
    zookeeper = ZooKeeperProcess(tmp_path, tick_ms=3000)
    zookeeper.start()
    try:
        broker = InAThread(tmp_path, zookeeper.connect)
        broker.thread.start()
        try:
            assert broker.serves.wait(PATIENCE_S)
            asyncio.run(_until_registered(zookeeper.connect, ("1",)))
            broker.hang()
            asyncio.run(_until_registered(zookeeper.connect, ()))
            assert not broker.reason, "the loop still waits"
        finally:
            broker.go_on()
        broker.thread.join(PATIENCE_S)
        assert not broker.thread.is_alive()
        assert f"{tmp_path / 'logs'} has not completed a write within 1000 ms" in broker.reason
        assert broker.server.is_hung
    finally:
        zookeeper.kill()
