"""Finds the brokers for `--zookeeper HOST:PORT[/CHROOT]`, as in Kafka's older tools.

The addresses of the live brokers are read from the tree. The tool then contacts these brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import file_configs
from barnabas.cli.metadata.tree_source import TreeSource, open_zookeeper
from barnabas.cli.options import run_client
from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.store import MetadataError
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.store import MetadataStore
    from barnabas.cluster.zookeeper_settings import Settings

ZOOKEEPER_OPTION: Final = "zookeeper"
_PATIENCE_S: Final = 20

_DEPRECATED: Final = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to."
)
_PLAINTEXT: Final = "PLAINTEXT"
_PROTOCOL: Final = "security.protocol"


class Found(NamedTuple):
    """Holds the state of a cluster in ZooKeeper."""

    brokers: tuple[BrokerImage, ...]
    deleted_topics: frozenset[str]  # topics marked for deletion that still exist


def is_by_zookeeper(given: Given) -> bool:
    """Return whether the command line specifies ZooKeeper. Raises BadCommandLine if it also
    specifies brokers.
    """
    if ZOOKEEPER_OPTION not in given:
        return False
    if "bootstrap-server" in given:
        raise BadCommandLine(
            "Only one of --bootstrap-server or --zookeeper must be specified: leave out --zookeeper"
        )
    return True


def zookeeper_settings(given: Given, file: str | None = None) -> Settings:
    """Return the settings for connecting to ZooKeeper, which are given on the command line and in
    the file that it names. Raises ConfigError.
    """
    address = given.required_text(ZOOKEEPER_OPTION)
    # Report an invalid address before trying to connect.
    hosts_and_chroot(address)  # raises an error if the address is invalid
    return TreeSource(address, file).required_zookeeper()


def at_brokers(given: Given, config_option: str = "command-config") -> Given:
    """Return the options, adding the brokers' addresses if they are missing.

    Raises ConfigError or BadCommandLine.
    """
    return (
        with_brokers(given, cluster_of(given), config_option) if is_by_zookeeper(given) else given
    )


def cluster_of(given: Given) -> Found:
    """Read the cluster from the given ZooKeeper. Raises ConfigError, for example if no broker is
    registered.
    """
    return run_client(_read(zookeeper_settings(given)))


def with_brokers(given: Given, found: Found, config_option: str = "command-config") -> Given:
    """Return the options, with the broker addresses that the client can use. Raises ConfigError."""
    configs = file_configs(given, config_option)
    # The tree lists all listeners, but the client can use only those that have its security
    # protocol.
    protocol = configs.get(_PROTOCOL, _PLAINTEXT).strip().upper()
    addresses = [
        # An IPv6 address needs brackets before a port.
        f"[{each.host}]:{each.port}" if ":" in each.host else f"{each.host}:{each.port}"
        for each in _endpoints(found.brokers, protocol)
    ]
    if not addresses:
        others = sorted({e.security_protocol for b in found.brokers for e in b.endpoints})
        raise ConfigError(
            f"the brokers in ZooKeeper have no listener for {protocol}, only for "
            f"{', '.join(others)}: set {_PROTOCOL} in a file and give it with --{config_option}"
        )
    return given.with_value("bootstrap-server", ",".join(addresses))


def warn_of_zookeeper() -> None:
    """Print Kafka's warning about the option to standard error."""
    click.echo(_DEPRECATED, err=True)


def _endpoints(brokers: Iterable[BrokerImage], protocol: str) -> Iterable[Endpoint]:
    """Yield one endpoint for this protocol from each broker that offers it."""
    for broker in brokers:
        suited = [each for each in broker.endpoints if each.security_protocol == protocol]
        yield from suited[:1]


async def _read(settings: Settings) -> Found:
    async with open_store(settings) as store:
        brokers = await _brokers(store, settings.connect)
        deletions = await store.read(layout.DELETE_TOPICS)
    return Found(brokers, frozenset() if deletions is None else frozenset(deletions.children))


@asynccontextmanager
async def open_store(
    settings: Settings, *, makes_chroot: bool = False
) -> AsyncIterator[MetadataStore]:
    """Open the tree briefly. Raises ConfigError if ZooKeeper does not respond in time."""
    store = await open_zookeeper(settings, makes_chroot=makes_chroot)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            yield store
    except MetadataError as error:
        # Reading protected nodes (SE-6) requires the brokers' identity.
        if not settings.has_identity:
            error.add_note(
                "if only the brokers have access, give a file with their credentials or "
                "certificate with --zk-tls-config-file"
            )
        raise
    except TimeoutError:
        raise ConfigError(
            f"--zookeeper {settings.connect}: ZooKeeper has stopped answering: no response within "
            f"{_PATIENCE_S} s"
        ) from None
    finally:
        await store.close()


async def check_chroot(store: MetadataStore, connect: str) -> None:
    """Raise ConfigError if the chroot does not exist."""
    # Report a mistyped chroot, because it would look like an empty cluster.
    chroot = hosts_and_chroot(connect)[1]
    if chroot and await store.read("/") is None:
        raise ConfigError(
            f"--zookeeper {connect}: this ZooKeeper has no node {chroot}; is the chroot that of "
            "the brokers' zookeeper.connect?"
        )


async def _brokers(store: MetadataStore, connect: str) -> tuple[BrokerImage, ...]:
    """Read the registered brokers, sorted by id. Raises ConfigError if none is registered."""
    await check_chroot(store, connect)
    parent = await store.read(layout.BROKER_IDS)
    if parent is None:
        raise ConfigError(
            f"--zookeeper {connect}: no broker has ever registered there (no node "
            f"{hosts_and_chroot(connect)[1]}{layout.BROKER_IDS}); is the address that of the "
            "brokers' zookeeper.connect?"
        )
    ids = sorted(int(name) for name in parent.children if name.isdecimal())
    # If a broker stops between the two reads, its node is None.
    nodes = await store.read_many([layout.broker_path(broker_id) for broker_id in ids])
    brokers = tuple(
        layout.decode_broker(broker_id, node.data, node.czxid)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None
    )
    if not brokers:
        raise ConfigError(
            f"--zookeeper {connect}: no broker is registered there; start one and try again"
        )
    return brokers
