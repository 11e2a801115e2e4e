"""Describes a running ZooKeeper server to the four-letter words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from barnabas.zookeeper.settings import ZooKeeperSettings
from barnabas.zookeeper.words import Figures

if TYPE_CHECKING:
    from barnabas.zookeeper.connection import ClientConnection
    from barnabas.zookeeper.server import ZooKeeperServer

T = TypeVar("T")


class State:
    """Implements `words.ServerState`."""

    __slots__ = ("_server", "settings")

    def __init__(self, server: ZooKeeperServer) -> None:
        self._server = server
        self.settings: ZooKeeperSettings = server.settings._replace(port=server.port)

    def figures(self) -> Figures:
        return self._server.figures()

    def client_rows(self, *, is_long: bool) -> list[str]:
        rows = []
        for each in self._server.connections:
            session = each.session
            row = f" {_address(each)}[{int(session is not None)}](queued={each.held}"
            row += f",recved={each.received},sent={each.sent}"
            if is_long and session is not None:
                fields = each.responses.fields(each.opened_at_ms, session.timeout_ms)
                row += f",sid=0x{session.session_id:x},{fields}"
            rows.append(f"{row})\n")
        return rows

    def session_expiries(self) -> list[tuple[int, list[int]]]:
        sessions = self._server.processor.sessions.by_id.values()
        found = [(session.deadline_s, session.session_id) for session in sessions]
        return self._by_expiry(found)

    def connection_expiries(self) -> list[tuple[int, list[tuple[str, int]]]]:
        wait_s = self._server.first_record_wait_s
        found = []
        for each in self._server.connections:
            session = each.session
            if session is None:
                found.append((each.opened_at_s + wait_s, (_address(each), 0)))
            else:
                found.append((session.deadline_s, (_address(each), session.session_id)))
        return self._by_expiry(found)

    def _by_expiry(self, deadlines: Iterable[tuple[float, T]]) -> list[tuple[int, list[T]]]:
        found: dict[int, list[T]] = {}
        tick_ms = self.settings.tick_ms
        offset_ms = self._server.wall_ms() - asyncio.get_running_loop().time() * 1000
        for deadline_s, item in deadlines:
            at_ms = round(deadline_s * 1000 + offset_ms)
            # Sessions are looked at once per tick.
            found.setdefault((at_ms // tick_ms + 1) * tick_ms, []).append(item)
        return sorted(found.items(), key=lambda pair: pair[0])

    def ephemerals(self) -> Mapping[int, Iterable[str]]:
        return self._server.processor.tree.ephemerals

    def watches(self) -> list[tuple[int, str]]:
        watches = self._server.processor.watches
        return [
            (each.session.session_id, path)
            for each in self._server.connections
            if each.session is not None
            for path in watches.paths_of(each)
        ]

    def reset_connections(self) -> None:
        self._server.reset_connections()

    def reset_server(self) -> None:
        self._server.reset_counts()


def _address(connection: ClientConnection) -> str:
    return f"/{connection.host}:{connection.client_port}"
