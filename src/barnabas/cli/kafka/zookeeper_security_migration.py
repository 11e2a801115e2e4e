"""Implements `zookeeper-security-migration.sh`, which protects or unprotects a cluster's nodes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import Line, Tool
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.metadata.secure import set_rights
from barnabas.cli.options import run_client
from barnabas.cluster.store import Create, NodeExists
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper import ZooKeeperStore
    from barnabas.cluster.zookeeper_settings import Settings

_ACL, _CONNECT, _TLS_FILE = "zookeeper.acl", "zookeeper.connect", "zk-tls-config-file"
_SESSION, _CONNECTION = "zookeeper.session.timeout", "zookeeper.connection.timeout"
_TIMEOUT_MS: Final = 30_000
_OWN: Final = "barnabas.zookeeper.credentials"
_ELECTED: Final = "/controller"  # exists only while a controller is elected
_ROOTS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/controller",
    "/controller_epoch",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/delegation_token",
    "/kafka-acl-extended",
    "/migration",
    "/feature",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended/prefixed",
    "/kafka-acl-extended-changes",
)
"""The nodes that Kafka's tool reports if missing, in its order."""


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    undo = [] if _is_secure(given) else ["--undo"]
    file = given.text(_TLS_FILE)
    config = [] if file is None else ["--config", file]
    return [["metadata", "secure", "--zookeeper-connect", _connect(given), *config, *undo]]


def run(given: Given) -> int:
    """Set the rights. Like Kafka's tool, this prints nothing except a warning if the tree does not
    belong to a cluster.
    """
    is_secure = _is_secure(given)
    # Connect like a broker, so that the brokers' credentials own the nodes.
    settings = _settings(given)._replace(is_protected=is_secure)
    missing = run_client(_missing(settings))
    # With a mistyped chroot, the tool would protect an empty tree and report success.
    if missing:
        click.echo(
            "Warning: The following secure root paths do not exist in ZooKeeper: "
            f"{','.join(missing)}\n"
            "That might be due to an incorrect chroot is specified when executing the command."
        )
        if "enable.path.check" in given:
            click.echo("Exit the command.")
            return EXIT_FAILURE
    # Create the roots before protecting them. Otherwise, anyone could create a root that is still
    # missing.
    run_client(_create(settings, missing))
    run_client(set_rights(settings, is_protected=is_secure))
    return EXIT_OK


def _is_secure(given: Given) -> bool:
    wanted = given.text(_ACL)
    if wanted not in ("secure", "unsecure"):
        raise BadCommandLine(f"--{_ACL} secure or --{_ACL} unsecure: one of them is needed")
    return wanted == "secure"


def _connect(given: Given) -> str:
    return given.text(_CONNECT) or "localhost:2181"


def _settings(given: Given) -> Settings:
    """Return the settings for connecting to ZooKeeper from the file and the environment. Raises
    ConfigError."""
    from barnabas.cluster.zookeeper_settings import settings_from
    from barnabas.config import BrokerConfig, from_environment

    file = given.text(_TLS_FILE)
    # The environment overrides the file, as for a broker.
    named = {**_file(file), **from_environment(os.environ)}
    properties = {
        name: text for name, text in named.items() if name.startswith(("zookeeper.ssl.", _OWN))
    }
    config = BrokerConfig(
        {
            **properties,
            _CONNECT: _connect(given),
            "zookeeper.session.timeout.ms": str(_milliseconds(given, _SESSION)),
            "zookeeper.connection.timeout.ms": str(_milliseconds(given, _CONNECTION)),
        }
    )
    settings = settings_from(config)
    if not settings.has_identity:
        raise ConfigError(
            "No JAAS configuration file has been specified and no TLS client certificate has been "
            "specified: a JAAS file for Java is not read here; name a file by --"
            f"{_TLS_FILE} with zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location, or "
            f"with {_OWN}=user:password"
        )
    return settings


def _file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    from barnabas.config import load_properties

    return load_properties(path)


def _milliseconds(given: Given, option: str) -> int:
    number = given.number(option, 1)
    return _TIMEOUT_MS if number is None else number


async def _missing(settings: Settings) -> list[str]:
    """Return the missing nodes. As in Kafka, set the root's rights first."""
    async with _open(settings) as store:
        await store.set_rights("/", is_protected=settings.is_protected)
        nodes = await store.read_many(list(_ROOTS))
    return [path for path, node in zip(_ROOTS, nodes, strict=True) if node is None]


async def _create(settings: Settings, missing: list[str]) -> None:
    """Like Kafka's tool, create the missing nodes before any other client can."""
    async with _open(settings) as store:
        for path in missing:
            # /controller must be ephemeral. If this tool created it, it would prevent every
            # election.
            if path != _ELECTED:
                with suppress(NodeExists):
                    await store.commit([Create(path)])


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[ZooKeeperStore]:
    from barnabas.cluster.zookeeper import ZooKeeperStore  # slow to import

    store = await ZooKeeperStore.open(settings, makes_chroot=False)
    try:
        yield store
    finally:
        await store.close()


TOOL = Tool(
    "ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of "
    "setting up ZooKeeper authentication.",
    (
        *flags("enable.path.check"),
        *values(
            "zookeeper.acl=secure|unsecure zookeeper.connect=HOST:PORT[/CHROOT] "
            "zookeeper.session.timeout=MS zookeeper.connection.timeout=MS zk-tls-config-file=FILE"
        ),
    ),
    explain,
    run,
)
