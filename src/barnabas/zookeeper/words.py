"""Answers ZooKeeper's four-letter words, with which operators look at a server.

The words of the setting 4lw.commands.whitelist are answered. All others get the text with which
ZooKeeper refuses words that are not on its list.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from barnabas._version import __version__
from barnabas.named_tuple import NamedTuple
from barnabas.zookeeper.journal import JOURNAL_NAME, SNAPSHOT_NAME
from barnabas.zookeeper.settings import ZooKeeperSettings

WORD_BYTES = 4
BACKLOG = 512
"""How many connections may wait to be accepted."""

_VERSION = f"3.8.0-barnabas-{__version__}, built on 1970-01-01 00:00 UTC"
_DESCRIPTORS = Path("/dev/fd")
_KNOWN = frozenset(
    b"ruok srvr mntr conf cons crst dirs dump envi gtmk hash isro stat srst stmk wchc wchp "
    b"wchs".split()
)


class Figures(NamedTuple):
    """Holds what the server has counted."""

    received: int
    sent: int
    connections: int
    outstanding: int
    zxid: int
    nodes: int
    data_bytes: int
    ephemerals: int
    watches: int
    sessions: int
    min_latency_ms: int
    mean_latency_ms: float
    max_latency_ms: int
    uptime_ms: int


def is_word(first_bytes: bytes) -> bool:
    return first_bytes in _KNOWN


class ServerState(Protocol):
    """Describes a running server to the words."""

    settings: ZooKeeperSettings

    def figures(self) -> Figures: ...
    def client_rows(self, *, is_long: bool) -> list[str]:
        """Describe each connection in a line."""
        ...

    def session_expiries(self) -> list[tuple[int, list[int]]]:
        """Return the times at which sessions expire, in order, with their ids."""
        ...

    def connection_expiries(self) -> list[tuple[int, list[tuple[str, int]]]]:
        """Return the same for connections, with addresses and sessions. No session is 0."""
        ...

    def ephemerals(self) -> Mapping[int, Iterable[str]]:
        """Return the paths of ephemeral nodes by session."""
        ...

    def watches(self) -> list[tuple[int, str]]:
        """Return the session and the path of each watch."""
        ...

    def reset_connections(self) -> None:
        """Reset the counters of each connection."""
        ...

    def reset_server(self) -> None:
        """Reset the counters of the server as a whole."""
        ...


def answer(word: bytes, state: ServerState) -> str:
    """Return the response to a word."""
    name = word.decode()
    if name not in state.settings.words:
        return f"{name} is not executed because it is not in the whitelist.\n"
    return _ANSWERS[name](state)


def _srvr(state: ServerState) -> str:
    return f"Zookeeper version: {_VERSION}\n" + _summary(state.figures())


def _stat(state: ServerState) -> str:
    clients = "".join(state.client_rows(is_long=False))
    head = f"Zookeeper version: {_VERSION}\nClients:\n{clients}\n"
    return head + _summary(state.figures())


def _cons(state: ServerState) -> str:
    return "".join(state.client_rows(is_long=True)) + "\n"


def _crst(state: ServerState) -> str:
    state.reset_connections()
    return "Connection stats reset.\n"


def _srst(state: ServerState) -> str:
    state.reset_server()
    return "Server stats reset.\n"


def _dump(state: ServerState) -> str:
    ephemerals = state.ephemerals()
    parts = ["SessionTracker dump:\nSession "]
    parts += _sets(
        (at_ms, [f"0x{each:x}" for each in ids]) for at_ms, ids in state.session_expiries()
    )
    parts.append(f"ephemeral nodes dump:\nSessions with Ephemerals ({len(ephemerals)}):\n")
    for session_id, paths in ephemerals.items():
        parts.append(f"0x{session_id:x}:\n")
        parts += (f"\t{path}\n" for path in paths)
    parts.append("Connections dump:\nConnections ")
    parts += _sets(
        (at_ms, [f"ip: {address} sessionId: 0x{session_id:x}" for address, session_id in rows])
        for at_ms, rows in state.connection_expiries()
    )
    return "".join(parts)


def _sets(expiries: Iterable[tuple[int, list[str]]]) -> list[str]:
    """Return the lines about what expires at which time, behind a heading with the numbers."""
    found = list(expiries)
    parts = [f"Sets ({len(found)})/({sum(len(rows) for _, rows in found)}):\n"]
    for at_ms, rows in found:
        date = time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(at_ms / 1000))
        parts.append(f"{len(rows)} expire at {date}:\n")
        parts += (f"\t{each}\n" for each in rows)
    return parts


def _envi(_: ServerState) -> str:
    system = os.uname()
    rows = {
        "zookeeper.version": _VERSION,
        "host.name": system.nodename,
        "python.version": sys.version.partition(" ")[0],
        "os.name": system.sysname,
        "os.arch": system.machine,
        "os.version": system.release,
        "user.dir": Path.cwd(),
    }
    return "Environment:\n" + "".join(f"{name}={value}\n" for name, value in rows.items())


def _dirs(state: ServerState) -> str:
    snapshot, journal = _sizes(state.settings)
    return f"datadir_size: {snapshot}\nlogdir_size: {journal}\n"


def _sizes(settings: ZooKeeperSettings) -> list[int]:
    """Return the sizes of the snapshot and of the journal."""
    paths = [settings.data_dir / name for name in (SNAPSHOT_NAME, JOURNAL_NAME)]
    return [path.stat().st_size if path.exists() else 0 for path in paths]


def _wchs(state: ServerState) -> str:
    watched = state.watches()
    sessions = len({session_id for session_id, _ in watched})
    paths = len({path for _, path in watched})
    return f"{sessions} connections watching {paths} paths\nTotal watches:{len(watched)}\n"


def _wchc(state: ServerState) -> str:
    return _grouped((f"0x{session_id:x}", path) for session_id, path in state.watches())


def _wchp(state: ServerState) -> str:
    return _grouped((path, f"0x{session_id:x}") for session_id, path in state.watches())


def _grouped(rows: Iterable[tuple[str, str]]) -> str:
    groups: dict[str, dict[str, None]] = {}
    for head, item in rows:
        groups.setdefault(head, {})[item] = None
    lines = [line for head, items in groups.items() for line in (head, *(f"\t{i}" for i in items))]
    return "".join(f"{line}\n" for line in (*lines, ""))


def _summary(figures: Figures) -> str:
    return (
        f"Latency min/avg/max: {figures.min_latency_ms}/{round(figures.mean_latency_ms, 4)}/"
        f"{figures.max_latency_ms}\n"
        f"Received: {figures.received}\n"
        f"Sent: {figures.sent}\n"
        f"Connections: {figures.connections}\n"
        f"Outstanding: {figures.outstanding}\n"
        f"Zxid: 0x{figures.zxid:x}\n"
        "Mode: standalone\n"
        f"Node count: {figures.nodes}\n"
    )


def _mntr(state: ServerState) -> str:
    figures = state.figures()
    rows = {
        "version": _VERSION,
        "server_state": "standalone",
        "avg_latency": round(figures.mean_latency_ms, 4),
        "max_latency": figures.max_latency_ms,
        "min_latency": figures.min_latency_ms,
        "packets_received": figures.received,
        "packets_sent": figures.sent,
        "num_alive_connections": figures.connections,
        "outstanding_requests": figures.outstanding,
        "znode_count": figures.nodes,
        "watch_count": figures.watches,
        "ephemerals_count": figures.ephemerals,
        "approximate_data_size": figures.data_bytes,
        "global_sessions": figures.sessions,
        "local_sessions": 0,
        "open_file_descriptor_count": sum(1 for _ in _DESCRIPTORS.iterdir()),
        "max_file_descriptor_count": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "uptime": figures.uptime_ms,
    }
    return "".join(f"zk_{name}\t{value}\n" for name, value in rows.items())


def _conf(state: ServerState) -> str:
    settings = state.settings
    snapshot, journal = _sizes(settings)
    rows = {
        "clientPort": settings.port,
        "secureClientPort": -1,
        "dataDir": settings.data_dir,
        "dataDirSize": snapshot,
        "dataLogDir": settings.data_dir,
        "dataLogSize": journal,
        "tickTime": settings.tick_ms,
        "maxClientCnxns": settings.max_connections,
        "minSessionTimeout": settings.min_timeout_ms,
        "maxSessionTimeout": settings.max_timeout_ms,
        "clientPortListenBacklog": BACKLOG,
        "serverId": 0,
    }
    return "".join(f"{name}={value}\n" for name, value in rows.items())


_ANSWERS: dict[str, Callable[[ServerState], str]] = {
    "conf": _conf,
    "cons": _cons,
    "crst": _crst,
    "dirs": _dirs,
    "dump": _dump,
    "envi": _envi,
    "isro": lambda _: "rw",
    "mntr": _mntr,
    "ruok": lambda _: "imok",
    "srst": _srst,
    "srvr": _srvr,
    "stat": _stat,
    "wchc": _wchc,
    "wchp": _wchp,
    "wchs": _wchs,
}
