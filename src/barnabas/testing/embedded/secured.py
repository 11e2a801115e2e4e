"""Provides certificates, users and settings for an embedded broker or cluster with
`secure=True`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import ConfigError
from barnabas.testing.embedded.data_directory import DataDirectory

if TYPE_CHECKING:
    from barnabas.broker.security.secure_setup import SecureSetup

_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class Secured:
    """Creates certificates, users and settings, and keeps them in the directory `where`. True
    selects a temporary directory."""

    def __init__(self, where: bool | str | os.PathLike[str]) -> None:
        self._directory = DataDirectory(None if isinstance(where, bool) else Path(where))
        self._setup: SecureSetup | None = None

    @property
    def setup(self) -> SecureSetup:
        """Return the setup.

        Missing files are created on first use. Raises ConfigError or OSError.
        """
        if self._setup is None:
            from barnabas.broker.security.secure_setup import prepare  # rarely needed

            self._setup = prepare(self._directory.make(), _NAMES)
        return self._setup

    def remove(self) -> None:
        """Remove the temporary directory, if any. The next use creates everything again."""
        # Keep a user's directory, whose certificates will be reused.
        if self._directory.is_temporary:
            self._setup = None
        self._directory.remove()


def listener(secured: Secured | None, port: int) -> dict[str, str]:
    """Return the configs for a broker's listener on this port of 127.0.0.1."""
    if secured is None:
        return {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    from barnabas.broker.security.secure_setup import PROTOCOL

    return {
        "listeners": f"{PROTOCOL}://127.0.0.1:{port}",
        **secured.setup.defaults(),
        **secured.setup.broker_settings(),
    }


def client_settings(
    secured: Secured | None, bootstrap_servers: str, library: str
) -> Mapping[str, Any]:
    """Return the settings for a client of `library`, with the setting names of this library. Raises
    ConfigError for an unknown library.
    """
    if library not in _SERVERS:
        raise ConfigError(f"library={library!r}: not one of {', '.join(_SERVERS)}")
    servers = {_SERVERS[library]: bootstrap_servers}
    return servers if secured is None else {**servers, **secured.setup.settings_for(library)}


_SERVERS: Final = {
    "barnabas": "bootstrap.servers",
    "java": "bootstrap.servers",
    "confluent-kafka": "bootstrap.servers",
    "kafka-python": "bootstrap_servers",
    "aiokafka": "bootstrap_servers",
}
"""The name of the address setting in each library."""
