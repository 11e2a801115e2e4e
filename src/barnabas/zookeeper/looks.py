"""Looks at a running ZooKeeper server, for the four-letter words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.zookeeper.settings import ZooKeeperSettings
from barnabas.zookeeper.words import Figures

if TYPE_CHECKING:
    from barnabas.zookeeper.server import ZooKeeperServer


class ServerLooks:
    """Reads the state of a server when a word asks for it."""

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
            row = f" /{each.host}:{each.client_port}[{int(session is not None)}](queued={each.held}"
            row += f",recved={each.received},sent={each.sent}"
            if is_long and session is not None:
                row += f",sid=0x{session.session_id:x},to={session.timeout_ms}"
            rows.append(f"{row})\n")
        return rows

    def expiries(self) -> list[tuple[int, list[int]]]:
        found: dict[int, list[int]] = {}
        now_s, tick_ms = asyncio.get_running_loop().time(), self.settings.tick_ms
        for session in self._server.processor.sessions.by_id.values():
            at_ms = round((time.time() + session.deadline_s - now_s) * 1000)
            # Sessions are looked at once per tick.
            found.setdefault((at_ms // tick_ms + 1) * tick_ms, []).append(session.session_id)
        return sorted(found.items())

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
