"""A TCP port that forwards to another one, until the link is cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_CHUNK_BYTES = 65_536


class TcpLink:
    """Forwards connections from a port of its own; all methods may be called from any thread."""

    def __init__(self, port: int, target: int) -> None:
        self._target = target
        self._is_cut = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections; new ones end at once, until `heal`."""
        with self._lock:
            self._is_cut = True
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._open |= {near, far}
                    if self._is_cut:
                        near.shutdown(socket.SHUT_RDWR)
                        far.shutdown(socket.SHUT_RDWR)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
