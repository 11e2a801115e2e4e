"""LG-2, SP-2, DL-1: `barnabas collect` and rsyslog follow the same logs, which are rotated, while
both shippers and the broker are killed and the disks of the logs and of the broker get full.

Readers of committed records have each line of ours once. What rsyslog loses and doubles is printed.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin
from tests.integration.collect_processes import Collecting
from tests.integration.log_writers import LogWriter
from tests.kit import foreign
from tests.kit.processes import rsyslog
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.full_disks import SmallFilesystem, small_filesystem
from tests.kit.waiting import wait_until

TOPICS = ("lines", "rsyslog")
GOES_ON_S = 90.0
SETTLED_S = 5.0
SANE_SHARE = 0.3
"""The least share of the lines that rsyslog must have sent for the comparison to mean anything."""


class Scene:
    """Programs that write rotated logs to a small disk, both shippers, and a broker on another."""

    def __init__(
        self, directory: Path, disks: tuple[SmallFilesystem, SmallFilesystem], chance: random.Random
    ) -> None:
        self._chance = chance
        self._logs, self._brokers = disks
        self._logs.directory.mkdir()
        self.writers = [
            LogWriter(self._logs.directory / f"{name}.log", chance, is_timed=is_timed)
            for name, is_timed in (("timed", True), ("plain", False))
        ]
        self._broker = BrokerProcess(directory)
        self._broker.data_dir = self._brokers.directory
        self._broker.start()
        with SyncAdmin(self._broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic, 1) for topic in TOPICS])
        inside = self._logs.inner / "data"
        self.collecting = Collecting(self._broker, inside)
        self.collecting.prefix = self._logs.entering
        self.paths = (str(inside / "*.log"), "--compression", "none")
        self.collecting.once(*self.paths)  # rotated files from before the first look are not sent
        self._collector = self.collecting.start(*self.paths)
        # Its state is on the disk of the logs, as the positions of ours are on the broker's.
        (self._logs.directory.parent / "rsyslog").mkdir()
        self._shipping = rsyslog.Shipping(
            directory,
            inside / "*.log",
            self._broker.bootstrap_servers,
            "rsyslog",
            self._logs.inner / "rsyslog",
            lines_between_states=100,
        )
        self._rsyslog = self._started_rsyslog()
        self._of_rsyslog, self._counted_at_s = -1, 0.0  # its records, when they were counted last

    def write(self, within_s: float) -> None:
        """Write lines and rotate the logs for as long as that."""
        ends_at_s = time.monotonic() + within_s
        while time.monotonic() < ends_at_s:
            for writer in self.writers:
                writer.write(self._chance.randrange(40))
                if self._chance.random() < 0.02:
                    writer.rotate()
            time.sleep(0.01)

    def kill_collector(self) -> None:
        self._collector.kill()
        self._collector.communicate()
        self.write(0.3)
        for writer in self.writers:
            writer.rotate()
        self._collector = self.collecting.start(*self.paths)

    def kill_rsyslog(self) -> None:
        self._rsyslog.kill()
        self._rsyslog.wait()
        self.write(0.3)
        self._rsyslog = self._started_rsyslog()

    def kill_broker(self) -> None:
        self._broker.kill()
        self.write(0.5)
        self._broker.start()

    def fill_logs(self) -> None:
        """Fill the disk to which the programs write, and with it rsyslog's state."""
        refused = [writer.refused for writer in self.writers]
        self._logs.fill_up()

        def are_refused() -> bool:
            self.write(0.1)
            now = [writer.refused for writer in self.writers]
            return all(after > before for before, after in zip(refused, now, strict=True))

        wait_until(are_refused)
        if self._chance.random() < 0.5:
            self._collector.kill()
        self._logs.make_room()
        self.wait_for_collector()

    def fill_broker(self) -> None:
        def write() -> None:
            self.write(0.1)
            self.wait_for_collector()

        wait_until(lambda: self._brokers.has_ended(self._broker, write), GOES_ON_S)
        self.write(0.3)
        self._brokers.make_room()
        self._broker.start()

    def wait_for_lines(self) -> None:
        """Return once the collector has sent all whole lines."""
        at_least = sum(writer.lines().total() - 1 for writer in self.writers)
        wait_until(lambda: self._has_sent(at_least), GOES_ON_S)

    def _has_sent(self, lines: int) -> bool:
        self.wait_for_collector()
        return len(self.collecting.values()) >= lines

    def wait_for_collector(self) -> None:
        """Start it again if it has ended, as a service does."""
        if self._collector.poll() is not None:
            _, errors = self._collector.communicate()
            assert "Traceback" not in errors, errors
            self._collector = self.collecting.start(*self.paths)

    def finish(self) -> None:
        """Close the logs, and have both shippers send the rest."""
        for writer in self.writers:
            writer.finish()
            writer.close()
        self.collecting.kill_all()
        self.collecting.once(*self.paths)
        wait_until(self._has_rsyslog_settled, GOES_ON_S)

    def _has_rsyslog_settled(self) -> bool:
        """Return whether rsyslog sends nothing more, for longer than it waits between attempts."""
        count = len(self.collecting.values("rsyslog"))
        if count > self._of_rsyslog:
            self._of_rsyslog, self._counted_at_s = count, time.monotonic()
        return time.monotonic() - self._counted_at_s > SETTLED_S

    def close(self) -> None:
        self.collecting.kill_all()
        self._rsyslog.kill()
        self._rsyslog.wait()
        if self._broker.process is not None:
            self._broker.kill()

    def _started_rsyslog(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen((*self._logs.entering, *self._shipping.command()))


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[tuple[SmallFilesystem, SmallFilesystem]]:
    foreign.require_rsyslog()
    for name in ("logs", "broker"):
        (tmp_path / name).mkdir()
    with small_filesystem(tmp_path / "logs") as logs, small_filesystem(tmp_path / "broker") as own:
        yield logs, own


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [6, pytest.param(30, marks=pytest.mark.soak)])
def test_each_line_once_beside_rsyslog(
    tmp_path: Path, disks: tuple[SmallFilesystem, SmallFilesystem], rounds: int
) -> None:
    chance = random.Random(rounds)
    scene = Scene(tmp_path, disks, chance)
    happenings = (
        scene.kill_collector,
        scene.kill_rsyslog,
        scene.kill_broker,
        scene.fill_logs,
        scene.fill_broker,
    )
    try:
        for number in range(rounds):
            scene.write(0.5)
            happenings[number % len(happenings)]()
            if chance.random() < 0.5:
                scene.wait_for_lines()
        scene.finish()
        found = {topic: Counter(scene.collecting.values(topic)) for topic in TOPICS}
    finally:
        scene.close()
    written = Counter[bytes]()
    for writer in scene.writers:
        written += writer.lines()
    total = written.total()
    refused = sum(writer.refused for writer in scene.writers)
    print(f"{rounds} disasters, {total:,} lines; the disk refused {refused}")
    for topic, lines in found.items():
        counts = (written - lines).total(), (lines - written).total()
        print("{}: {:,} lost, {:,} too many".format(topic, *counts))
    lost, doubled = written - found["lines"], found["lines"] - written
    assert (lost.total(), doubled.total()) == (0, 0), (sorted(lost)[:3], sorted(doubled)[:3])
    share = (written & found["rsyslog"]).total() / total
    assert share > SANE_SHARE
