"""Parses the listening address of a syslog or OTLP receiver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError

_ALL_ADDRESSES: Final = "0.0.0.0"  # only if the user asked for it


class ListenAddress(NamedTuple):
    host: str
    port: int  # 0 means any free port

    @classmethod
    def parse(cls, text: str, default_port: int | None = None) -> ListenAddress:
        """Parse `HOST:PORT` or `[::1]:PORT`, or a host alone if there is a default port.

        A port alone, `:PORT`, selects all IPv4 addresses, as in Go and Docker. Raises
        `ConfigError`.
        """
        if "/" in text:
            raise ConfigError(f"{text!r} is not HOST:PORT: give only a host and a port")
        if default_port is not None and (":" not in text or text.endswith("]")):
            text = f"{text}:{default_port}"
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"{text!r} is not HOST:PORT, with a port of at most 65535")
        return cls(host.strip("[]") or _ALL_ADDRESSES, int(port))

    @contextlib.contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Convert errors of the operating system to `ConfigError`."""
        try:
            yield
        except OSError as error:
            where = self.shown(self)
            raise ConfigError(
                f"cannot listen for {what} {where}: {error.strerror or error}"
            ) from None

    @staticmethod
    def shown(name: tuple[Any, ...]) -> str:
        host, port = name[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
