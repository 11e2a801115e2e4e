"""`barnabas server start` as a child process: what an operator has, and may kill."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.kit.secured import suite

COMMAND = Path(sys.executable).parent / "barnabas"
START_SECONDS = 120.0
STOP_SECONDS = 120.0


class BrokerProcess:
    """One broker on one port and one data directory, started as often as a test wants.

    The port is chosen once and kept, so that clients find the broker again after a restart; what
    it says on standard error is collected in `log` (a file), over all its lives.
    """

    def __init__(self, directory: Path, *options: str, command: Path = COMMAND) -> None:
        self.data_dir = directory / "data"
        self.log = directory / "broker.log"
        self.port = free_port()
        self.options = options
        self.command = command
        self.prefix: tuple[str, ...] = ()
        self.words: tuple[str, ...] = ()  # more of the command line
        self.metrics_port = free_port() if suite.IS_SECURED else 0  # for the search there
        self.process: subprocess.Popen[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> str:
        """Returns the ready line."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command(), stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if readable else ""
        assert line.startswith("barnabas ready on "), (line, self.log.read_text())
        if suite.IS_SECURED:
            from tests.kit.secured import secrets  # loaded only where it is used

            secrets.look("printed", "the ready line", line)
            secrets.look_at_processes()
        return line

    def refuse(self) -> str:
        """Starts it where it must not start: exit code 1, its standard error."""
        done = subprocess.run(
            self._command(), capture_output=True, text=True, timeout=START_SECONDS
        )
        assert (done.returncode, done.stdout) == (1, ""), done
        return done.stderr

    def kill(self) -> None:
        """`kill -9`: nothing runs any more, nothing is written any more."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        if suite.IS_SECURED:
            self._search()
        return self._end(signal.SIGTERM)

    def _search(self) -> None:
        from tests.kit.secured import secrets  # loaded only where it is used

        ids = (each.removeprefix("broker.id=") for each in self.options)
        number = next((each for each in ids if each.isdigit()), "0")
        secrets.look_at_broker(number, self.bootstrap_servers, self.metrics_port)
        secrets.look("printed", str(self.log), self.log.read_bytes())

    def _end(self, number: int) -> int:
        assert self.process is not None and self.process.stdout is not None
        self.process.send_signal(number)
        code = self.process.wait(STOP_SECONDS)
        self.process.stdout.close()
        self.process = None
        return code

    def _more(self) -> list[str]:
        return [f"barnabas.metrics.port={self.metrics_port}"] if self.metrics_port else []

    def _command(self) -> list[str]:
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{self.port}"
        start = [str(self.command), "server", "start", "--data-dir", str(self.data_dir)]
        options = (listeners, *self._more(), *self.options)
        overrides = [part for option in options for part in ("--override", option)]
        return [*self.prefix, *start, *overrides, *self.words, *suite.broker_words()]


@contextlib.contextmanager
def broker_process(
    directory: Path, *options: str, command: Path = COMMAND
) -> Iterator[BrokerProcess]:
    """A running broker; killed at the end if it still runs then."""
    broker = BrokerProcess(directory, *options, command=command)
    try:
        broker.start()
        yield broker
    finally:
        if broker.process is not None:
            broker.kill()


# Apart from those of processes with the next ids, which run other tests at the same time.
_ports = itertools.count(20000 + os.getpid() * 199 % 5000)


def free_port() -> int:
    """A port that is free now, and was not given by this before; below the range from which
    connections take theirs."""
    for port in itertools.islice(_ports, 5000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise OSError("no free port")
