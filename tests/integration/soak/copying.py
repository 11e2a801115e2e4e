"""The copy job as a service: a process that is started again when it has ended, or hangs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from barnabas.client import SyncAdmin
from barnabas.errors import BarnabasError
from tests.integration.soak.readings import JOIN_SECONDS

GROUP = "copiers"
_LOOK_S = 1.0
_HANGS_S = 20.0


class Copying:
    """Copies `source` to `target`, each record once, whatever is killed.

    librdkafka's `send_offsets_to_transaction` may wait for ever for a group coordinator that has
    left the cluster's metadata (its issue 5511, open in 2.16), so somebody has to look after it,
    as in production.
    """

    def __init__(self, servers: str, source: str, target: str, log: Path) -> None:
        self.source, self.target = source, target
        self.lives = self.hung = 0
        self._servers = servers
        self._command = [sys.executable, "-m", "tests.integration.copy_job", servers]
        self._command += [GROUP, source, target]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._log.open("ab") as log:
            while not self._stopping.is_set():
                self.lives += 1
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
                self._watch(self._process)
                self._process.kill()
                self._process.wait()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Until it has ended, is to end, or has committed nothing more for long."""
        committed, since = self.committed(), time.monotonic()
        while process.poll() is None and not self._stopping.wait(_LOOK_S):
            now = self.committed()
            if now is None or now != committed:
                committed, since = now, time.monotonic()
            elif time.monotonic() > since + _HANGS_S:
                self.hung += 1
                return

    def committed(self) -> int | None:
        """How many records are copied; None if no broker answers."""
        try:
            with SyncAdmin(self._servers) as admin:
                found = admin.list_group_offsets(GROUP)
        except BarnabasError:
            return None
        return sum(each.offset for each in found.values())

    def kill(self) -> None:
        """As `kill -9`; the next one begins at once."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(JOIN_SECONDS)
