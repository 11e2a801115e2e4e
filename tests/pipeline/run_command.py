"""`python -m barnabas_pipeline run` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import barnabas
from barnabas.client import SyncConsumer, TopicPartition
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.behaviour.figures import read_figures
from barnabas_pipeline.snapshot import Snapshot
from tests.kit import foreign
from tests.pipeline.independent import Found

DEAD_LETTER_TOPIC = "web-access-dead-letters"
PATIENCE_S = 240


class Command:
    """The command in a process of its own; killed at the end of the test if it still runs."""

    def __init__(self, out: Path, log: Path) -> None:
        self.out = out
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> subprocess.Popen[str]:
        given = ["--out", str(self.out), "--master", "local[2]"]
        if "--no-input" not in options:
            given += ["--input", str(self.log)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas_pipeline", "run", *given, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.process

    def until(self, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        assert self.process is not None
        give_up_at = time.monotonic() + patience_s
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < give_up_at
            time.sleep(0.02)

    def agrees(self, found: Found) -> None:
        """The tables say what an uninterrupted run would have said, and so does its broker."""
        self.figures_agree(found)
        letters = Counted(self.out).dead_letters()
        assert letters == sorted(found.bad)

    def figures_agree(self, found: Found) -> None:
        figures = read_figures(Snapshot(self.out / "tables", BEHAVIOUR))
        assert figures.accounts[:3] == (found.lines, len(found.hits), len(found.bad))
        assert figures.humans.visitors + figures.robots.visitors == found.visitors
        assert figures.humans.sessions + figures.robots.sessions == len(found.sessions)
        assert figures.humans.bounces + figures.robots.bounces == found.bounces
        assert figures.humans.open + figures.robots.open == found.open()
        assert figures.timeline.size_bytes == sum(hit.size_bytes for hit in found.hits)


@contextmanager
def running_command(out: Path, log: Path) -> Iterator[Command]:
    """The command, which does not outlive its test."""
    foreign.require_java()
    command = Command(out, log)
    try:
        yield command
    finally:
        if command.process is not None:
            if command.process.poll() is None:
                command.process.kill()
            command.process.communicate()


class Counted:
    """What lies in the broker of a workspace that is not in use any more."""

    def __init__(self, out: Path) -> None:
        self._directory = out / "broker"

    def dead_letters(self) -> list[bytes]:
        with barnabas.Broker(self._directory) as broker:
            return dead_letters(broker.bootstrap_servers)


def dead_letters(servers: str) -> list[bytes]:
    """Sorted."""
    partition = TopicPartition(DEAD_LETTER_TOPIC, 0)
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        end = consumer.end_offsets([partition])[partition]
        consumer.assign([partition])
        consumer.seek(partition, 0)
        values: list[bytes] = []
        while consumer.position(partition) < end:
            values.extend(record.value or b"" for record in consumer.poll(timeout_ms=1000))
    return sorted(values)
