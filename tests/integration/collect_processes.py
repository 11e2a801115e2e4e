"""`barnabas collect` as its users run it, beside a broker of its own."""

from __future__ import annotations

import contextlib
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import barnabas
from barnabas.client import ConsumerRecord, SyncConsumer, TopicPartition
from tests.kit.pipeline.topics import create
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.command_line import COMMAND


class Collecting:
    """Processes of the command, for one broker; those that still run are killed at the end."""

    def __init__(self, broker: barnabas.Broker | BrokerProcess, logs: Path) -> None:
        self.logs = logs
        self.broker = broker
        self.prefix: tuple[str, ...] = ()  # a program that runs the command
        self._processes: list[subprocess.Popen[str]] = []

    def start(
        self,
        *options: str,
        before: Callable[[], None] | None = None,
        stdin: int | IO[bytes] | None = None,
    ) -> subprocess.Popen[str]:
        command = [*self.prefix, COMMAND, "collect", "--topic", "lines", "--name", "test", *options]
        process = subprocess.Popen(
            [*command, "--bootstrap-server", self.broker.bootstrap_servers],
            stdin=stdin,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        self._processes.append(process)
        return process

    def once(self, *options: str, code: int = 0, before: Callable[[], None] | None = None) -> str:
        _, errors = (process := self.start("--once", *options, before=before)).communicate()
        assert process.returncode == code and "Traceback" not in errors, errors
        return errors

    def kill_all(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def records(self, most: float = math.inf, topic: str = "lines") -> list[ConsumerRecord]:
        """All that are committed, or the first of them."""
        place = TopicPartition(topic, 0)
        servers = self.broker.bootstrap_servers
        with SyncConsumer(servers, isolation_level="read_committed") as consumer:
            consumer.assign([place])
            consumer.seek(place, 0)
            found: list[ConsumerRecord] = []
            while consumer.position(place) < consumer.end_offsets([place])[place]:
                found += consumer.poll(1_000)
                if len(found) >= most:
                    return found[: int(most)]
        return found

    def values(self, topic: str = "lines") -> list[bytes]:
        return [record.value or b"" for record in self.records(topic=topic)]


@contextlib.contextmanager
def collecting_in(directory: Path, **config: str) -> Iterator[Collecting]:
    """`config`: of the broker, with underscores."""
    (directory / "logs").mkdir()
    given = {name.replace("_", "."): value for name, value in config.items()}
    with barnabas.Broker(directory / "broker", config=given) as broker:
        create(broker, "lines")
        running = Collecting(broker, directory / "logs")
        try:
            yield running
        finally:
            running.kill_all()
