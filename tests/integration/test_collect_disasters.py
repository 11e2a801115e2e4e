"""SP-2, DL-1: `barnabas collect` and its broker are killed at any moment, the broker's disk gets
full, and the logs are rotated meanwhile; readers of committed records have each line once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin
from tests.integration.collect_processes import Collecting
from tests.integration.rotations import KINDS, Rotations
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.full_disks import DISKS, IN_EACH_RUN, Disk
from tests.kit.waiting import wait_until
from tests.kit.web_server import WebServer

HEADER = b"#Fields: client ident user line\n"
SERVERS = ("one", "another")
BALLAST = b"%0.99d\n" % 0 * 10
BROKER_S = 90.0
"""How long a broker may take to end with a full disk, and a collector to go on after it."""


class Scene:
    """Two servers that write to rotated logs, a broker on a disk of its own, and a collector."""

    def __init__(self, directory: Path, disk: Disk, chance: random.Random) -> None:
        self._chance = chance
        self._disk = disk
        self._ballast = directory / "logs" / "ballast.log"
        self.servers = []
        for name in SERVERS:
            (directory / "logs" / name).mkdir(parents=True)
            self.servers.append(WebServer(directory / "logs" / name, HEADER))
        self._rotations = [Rotations(server, chance) for server in self.servers]
        self.broker = BrokerProcess(directory)
        self.broker.data_dir = disk.directory
        self.broker.start()
        with SyncAdmin(self.broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("lines", 1)])
        self.collecting = Collecting(self.broker, directory / "logs")
        self.collecting.once(*self.paths)  # rotated files from before the first look are not sent
        self._collector = self.collecting.start(*self.paths)

    @property
    def paths(self) -> tuple[str, ...]:
        logs = self.collecting.logs
        return (str(logs / "*" / "*.log"), str(logs / "*.log"), "--compression", "none")

    def write(self, within_s: float) -> None:
        """Lines, half lines and rotations, as long as that."""
        ends_at_s = time.monotonic() + self._chance.random() * within_s
        while time.monotonic() < ends_at_s:
            for each in self._rotations:
                each.write()
                if self._chance.random() < 0.1:
                    each.rotate(self._chance.choice(KINDS))

    def wait_for_lines(self) -> None:
        """Return once the collector has sent what was written."""
        for server in self.servers:
            server.finish()
        lines = sum(len(server.written) for server in self.servers)
        wait_until(lambda: self._is_sent(lines), BROKER_S)

    def _is_sent(self, lines: int) -> bool:
        self.wait_for_collector()
        return sum(value.startswith(b"192.") for value in self.collecting.values()) >= lines

    def kill_collector(self) -> None:
        self._collector.kill()
        self._collector.communicate()
        for each in self._rotations:
            each.rotate(self._chance.choice(KINDS))
        self._collector = self.collecting.start(*self.paths)

    def kill_broker(self) -> None:
        self.broker.kill()
        self.write(0.3)
        self.broker.start()

    def kill_both(self) -> None:
        self.broker.kill()
        self.kill_collector()
        self.write(0.3)
        self.broker.start()
        # A collector that finds no broker at its start says so and ends, as a service does.
        self.wait_for_collector()

    def fill_disk(self) -> None:
        wait_until(lambda: self._disk.has_ended(self.broker, self._write_ballast), BROKER_S)
        self.write(0.3)
        if self._chance.random() < 0.5:
            self.kill_collector()
        self._disk.make_room()
        self.broker.start()

    def _write_ballast(self) -> None:
        with self._ballast.open("ab") as file:
            file.write(BALLAST)
        self.wait_for_collector()

    def wait_for_collector(self) -> None:
        if self._collector.poll() is not None:
            _, errors = self._collector.communicate()
            assert "Traceback" not in errors, errors
            self._collector = self.collecting.start(*self.paths)

    def close(self) -> None:
        self.collecting.kill_all()
        for server in self.servers:
            server.close()
        if self.broker.process is not None:
            self.broker.kill()


@pytest.fixture(params=IN_EACH_RUN)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with DISKS[request.param](tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(900)
# More rounds would fill the small filesystem with the lines themselves.
@pytest.mark.parametrize("rounds", [8, pytest.param(36, marks=pytest.mark.soak)])
def test_each_line_once(tmp_path: Path, disk: Disk, rounds: int) -> None:
    chance = random.Random(rounds)
    scene = Scene(tmp_path, disk, chance)
    happenings = (scene.kill_collector, scene.kill_broker, scene.kill_both, scene.fill_disk)
    try:
        for number in range(rounds):
            scene.write(1.0)
            happenings[number % len(happenings)]()
            if chance.random() < 0.5:
                scene.wait_for_lines()
        for server in scene.servers:
            server.reload()
        scene.kill_collector()
        scene.collecting.kill_all()
        scene.collecting.once(*scene.paths)
        found = Counter(scene.collecting.values())
    finally:
        scene.close()
    found.pop(HEADER.rstrip(b"\n"))
    ballast = BALLAST.splitlines()[0]
    filled = found.pop(ballast)
    written = Counter(line for server in scene.servers for line in server.written)
    lost, doubled = written - found, found - written
    assert (lost.total(), doubled.total()) == (0, 0), (sorted(lost)[:3], sorted(doubled)[:3])
    assert filled % 10 == 0
    print(f"{rounds} disasters: {found.total():,} lines once, {filled:,} to fill the disk")
