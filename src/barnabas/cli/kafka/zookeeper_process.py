"""Starts and stops ZooKeeper for Kafka's scripts and ZooKeeper's own.

The server is ours, unless Java's has already written to the data directory, or the configuration
needs it, such as for an ensemble (ZS-3). As with a broker, `barnabas.pid` in the data directory
identifies the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.cluster.zookeeper import (
    has_javas_files,
    java_command,
    missing_part,
    mode,
    own_command,
)
from barnabas.cli.kafka.tool import NotCovered
from barnabas.cli.server.daemon import log_file_of
from barnabas.cli.server.pid_file import PROC, claim, process_began_ticks, read_pid_file
from barnabas.config import load_properties
from barnabas.errors import BarnabasError
from barnabas.zookeeper.settings import unsupported_key

_CLIENT_PORT = 2181
_START_SECONDS, _STOP_SECONDS = 60.0, 60.0
_POLL_SECONDS = 0.05
_TAIL_LINES = 5
_JAVAS_MAIN = b"org.apache.zookeeper.server.quorum.QuorumPeerMain"
_OWN_WORDS = [b"zookeeper", b"start"]


class CannotRun(BarnabasError):
    """Raised if ZooKeeper does not start or stop; the message says why and what to do."""


class ZooKeeper(NamedTuple):
    """Represents the server that a configuration file describes."""

    config: Path
    data: Path
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        """The file for the output of a server in the background."""
        return log_file_of(self.data)

    def mode(self) -> str:
        """Return ZooKeeper's mode, or "" if it does not respond."""
        return mode((self.host, self.port))


def server_of(config: Path) -> ZooKeeper:
    """Return the server that a configuration file describes. Raises ConfigError or CannotRun."""
    values = load_properties(config)
    data = values.get("dataDir", "").strip()
    if not data:
        raise CannotRun(f"{config}: add dataDir=DIRECTORY, where ZooKeeper keeps its tree")
    port = values.get("clientPort", str(_CLIENT_PORT)).strip()
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise CannotRun(f"{config}: clientPort={port}: not a port from 1 to 65535")
    # 0.0.0.0 means every address, so connect to localhost.
    host = values.get("clientPortAddress", "").strip()
    return ZooKeeper(
        config, Path(data), "localhost" if host in ("", "0.0.0.0") else host, int(port)
    )


def run(server: ZooKeeper) -> int:
    """Replace this process with the server, so that signals go directly to it. Raises NotCovered or
    CannotRun."""
    words = _claim(server)
    os.execv(words[0], words)


def start(server: ZooKeeper) -> int:
    """Start the server in the background, wait until it responds, and return its process id.

    Raises NotCovered or CannotRun.
    """
    running = read_pid_file(server.data)
    if running is not None and running.is_alive:
        raise CannotRun(f"ZooKeeper is already running, as process {running.pid}")
    # A second server could not bind the port, and we would mistake the first one for it.
    if server.mode():
        raise CannotRun(f"another ZooKeeper listens on {server.address}")
    words = _command(server)
    with server.log.open("ab") as output:
        began_at = output.tell()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # ignores the terminal's Ctrl-C and hang-up
        )
    claim(server.data, server.address, process.pid)
    ends_at = time.monotonic() + _START_SECONDS
    # The server is ready once it responds to "srvr" with a mode. Its port opens earlier.
    while not server.mode():
        if process.poll() is not None:
            raise CannotRun(f"ZooKeeper exited: {_tail(server.log, began_at)}")
        if time.monotonic() > ends_at:
            process.terminate()
            raise CannotRun(f"ZooKeeper does not answer on {server.address}; see {server.log}")
        time.sleep(_POLL_SECONDS)
    return process.pid


def stop(server: ZooKeeper) -> bool:
    """Stop the server of this configuration, and wait until it ends. Returns False if it is not
    running. Raises CannotRun.
    """
    recorded = read_pid_file(server.data)
    if recorded is None or not recorded.is_alive:
        return False
    return stop_process(recorded.pid)


def stop_process(pid: int) -> bool:
    """Stop a server's process and wait for it. Returns False if it had ended. Raises CannotRun."""
    began_ticks = process_began_ticks(pid)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise CannotRun(f"ZooKeeper, process {pid}, belongs to another user") from error
    ends_at = time.monotonic() + _STOP_SECONDS
    # Compare start times, because another process may reuse the id as soon as this one has ended.
    while began_ticks is not None and process_began_ticks(pid) == began_ticks:
        if time.monotonic() > ends_at:
            raise CannotRun(
                f"ZooKeeper, process {pid}, does not stop; to kill it, run kill -9 {pid}"
            )
        time.sleep(_POLL_SECONDS)
    return True


def processes(proc: Path = PROC) -> Iterator[int]:
    """Yield the process ids of this user's servers, if the system shows them."""
    for entry in proc.iterdir() if proc.is_dir() else ():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
            if _is_server(words) and entry.stat().st_uid == os.getuid():
                yield int(entry.name)
        except OSError:
            continue  # it has ended


def _is_server(words: list[bytes]) -> bool:
    """Return whether a command line runs a ZooKeeper server, Java's or ours."""
    places = (at for at, word in enumerate(words) if word == _OWN_WORDS[0])
    return _JAVAS_MAIN in words or any(words[at : at + 2] == _OWN_WORDS for at in places)


def _claim(server: ZooKeeper) -> list[str]:
    words = _command(server)
    # The server can run without a pid file.
    if not claim(server.data, server.address):
        running = read_pid_file(server.data)
        if running is not None and running.is_alive:
            raise CannotRun(f"ZooKeeper is already running, as process {running.pid}")
    return words


def _command(server: ZooKeeper) -> list[str]:
    server.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = server.config.absolute()
    needs_java = ""
    if has_javas_files(server.data):
        needs_java = f"Java's ZooKeeper keeps its tree in {server.data}"
    elif key := unsupported_key(load_properties(server.config)):
        needs_java = f"{server.config} sets {key}, which only Java's ZooKeeper supports"
    if not needs_java:
        return own_command(config)
    missing = missing_part(os.environ)
    if missing:
        raise NotCovered(f"{needs_java}, so this script needs {missing}")
    return java_command(os.environ, server.data, server.config.absolute())


def _tail(log: Path, began_at: int) -> str:
    with log.open(encoding="utf-8", errors="replace") as output:
        output.seek(began_at)
        lines = [line.strip() for line in output if line.strip()]
    return " | ".join(lines[-_TAIL_LINES:]) or f"it printed nothing; see {log}"
