"""Implements `barnabas server stop`. Unlike `kafka-server-stop.sh`, this command stops only one
broker, and waits until that broker has ended.

On SIGTERM, a broker stops cleanly, that is, it flushes its logs and marks its directories clean.
The signal is sent only if the process is certainly a broker, because another process may have
reused the id.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.server.pid_file import process_began_ticks, read_pid_file
from barnabas.cli.server.processes import ServerProcess, find_servers
from barnabas.cli.waiting import Waiting
from barnabas.config import BROKER_KEYS, from_environment, load_properties
from barnabas.errors import ConfigError

_POLL_S = 0.05


class CannotStop(Exception):
    """Raised if a broker cannot be stopped; the message says why and what to do."""


class Selection(NamedTuple):
    """Selects a broker. If the selection is empty, it means the only broker."""

    directory: Path | None = None
    pid: int | None = None
    port: int | None = None
    user_id: int | None = None
    """The owner of the process. It prevents another user's broker from being selected."""

    def __str__(self) -> str:
        if self.directory is not None:
            return f" on {self.directory}"
        if self.pid is not None:
            return f" with process id {self.pid}"
        return "" if self.port is None else f" on port {self.port}"


def directory_of(properties_file: str) -> Path | None:
    """Return the first log directory in a broker's properties file, or None if there is no such
    file.

    Kafka's script ignores its arguments, so a missing file is no error. Raises CannotStop if it
    cannot be read.
    """
    if not Path(properties_file).exists():
        return None
    try:
        settings = load_properties(properties_file)
    except ConfigError as error:
        raise CannotStop(str(error)) from error
    return _log_directory(settings)


def default_selection() -> Selection:
    """Select the broker that `server start` runs if it is given no options: this user's broker on
    the default log directory. To select any other broker on the machine, use the options.
    """
    user_id = os.getuid() if hasattr(os, "getuid") else None
    return Selection(_log_directory({}), user_id=user_id)


def _log_directory(settings: Mapping[str, str]) -> Path:
    """Return a broker's first log directory, given its settings and environment."""
    settings = {**settings, **from_environment(os.environ)}
    named = settings.get("log.dirs") or settings.get("log.dir") or BROKER_KEYS["log.dir"].default
    return Path(str(named).split(",")[0].strip())


def choose(selection: Selection, servers: list[ServerProcess]) -> ServerProcess:
    """Return the one selected broker. Raises CannotStop."""
    found = [server for server in servers if _is_meant(server, selection)]
    if not found:
        others = ""
        if servers and any(selection):
            others = f"; there is {_list_text(servers)}: choose one with --dir, --port or --pid"
        raise CannotStop(f"no server to stop{selection}{others}")
    if len(found) > 1:
        raise CannotStop(
            f"several servers are running, {_list_text(found)}; choose one with --dir, --port or "
            "--pid"
        )
    return found[0]


def _is_meant(server: ServerProcess, selection: Selection) -> bool:
    directory, pid, port, user_id = selection
    if directory is not None:
        recorded = read_pid_file(directory)
        is_recorded = recorded is not None and recorded.pid == server.pid and recorded.is_alive
        # The pid file or the open .lock indicates the directory. Only the locks of this user are
        # visible.
        if not is_recorded and directory.resolve() not in server.directories:
            return False
    return (
        (pid is None or server.pid == pid)
        and (port is None or port in server.ports)
        and (user_id is None or server.user_id == user_id)
    )


def _list_text(servers: list[ServerProcess]) -> str:
    return " and ".join(map(str, servers))


def stop(
    selection: Selection,
    timeout_ms: int,
    find: Callable[[], list[ServerProcess]] = find_servers,
) -> ServerProcess:
    """Signal the broker to stop, and wait until it ends. Raises CannotStop."""
    server = choose(selection, find())
    began_ticks = process_began_ticks(server.pid)
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        return server  # it stopped on its own just before
    except PermissionError as cause:
        raise CannotStop(f"server {server} belongs to another user") from cause
    ends_at_s = time.monotonic() + timeout_ms / 1000
    with Waiting(f"server {server} to stop"):
        # Another process may have reused the id.
        while began_ticks is not None and process_began_ticks(server.pid) == began_ticks:
            if time.monotonic() >= ends_at_s:
                raise CannotStop(
                    f"server {server} did not stop within {timeout_ms} ms; it may still be "
                    "stopping; see its log"
                )
            time.sleep(_POLL_S)
    return server
