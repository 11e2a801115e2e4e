"""Determines where a command reads the metadata tree: in ZooKeeper, or in a broker's own directory.

As with a broker, the tree is in ZooKeeper if the settings specify one, and otherwise in the log
directories. Settings are read from a properties file, then the environment, then the command line.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from barnabas.config import BrokerConfig, from_environment, load_properties
from barnabas.config.security_claims import broken_promise
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.store import MetadataStore
    from barnabas.cluster.zookeeper_settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_SESSION_MS, _CONNECTION_MS = 6_000, 2_400
"""Upper limits for timeouts. A broker waits for ZooKeeper to start, but the user of a command
should not have to.
"""

_ELSEWHERE = "--dir names another one, --zookeeper-connect the ZooKeeper of a cluster"


class TreeSource(NamedTuple):
    """Holds the options from the command line."""

    connect: str | None
    properties_file: str | None

    def zookeeper(self) -> Settings | None:
        """Return the settings for connecting to ZooKeeper, or None if it is not used. Raises
        ConfigError."""
        config = self._config()
        return command_settings(config) if config.str("zookeeper.connect") else None

    def required_zookeeper(self) -> Settings:
        """Return the settings for connecting to ZooKeeper. Raises ConfigError, including when none
        is specified."""
        settings = self.zookeeper()
        if settings is None:
            raise ConfigError("no ZooKeeper is named: --zookeeper-connect HOST:PORT[/CHROOT]")
        return settings

    def log_directories(self) -> list[Path]:
        """Return the log directories of a broker without ZooKeeper. Raises
        ConfigError.
        """
        return [Path(each) for each in self._config().log_directories()]

    def _config(self) -> BrokerConfig:
        file = self.properties_file
        properties = {} if file is None else load_properties(file)
        properties |= from_environment(os.environ)
        # A command serves no clients, so configs that a broker could not fulfil do not matter.
        properties = {
            name: text
            for name, text in properties.items()
            if name.startswith("zookeeper.") or broken_promise(name, text) is None
        }
        if self.connect is not None:
            properties["zookeeper.connect"] = self.connect
        return BrokerConfig(properties)


NO_SOURCE = TreeSource(None, None)


def command_settings(config: BrokerConfig) -> Settings:
    """Return a broker's settings, with shorter timeouts because a user is waiting. Raises
    ConfigError.
    """
    from barnabas.cluster.zookeeper_settings import settings_from

    settings = settings_from(config)
    return settings._replace(
        session_timeout_ms=min(settings.session_timeout_ms, _SESSION_MS),
        connection_timeout_ms=min(settings.first_timeout_ms, _CONNECTION_MS),
    )


def directories_option(flag: str, parameter: str, help_text: str) -> Callable[[F], F]:
    """Make an option that names all log directories of a broker. The command receives a tuple."""
    return click.option(
        flag,
        parameter,
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="DIR",
        help=help_text,
    )


def tree_source(command: F) -> F:
    """Add `--zookeeper-connect` and `--config`. The command receives their values as `source`."""

    @click.option(
        "--zookeeper-connect",
        "connect",
        metavar="HOST:PORT[,...][/CHROOT]",
        help="The cluster's ZooKeeper.",
    )
    @click.option(
        "--config",
        "properties_file",
        type=click.Path(),
        metavar="FILE",
        help="A broker's server.properties, for the place of its metadata.",
    )
    @wraps(command)
    def call(*args: Any, connect: str | None, properties_file: str | None, **rest: Any) -> Any:
        return command(*args, source=TreeSource(connect, properties_file), **rest)

    return call  # type: ignore[return-value]


@asynccontextmanager
async def reading(source: TreeSource, *directories: Path | None) -> AsyncIterator[MetadataStore]:
    """Open the tree for reading. `directories` override the settings."""
    given = [each for each in directories if each is not None]
    settings = None if given else source.zookeeper()
    if settings is not None:
        store = await open_zookeeper(settings)
    else:
        from barnabas.cluster.embedded import EmbeddedStore

        try:
            store = EmbeddedStore.open(*(given or source.log_directories()), read_only=True)
        except ConfigError as error:
            # Without --dir, the default directory was read, perhaps by mistake.
            raise ConfigError(f"{error}; {_ELSEWHERE}") from error
    try:
        yield store
    finally:
        await store.close()


async def open_zookeeper(settings: Settings, *, makes_chroot: bool = False) -> MetadataStore:
    # The client is slow to import, and most commands do not need it.
    from barnabas.cluster.zookeeper import ZooKeeperStore

    return await ZooKeeperStore.open(settings, makes_chroot=makes_chroot)
