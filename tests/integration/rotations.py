"""Every kind of rotation of a log that a server writes to meanwhile, at random moments."""

from __future__ import annotations

import random
import time

from tests.kit.web_server import WebServer

KINDS = ("late reload", "two at once", "copy and truncate", "compressed", "same header")


class Rotations:
    """What happens to the log: of each kind in turn, at random moments."""

    def __init__(self, server: WebServer, chance: random.Random) -> None:
        self._server = server
        self._chance = chance

    def write(self) -> None:
        for _ in range(self._chance.randrange(1, 6)):
            self._server.write(self._chance.randrange(40))
            if self._chance.random() < 0.3:
                self._server.write_half_a_line()
            time.sleep(self._chance.random() * 0.01)

    def rotate(self, kind: str) -> None:
        server = self._server
        if kind == "copy and truncate":
            server.copy_under_way()
            self.write()
            server.copy_and_truncate()
            server.write(self._chance.randrange(300))  # regrown, mostly beyond what it was
            return
        server.rename(is_recreated=self._chance.random() < 0.5)
        if kind == "late reload":
            self.write()
        server.reload()
        if kind == "two at once":
            server.write(self._chance.randrange(20))
            server.rename(is_recreated=True)
            server.reload()
        elif kind == "compressed":
            server.compress(self._chance.randrange(1, 3))
            server.compress(1)
