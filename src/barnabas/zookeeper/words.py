"""Answers ZooKeeper's four-letter words, with which operators look at a server. Pure.

The words ruok, srvr, mntr and conf are answered. All others get the text with which ZooKeeper
refuses words that are not on its list.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas._version import __version__
from barnabas.named_tuple import NamedTuple
from barnabas.zookeeper.settings import ZooKeeperSettings

WORD_BYTES = 4

_VERSION = f"3.8.0-barnabas-{__version__}, built on 1970-01-01 00:00 UTC"
_KNOWN = frozenset(
    b"ruok srvr mntr conf cons crst dirs dump envi gtmk hash isro lsnp orst stat srst stmk wchc "
    b"wchp wchs".split()
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


def answer(word: bytes, figures: Callable[[], Figures], settings: ZooKeeperSettings) -> str:
    """Return the response to a word. `figures` is called only if they are needed."""
    if word == b"ruok":
        return "imok"
    if word == b"srvr":
        return _srvr(figures())
    if word == b"mntr":
        return _mntr(figures())
    if word == b"conf":
        return _conf(settings)
    return f"{word.decode()} is not executed because it is not in the whitelist.\n"


def _srvr(figures: Figures) -> str:
    return (
        f"Zookeeper version: {_VERSION}\n"
        f"Latency min/avg/max: {figures.min_latency_ms}/{figures.mean_latency_ms:.4f}/"
        f"{figures.max_latency_ms}\n"
        f"Received: {figures.received}\n"
        f"Sent: {figures.sent}\n"
        f"Connections: {figures.connections}\n"
        f"Outstanding: {figures.outstanding}\n"
        f"Zxid: 0x{figures.zxid:x}\n"
        "Mode: standalone\n"
        f"Node count: {figures.nodes}\n"
    )


def _mntr(figures: Figures) -> str:
    rows = {
        "version": _VERSION,
        "server_state": "standalone",
        "peer_state": "standalone",
        "avg_latency": f"{figures.mean_latency_ms:.4f}",
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
        "uptime": figures.uptime_ms,
    }
    return "".join(f"zk_{name}\t{value}\n" for name, value in rows.items())


def _conf(settings: ZooKeeperSettings) -> str:
    rows = {
        "clientPort": settings.port,
        "secureClientPort": -1,
        "dataDir": settings.data_dir,
        "dataLogDir": settings.data_dir,
        "tickTime": settings.tick_ms,
        "maxClientCnxns": settings.max_connections,
        "minSessionTimeout": settings.min_timeout_ms,
        "maxSessionTimeout": settings.max_timeout_ms,
        "serverId": 0,
    }
    return "".join(f"{name}={value}\n" for name, value in rows.items())
